"""What programs ask of PyTorch's compiler. Nothing is compiled here; see :func:`rgrad.compile`."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ._runtime.settings import compile

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]

F = TypeVar("F", bound=Callable[..., Any])


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
