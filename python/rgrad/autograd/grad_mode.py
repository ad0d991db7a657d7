"""Switches that tell the engine whether to record: context managers, decorators, or (``set_grad_enabled``) a call.

All of them are thread-local; the flags themselves live in the native module.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, cast, overload

from .. import _core
from .._core import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_CO_GENERATOR = 0x20


def _is_generator_function(func: object) -> bool:
    while isinstance(func, functools.partial):
        func = func.func
    code = getattr(getattr(func, "__func__", func), "__code__", None)
    return code is not None and code.co_flags & _CO_GENERATOR != 0


def _wrap_generator(make_context: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    # The mode is on while the generator's own code runs, and off while it is suspended.
    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with make_context():
            gen = func(*args, **kwargs)
        try:
            with make_context():
                item = gen.send(None)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with make_context():
                        gen.close()
                    raise
                except BaseException:
                    with make_context():
                        item = gen.throw(sys.exc_info()[1])
                else:
                    with make_context():
                        item = gen.send(sent)
        except StopIteration as stop:
            return stop.value

    return wrapped


class _Mode:
    """A context manager that is also a decorator; every decorated call enters a fresh clone."""

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Self:
        """A new context manager with the same setting, not entered."""
        return type(self)()

    def __call__(self, orig_func: F) -> F:
        func: Callable[..., Any] = orig_func
        if isinstance(orig_func, type):
            warnings.warn(
                f"Decorating classes is deprecated: {type(self).__name__} got the class {orig_func.__qualname__}, "
                "whose construction alone will run in this mode. Decorate functions or methods; to keep what this "
                "does, decorate `__init__` and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
        elif _is_generator_function(orig_func):
            return cast(F, _wrap_generator(self.clone, orig_func))
        clone = self.clone

        @functools.wraps(func, updated=() if isinstance(orig_func, type) else ("__dict__",))
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with clone():
                return func(*args, **kwargs)

        return cast(F, wrapped)


class _NoParamMode(_Mode):
    """A mode without arguments: also a decorator without parentheses."""

    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    def __new__(cls, orig_func: F | None = None) -> Self | F:  # type: ignore[misc]
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)

    def __init__(self, orig_func: object = None) -> None:
        # A list: one instance may be entered again inside itself.
        self._outer: list[bool] = []

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _core._set_grad_enabled(self._outer.pop())


class no_grad(_NoParamMode):
    """A block, or a decorated function, in which nothing is recorded.

    Results have ``requires_grad=False``, whatever their inputs are. Factory functions with ``requires_grad=True`` and
    ``nn.Parameter`` are not affected.

    Args:
        orig_func: The function, if this is used as a decorator without parentheses.

    Example:
        >>> x = rgrad.ones(2, requires_grad=True)
        >>> with rgrad.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __enter__(self) -> None:
        self._outer.append(_core.is_grad_enabled())
        _core._set_grad_enabled(False)


class enable_grad(_NoParamMode):
    """A block, or a decorated function, in which recording is on, also within :class:`no_grad`.

    Args:
        orig_func: The function, if this is used as a decorator without parentheses.

    Example:
        >>> x = rgrad.ones(2, requires_grad=True)
        >>> with rgrad.no_grad(), rgrad.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    def __enter__(self) -> None:
        self._outer.append(_core.is_grad_enabled())
        _core._set_grad_enabled(True)


class set_grad_enabled(_Mode):
    """Switches recording by a value: at once when it is called, and until the end of the block in a ``with``.

    As a decorator it does not touch the mode outside the decorated function.

    Args:
        mode: Whether recording is on.

    Example:
        >>> training = False
        >>> with rgrad.set_grad_enabled(training):
        ...     print(rgrad.is_grad_enabled())
        False
    """

    def __init__(self, mode: bool) -> None:
        self.prev: bool = _core.is_grad_enabled()
        self.mode = mode
        _core._set_grad_enabled(mode)

    def __call__(self, orig_func: F) -> F:
        _core._set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _core._set_grad_enabled(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _core._set_grad_enabled(self.prev)

    def clone(self) -> Self:
        """A new context manager with the same mode."""
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"


class inference_mode(_Mode):
    """A block like :class:`no_grad` whose tensors carry no version counter and never take part in autograd.

    Args:
        mode: False switches it off for the block, with recording on. As a decorator without parentheses, the function.

    Example:
        >>> with rgrad.inference_mode():
        ...     y = rgrad.ones(2) * 2
        >>> y.is_inference()
        True
    """

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    def __new__(cls, mode: bool | F = True) -> Self | F:  # type: ignore[misc]
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._outer: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._outer.append((_core.is_inference_mode_enabled(), _core.is_grad_enabled()))
        # The grad mode last: the native switch may set it too.
        _core._set_inference_mode(self.mode)
        _core._set_grad_enabled(not self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        inference, grad = self._outer.pop()
        _core._set_inference_mode(inference)
        _core._set_grad_enabled(grad)

    def clone(self) -> Self:
        """A new context manager with the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Mode):
    """Whether backward may use a thread of its own: at once when called, until the end of the block in a ``with``.

    It does so only for passes inside passes beyond some 60 levels; with this switched off those raise RuntimeError.

    Args:
        mode: Whether it may.

    Example:
        >>> x = rgrad.ones(2, requires_grad=True)
        >>> with rgrad.autograd.set_multithreading_enabled(False):
        ...     (x * x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, mode: bool) -> None:
        self.prev: bool = _core._is_multithreading_enabled()
        self.mode = mode
        _core._set_multithreading_enabled(mode)

    def __enter__(self) -> None:
        _core._set_multithreading_enabled(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _core._set_multithreading_enabled(self.prev)

    def clone(self) -> Self:
        """A new context manager with the same mode."""
        return type(self)(self.mode)


class _unsafe_preserve_version_counter:
    """A block after which tensors have the version counters that they had before, whatever is written inside.

    Backward then does not notice such writes, and may compute wrong gradients.
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        self.prev_versions = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        _core._autograd._unsafe_set_version_counter(self.tensors, self.prev_versions)
