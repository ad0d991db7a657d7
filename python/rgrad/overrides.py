"""``__torch_function__``: how classes and modes override functions.

A class that defines ``__torch_function__(cls, func, types, args=(), kwargs=None)`` (a subclass of Tensor, or any other)
is asked in place of every function, method, property and operator that is called with one of its objects. See
``docs/tensor-subclasses.md``.
"""

from __future__ import annotations

import functools
import types as _types
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from . import _core
from ._core import Tensor
from ._core import _has_torch_function as has_torch_function
from ._core import _has_torch_function_variadic as has_torch_function_variadic

if TYPE_CHECKING:
    import inspect

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function_unary(obj: object) -> bool:
    """:func:`has_torch_function` of one object."""
    return has_torch_function_variadic(obj)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call ``__torch_function__`` of modes and of ``relevant_args``; it decides what a call of ``public_api`` gives.

    Raises:
        TypeError: All of them return NotImplemented.
    """
    return _core._ask_torch_function(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that classes can override.

    Args:
        dispatcher: Takes what the function takes, and gives the arguments that may be tensors.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Run ``func`` from within its handler, which is skipped; handlers of the functions that ``func`` calls are not.

    A native function calls no others, and simply runs.
    """
    own = kwargs or {}
    if not isinstance(func, _types.FunctionType):
        with _core.DisableTorchFunction():
            return func(*args, **own)
    with _Skipping(func):
        return func(*args, **own)


class _Skipping:
    """In this block, the next check for handlers on this thread finds none: the one of ``func``."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __enter__(self) -> None:
        _core._skip_torch_function_once(True)

    def __exit__(self, *exc: object) -> None:
        _core._skip_torch_function_once(False)


def is_tensor_like(inp: object) -> bool:
    """Whether ``inp`` is a tensor or has a ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# Not overridable: they make tensors from other data, read settings, or belong to classes.
_IGNORED = (
    "Generator",
    "Size",
    "arange",
    "as_tensor",
    "asarray",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "broadcast_shapes",
    "can_cast",
    "clear_autocast_cache",
    "device",
    "dtype",
    "empty",
    "empty_cache",
    "empty_strided",
    "enable_grad",
    "eye",
    "finfo",
    "from_numpy",
    "full",
    "get_autocast_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_tensor",
    "is_warn_always_enabled",
    "linspace",
    "load",
    "logspace",
    "manual_seed",
    "max_memory_allocated",
    "memory_allocated",
    "no_grad",
    "ones",
    "promote_types",
    "rand",
    "randint",
    "randn",
    "randperm",
    "reset_peak_memory_stats",
    "save",
    "scalar_tensor",
    "seed",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_memory_limit",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "tensor",
    "tril_indices",
    "triu_indices",
    "typename",
    "zeros",
)
_IGNORED_METHODS = (
    "__hash__",
    "__init__",
    "__init_subclass__",
    "__iter__",
    "__new__",
    "__torch_function__",
    "_make_subclass",
    "as_subclass",
)


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that no ``__torch_function__`` can override."""
    import rgrad

    found = {getattr(rgrad, name) for name in _IGNORED if hasattr(rgrad, name)}
    return found | {getattr(Tensor, name) for name in _IGNORED_METHODS} | {has_torch_function, handle_torch_function}


@functools.cache
def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results keep their class under ``Tensor.__torch_function__``: they give what a tensor holds."""
    own: Any = Tensor
    return {own._base.__get__, own.grad.__get__}


def _public(namespace: Any) -> list[str]:
    if namespace is Tensor:
        return [name for name in dir(Tensor) if getattr(object, name, None) != getattr(Tensor, name)]
    return [name for name in dir(namespace) if name[0].islower() and not name.endswith("_")]


@functools.cache
def _overridable() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Callable[..., Any], str]]:
    import rgrad

    functions: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Callable[..., Any], str] = {}
    ignored = get_ignored_functions()
    for where, namespace in (
        ("rgrad", rgrad),
        ("rgrad.nn.functional", rgrad.nn.functional),
        ("rgrad.nn.init", rgrad.nn.init),
        ("rgrad.Tensor", Tensor),
    ):
        for name in _public(namespace):
            func = getattr(namespace, name)
            if not callable(func):
                if namespace is Tensor and hasattr(func, "__get__") and hasattr(func, "__set__") and name != "__dict__":
                    names[func.__get__] = f"{where}.{name}.__get__"
                    names[func.__set__] = f"{where}.{name}.__set__"
                    functions.setdefault(func, []).append(func.__get__)
                continue
            own = getattr(func, "__module__", None)
            if isinstance(func, type) or (namespace is not Tensor and own is not None and not own.startswith("rgrad")):
                continue
            names.setdefault(func, f"{where}.{name}")
            if func not in ignored and name != "__class__":
                functions.setdefault(namespace, []).append(func)
    return functions, names


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that a ``__torch_function__`` can override, by the module, class or property they belong to."""
    return _overridable()[0]


def _signature_of(func: Callable[..., Any]) -> inspect.Signature:
    # Loading it takes longer than loading this module.
    import inspect

    try:
        return inspect.signature(func)
    except (TypeError, ValueError):  # some slots have no text signature
        kinds = {"args": inspect.Parameter.VAR_POSITIONAL, "kwargs": inspect.Parameter.VAR_KEYWORD}
        return inspect.Signature([inspect.Parameter(name, kind) for name, kind in kinds.items()])


def _stand_in(func: Callable[..., Any]) -> Callable[..., int]:
    signature = _signature_of(func)

    def stand_in(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    stand_in.__name__ = stand_in.__qualname__ = getattr(func, "__name__", "stand_in")
    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return stand_in


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., int]]:
    """For each overridable function one that takes the same arguments and returns -1, for tests of overrides.

    Other arguments are a TypeError.
    """
    return {func: _stand_in(func) for funcs in get_overridable_functions().values() for func in funcs}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The dotted name of a function as a ``__torch_function__`` gets it, such as ``rgrad.Tensor.add``."""
    return _overridable()[1].get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether ``func``, as a ``__torch_function__`` gets it, is a method or property of Tensor."""
    return func in get_overridable_functions()[Tensor] or getattr(func, "__name__", "") in ("__get__", "__set__")


class TorchFunctionMode:
    """A context in which ``__torch_function__`` of this object is asked about every function, whatever its arguments.

    That includes functions without tensors among their arguments, such as ``zeros``. While the method runs, this mode
    is off, and an enclosing one is on.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What to give in place of ``func(*args, **kwargs)``, or NotImplemented."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        _core._push_torch_function_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _core._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An old way of making a mode; ``with Mode():`` does."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    modes = _core._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return _core._torch_function_modes()


@contextmanager
def enable_reentrant_dispatch() -> Generator[None]:
    """A context in which classes are asked again, inside ``DisableTorchFunctionSubclass`` or a default handler."""
    before = _core._set_torch_function_enabled(True)
    try:
        yield
    finally:
        _core._set_torch_function_enabled(before)
