"""What programs ask of PyTorch's compiler. Nothing is compiled here; see :func:`rgrad.compile`."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from ._core import Tensor, as_tensor
from ._runtime.settings import compile
from .utils._pytree import tree_map

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

F = TypeVar("F", bound=Callable[..., Any])

_STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)
_backend: Any = None
_collectives = False


def is_compiling() -> bool:
    """Always False."""
    return False


def is_dynamo_compiling() -> bool:
    """Always False."""
    return False


def is_exporting() -> bool:
    """Always False."""
    return False


@overload
def disable(fn: F, recursive: bool = True, *, reason: str | None = None) -> F: ...
@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[F], F]: ...
def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Give the function back as it is; without it, a decorator that does so."""
    return (lambda given: given) if fn is None else fn


def reset() -> None:
    """Do nothing."""


def allow_in_graph(fn: Any) -> Any:
    """Give the function, or a list of them, back as it is.

    Raises:
        AssertionError: Something in it cannot be called.
    """
    for one in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(one):
            raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: F) -> F:
    """Give the function back as it is."""
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[F], F]:
    """A decorator that gives its function back as it is: calls of ``original_fn`` run that one.

    Args:
        original_fn: The function that PyTorch's compiler would replace.
        can_constant_fold_through: Has no effect.
        skip_signature_check: Has no effect.

    Raises:
        TypeError: It is no function.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")
    return lambda given: given


@overload
def nested_compile_region(fn: F, options: Any = None, max_reuse_entries: int = 8) -> F: ...
@overload
def nested_compile_region(fn: None = None, options: Any = None, max_reuse_entries: int = 8) -> Callable[[F], F]: ...
def nested_compile_region(fn: Any = None, options: Any = None, max_reuse_entries: int = 8) -> Any:
    """Give the function back as it is; without it, a decorator that does so."""
    return (lambda given: given) if fn is None else fn


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """``["eager"]``: whatever backend a program names, its code runs as it is.

    Args:
        exclude_tags: Has no effect.
    """
    return ["eager"]


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Accepted; it changes nothing but what :func:`get_default_backend` gives.

    Args:
        backend: A name, a function, or None for ``"eager"``.

    Raises:
        TypeError: It is something else.
    """
    global _backend
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"set_default_backend expects a name, a function or None, but got {type(backend).__name__}")
    _backend = backend


def get_default_backend() -> str | Callable[..., Any]:
    """What :func:`set_default_backend` was given last, at first ``"eager"``."""
    found: str | Callable[..., Any] = "eager" if _backend is None else _backend
    return found


class set_stance:
    """A call, a context or a decorator that has no effect.

    Args:
        stance: One of PyTorch's words.
        skip_guard_eval_unsafe: Has no effect.
        force_backend: Has no effect.

    Raises:
        RuntimeError: There is no such word, or a backend is forced with another stance than the default.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'; it is one of {', '.join(_STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, fn: F) -> F:
        return fn


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted; it changes nothing.

    Args:
        enabled: What the next call gives.

    Returns:
        What was set before.
    """
    global _collectives
    before, _collectives = _collectives, bool(enabled)
    return before


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs."""


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors made of one of NumPy arrays; gradients end there.

    Args:
        fn: Takes and gives arrays, in any trees.

    Returns:
        A function that takes and gives tensors.

    Example:
        >>> import numpy
        >>> rgrad.compiler.wrap_numpy(numpy.fliplr)(rgrad.tensor([[1, 2]]))
        tensor([[2, 1]])
    """
    import numpy

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        own, named = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(
            lambda x: (
                as_tensor(x.copy() if any(s < 0 for s in x.strides) else x)
                if isinstance(x, (numpy.ndarray, numpy.generic))
                else x
            ),
            fn(*own, **named),
        )

    return wrapped


def save_cache_artifacts() -> tuple[bytes, Any] | None:
    """None: nothing was compiled."""
    return None


def load_cache_artifacts(serialized_artifacts: bytes) -> Any:
    """Accepted; it has no effect, since nothing is compiled.

    Args:
        serialized_artifacts: Has no effect.
    """
    return None


def load_compiled_function(
    file: Any, *, f_globals: dict[str, object] | None = None, external_data: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Refused: compiled functions are not read.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "compiler.load_compiled_function: rgrad compiles nothing and reads nothing compiled; call the function itself"
    )


def _all_kept(guard_entries: Any) -> list[bool]:
    return [True for _ in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """True for each entry: there is no compiled code that guards could belong to."""
    return _all_kept(guard_entries)
