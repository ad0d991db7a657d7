"""Scripting: decorators and classes of TorchScript, under which Python code stays what it is."""

import builtins
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, NoReturn, TypeVar, overload

from ..nn import Module

F = TypeVar("F")

_NO_GRAPH = (
    "there is no TorchScript here: functions and modules run as Python code, which has no {what}. For a graph see "
    "rgrad.fx.symbolic_trace and rgrad.export.export"
)
NO_FILE = (
    "there is no TorchScript here: functions and modules run as Python code, so there is no program to write. Save the "
    "parameters with rgrad.save(model.state_dict(), file), or the computation with rgrad.onnx.export"
)


def refuse_graph(what: str) -> NoReturn:
    """Say that a script has no such thing.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"jit: {_NO_GRAPH.format(what=what)}")


def refuse_file(what: str) -> NoReturn:
    """Say that a script cannot be written.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"{what}: {NO_FILE}")


class ScriptWarning(Warning):
    """The class of PyTorch's warnings about scripts. None is given here."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript would give it; `value` and `type`."""

    value: Any
    type: Any


def annotate(the_type: Any, the_value: F) -> F:
    """Give ``the_value`` back; ``the_type`` has no effect."""
    return the_value


def is_scripting() -> bool:
    """Always False."""
    return False


def script(
    obj: F,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> F:
    """Give the function, class or module back as it is.

    Args:
        obj: What TorchScript would compile.
        optimize: Has no effect.
        example_inputs: Has no effect.
    """
    return obj


@overload
def ignore(drop: bool = False, **kwargs: Any) -> Callable[[F], F]: ...
@overload
def ignore(drop: F, **kwargs: Any) -> F: ...
def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Give the function back as it is; with an argument that is no function, a decorator that does so.

    Raises:
        RuntimeError: The argument is neither a function nor a bool.
    """
    if callable(drop):
        return drop
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda given: given


def unused(fn: F) -> F:
    """Give the function back as it is."""
    return fn


def export(fn: F) -> F:
    """Give the function back as it is."""
    return fn


def script_method(fn: F) -> F:
    """Give the method back as it is."""
    return fn


def _overload(func: F) -> F:
    return func


def _overload_method(func: F) -> F:
    return func


def interface(obj: F) -> F:
    """Give the class back as it is.

    Raises:
        RuntimeError: It is no class.
    """
    if not builtins.isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


class ScriptFunction:
    """What :func:`rgrad.jit.trace` gives for a function: called as the function is.

    Args:
        fn: The function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    @property
    def graph(self) -> Any:
        """Refused: there is none.

        Raises:
            NotImplementedError: Always.
        """
        refuse_graph("graph")

    @property
    def code(self) -> Any:
        """Refused: there is none.

        Raises:
            NotImplementedError: Always.
        """
        refuse_graph("code of TorchScript")

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Refused: there is no program that could be written.

        Raises:
            NotImplementedError: Always.
        """
        refuse_file("ScriptFunction.save")

    def save_to_buffer(self, _extra_files: Any = None) -> Any:
        """Refused: there is no program that could be written.

        Raises:
            NotImplementedError: Always.
        """
        refuse_file("ScriptFunction.save_to_buffer")


class ScriptModule(Module):
    """A module for programs that derive from this class. It is a module like any other, and has no graph."""

    @property
    def graph(self) -> Any:
        """Refused: there is none.

        Raises:
            NotImplementedError: Always.
        """
        refuse_graph("graph")

    @property
    def code(self) -> Any:
        """Refused: there is none.

        Raises:
            NotImplementedError: Always.
        """
        refuse_graph("code of TorchScript")

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Refused: there is no program that could be written.

        Raises:
            NotImplementedError: Always.
        """
        refuse_file("ScriptModule.save")

    def save_to_buffer(self, _extra_files: Any = None) -> Any:
        """Refused: there is no program that could be written.

        Raises:
            NotImplementedError: Always.
        """
        refuse_file("ScriptModule.save_to_buffer")


class RecursiveScriptModule(ScriptModule):
    """The class of PyTorch's scripted modules, to compare with. :func:`script` gives the module itself."""


class CompilationUnit:
    """Refused: source text of TorchScript is not compiled.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        raise NotImplementedError(
            "jit.CompilationUnit: source text of TorchScript is not compiled here; define the functions in Python"
        )


def freeze(
    mod: F, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True, preserve_parameters: bool = False
) -> F:
    """Give a module in eval mode back as it is.

    Args:
        mod: The module.
        preserved_attrs: Has no effect.
        optimize_numerics: Has no effect.
        preserve_parameters: Has no effect.

    Raises:
        RuntimeError: It is no module, or in training mode.
    """
    if not builtins.isinstance(mod, Module):
        raise RuntimeError(f"Freezing expects a module as input, but got {type(mod).__name__}")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Accepted; it has no effect.

    Args:
        mod: The module.
        optimize_numerics: Has no effect.
        preserved_methods: Has no effect.
    """


def optimize_for_inference(mod: F, other_methods: list[str] | None = None) -> F:
    """Give the module back, in eval mode.

    Args:
        mod: The module.
        other_methods: Has no effect.

    Raises:
        RuntimeError: It is no module.
    """
    if not builtins.isinstance(mod, Module):
        raise RuntimeError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    mod.eval()
    return mod


class strict_fusion:
    """A context that has no effect: there is no script whose fusion could be checked."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context; ``should_optimize`` has no effect."""
    yield


def fuser(name: str) -> AbstractContextManager[None]:
    """A context that has no effect: operations are fused as :func:`rgrad.fusion` says.

    Args:
        name: ``"fuser0"``, ``"fuser1"``, ``"fuser2"`` or ``"fuser3"``.

    Raises:
        Exception: There is no such fuser.
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    return optimized_execution(True)


_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn = False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Accepted; it changes nothing.

    Args:
        strategy: Pairs of ``"STATIC"`` or ``"DYNAMIC"`` and a number.

    Returns:
        What was set before.
    """
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted; it changes nothing.

    Args:
        enabled: What :func:`onednn_fusion_enabled` gives from now on.
    """
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What :func:`enable_onednn_fusion` was given last, at first False."""
    return _onednn


def export_opnames(m: Any) -> list[str]:
    """Refused: a module of Python has no list of operations.

    Raises:
        NotImplementedError: Always.
    """
    refuse_graph("list of operations")


def last_executed_optimized_graph() -> Any:
    """Refused: there is no graph.

    Raises:
        NotImplementedError: Always.
    """
    refuse_graph("graph")
