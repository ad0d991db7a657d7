"""Tracing: the example is run once, and later calls are held to its form. What runs then is the Python code."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn import Module
from ..testing import assert_close
from ..utils._pytree import tree_flatten, tree_map
from ._script import ScriptFunction, ScriptModule, refuse_graph


class TracerWarning(Warning):
    """The class of PyTorch's warnings about values that a trace would keep. None is given: no value is kept here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: no such warning is given."""


class TracingCheckError(Exception):
    """Two runs of the example gave different results."""


def is_tracing() -> bool:
    """Always False: what is traced runs as Python code."""
    return False


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that calls ``fn``."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    return wrapper


@dataclass(frozen=True)
class _Leaf:
    """What an example has at one place: the number of dimensions of a tensor, and a text for messages."""

    dims: int | None
    text: str

    @staticmethod
    def of(value: Any) -> "_Leaf":
        if isinstance(value, Tensor):
            return _Leaf(value.dim(), f"a tensor of shape {tuple(value.shape)}")
        return _Leaf(None, f"a {type(value).__name__}")


class _Example:
    """The form of an example: its tree, with a :class:`_Leaf` at each place."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name = name
        self.form = tree_map(_Leaf.of, (args, dict(sorted(kwargs.items()))))

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Compare a call with the example.

        Raises:
            RuntimeError: It has other arguments, or a tensor with another number of dimensions.
        """
        expected, expected_spec = tree_flatten(self.form)
        found, spec = tree_flatten(tree_map(_Leaf.of, (args, dict(sorted(kwargs.items())))))
        advice = "Trace it again with an example of this form, or call the original"
        if spec != expected_spec:
            got, wanted = (", ".join(leaf.text for leaf in leaves) or "none" for leaves in (found, expected))
            raise RuntimeError(
                f"{self.name}(): the call has other arguments than the example it was traced with: got {got}; expected "
                f"{wanted}. {advice}"
            )
        for at, (leaf, wanted) in enumerate(zip(found, expected, strict=True)):
            if leaf.dims != wanted.dims:
                raise RuntimeError(
                    f"{self.name}(): value {at} of the call is {leaf.text}, but the example it was traced with has "
                    f"{wanted.text}. {advice}"
                )


class TracedModule(ScriptModule):
    """What :func:`trace` gives for a module: its parameters, buffers, modules and hooks are those of the original.

    Args:
        orig: The original.
        examples: For each method that was traced, the example.
    """

    def __init__(self, orig: Module, examples: dict[str, _Example]) -> None:
        # All state is the original's, so names in state_dict, modes and devices are, too.
        object.__setattr__(self, "_original", orig)
        object.__setattr__(self, "_examples", examples)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__"):
            return object.__getattribute__(self, name)
        original = object.__getattribute__(self, "_original")
        value = getattr(original, name)
        if getattr(value, "__self__", None) is not original:
            return value
        example = object.__getattribute__(self, "_examples").get(name)

        @functools.wraps(value)
        def called(*args: Any, **kwargs: Any) -> Any:
            if example is not None:
                example.check(args, kwargs)
            result = value(*args, **kwargs)
            # train(), to() and their like give the module that they are called on.
            return self if result is original else result

        return called

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._original), *_OWN})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        example = self._examples.get("forward")
        if example is not None:
            example.check(args, kwargs)
        return self._original(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._original!r})"

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self._original, self._examples)

    def __copy__(self) -> Any:
        return type(self)(self._original, self._examples)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from copy import deepcopy

        return type(self)(deepcopy(self._original, memo), self._examples)


class TopLevelTracedModule(TracedModule):
    """The class of what :func:`trace` gives for a module."""


_OWN = {"_examples", "_original", "code", "graph", "save", "save_to_buffer"}


def _rebuilt(cls: Any, orig: Module, examples: dict[str, _Example]) -> TracedModule:
    made: TracedModule = cls(orig, examples)
    return made


def _run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    outputs, _ = tree_flatten(func(*args, **kwargs))
    for out in outputs:
        if not isinstance(out, (Tensor, int, float, bool, str, type(None))):
            raise RuntimeError(
                f"Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
                f"functions, but got {type(out).__name__}"
            )
    return outputs


