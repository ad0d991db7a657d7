"""What programs ask of TorchScript. Nothing is scripted here; functions stay Python."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = ["export", "ignore", "is_scripting", "is_tracing", "script", "unused"]

F = TypeVar("F")


def is_scripting() -> bool:
    """Always False."""
    return False


def is_tracing() -> bool:
    """Always False."""
    return False


def script(obj: F, *args: Any, **kwargs: Any) -> F:
    """Give the function, class or module back as it is."""
    return obj


@overload
def ignore(drop: bool = False, **kwargs: Any) -> Callable[[F], F]: ...
@overload
def ignore(drop: F, **kwargs: Any) -> F: ...
def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Give the function back as it is; with an argument that is no function, a decorator that does so."""
    return drop if callable(drop) else (lambda given: given)


def unused(fn: F) -> F:
    """Give the function back as it is."""
    return fn


def export(fn: F) -> F:
    """Give the function back as it is."""
    return fn
