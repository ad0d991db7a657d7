"""What programs ask of TorchScript. Nothing is scripted here; functions stay Python."""

from typing import Any

__all__ = ["export", "ignore", "is_scripting", "is_tracing", "script", "unused"]


def is_scripting() -> bool:
    """Always False."""
    return False


def is_tracing() -> bool:
    """Always False."""
    return False


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Give the function, class or module back as it is."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Give the function back as it is; with an argument that is no function, a decorator that does so."""
    return drop if callable(drop) else (lambda given: given)


def unused(fn: Any) -> Any:
    """Give the function back as it is."""
    return fn


def export(fn: Any) -> Any:
    """Give the function back as it is."""
    return fn