def _try_example(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    check: bool,
    others: Any,
    tolerance: float,
) -> None:
    """Run the example, and once more to compare."""
    first = _run(func, args, kwargs)
    if not check:
        return
    with no_grad():
        again = _run(func, args, kwargs)
        for inputs in others or ():
            _run(func, inputs if isinstance(inputs, tuple) else (inputs,), {})
    if len(first) != len(again):
        raise TracingCheckError(f"trace: two runs of the example gave {len(first)} and {len(again)} outputs")
    for at, (a, b) in enumerate(zip(first, again, strict=True)):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            try:
                assert_close(b.detach(), a.detach(), rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)
            except AssertionError as error:
                raise TracingCheckError(
                    f"trace: output {at} differs between two runs of the example, so it depends on more than its "
                    f"inputs (random numbers, counters, dropout in training mode?). Trace it in eval mode, or give "
                    f"check_trace=False.\n{error}"
                ) from None


def _tuple_of(inputs: Any) -> tuple[Any, ...]:
    if isinstance(inputs, (Tensor, dict)):
        return (inputs,)
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a function or module on an example, and hold later calls to the example's form.

    What is called later is the Python code, so branches and sizes are those of each call and not of the example.

    Args:
        func: The function or module.
        example_inputs: A tensor, or a tuple of what ``func`` takes.
        optimize: Has no effect.
        check_trace: Run the example twice and compare the results.
        check_inputs: Further examples to run.
        check_tolerance: How far results of the two runs may differ.
        strict: Has no effect.
        example_kwarg_inputs: Keyword arguments of the example, in place of ``example_inputs``.

    Returns:
        A :class:`TopLevelTracedModule`, or a :class:`ScriptFunction`. A call with other arguments than the example's,
        or a tensor with another number of dimensions, is a RuntimeError; other sizes are not.

    Raises:
        RuntimeError: No example, both kinds, or ``func`` gives something other than tensors.
        TracingCheckError: The two runs of the example differ.

    Example:
        >>> net = rgrad.jit.trace(rgrad.nn.Linear(2, 1), rgrad.ones(3, 2))
        >>> net(rgrad.ones(5, 2)).shape
        rgrad.Size([5, 1])
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_inputs and example_kwarg_inputs should not be both None when tracing")
    if example_inputs is not None and example_kwarg_inputs is not None:
        raise RuntimeError("trace: give either example_inputs or example_kwarg_inputs, not both")
    if isinstance(func, (ScriptFunction, TracedModule)):
        return func
    args = () if example_inputs is None else _tuple_of(example_inputs)
    kwargs = dict(example_kwarg_inputs or {})
    if isinstance(func, Module):
        _try_example(func, args, kwargs, check_trace, check_inputs, check_tolerance)
        return TopLevelTracedModule(func, {"forward": _Example(type(func).__name__, args, kwargs)})
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module) and getattr(func, "__name__", "") == "forward":
        return trace(owner, example_inputs, None, check_trace, check_inputs, check_tolerance, strict)
    if not callable(func):
        raise RuntimeError(f"trace: expected a function or a module, but got {type(func).__name__}")
    _try_example(func, args, kwargs, check_trace, check_inputs, check_tolerance)
    example = _Example(getattr(func, "__name__", "function"), args, kwargs)

    @functools.wraps(func)
    def checked(*own: Any, **named: Any) -> Any:
        example.check(own, named)
        return func(*own, **named)

    return ScriptFunction(checked)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Run methods of a module on examples, and hold later calls to them; see :func:`trace`.

    Args:
        mod: The module.
        inputs: For the name of each method, its example.
        optimize: Has no effect.
        check_trace: Run each example twice and compare the results.
        check_inputs: A list of further examples, each a dictionary like ``inputs``.
        check_tolerance: How far results of the two runs may differ.
        strict: Has no effect.
        example_inputs_is_kwarg: The examples are dictionaries of keyword arguments.

    Returns:
        A :class:`TopLevelTracedModule`.

    Raises:
        AttributeError: ``mod`` is no module, ``inputs`` no dictionary, or there is no such method.
        TracingCheckError: Two runs of an example differ.
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    examples = {}
    for name, example in inputs.items():
        args = () if example_inputs_is_kwarg else _tuple_of(example)
        kwargs = dict(example) if example_inputs_is_kwarg else {}
        method = mod if name == "forward" else getattr(mod, name)
        others = [given[name] for given in check_inputs or () if name in given]
        _try_example(method, args, kwargs, check_trace, others, check_tolerance)
        examples[name] = _Example(f"{type(mod).__name__}.{name}", args, kwargs)
    return TopLevelTracedModule(mod, examples)


def _get_trace_graph(*args: Any, **kwargs: Any) -> NoReturn:
    refuse_graph("graph")
