"""What programs ask of PyTorch's compiler. Nothing is compiled here; see :func:`rgrad.compile`."""

from typing import Any

from ._settings import compile

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]


def is_compiling() -> bool:
    """Always False."""
    return False


def is_dynamo_compiling() -> bool:
    """Always False."""
    return False


def is_exporting() -> bool:
    """Always False."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Give the function back as it is; without it, a decorator that does so."""
    return (lambda given: given) if fn is None else fn


def reset() -> None:
    """Do nothing."""
