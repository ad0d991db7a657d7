"""The library NNPACK, which is not used here."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["flags", "is_available", "set_flags"]

_enabled = True


def is_available() -> bool:
    """Always False."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set the switch, and give what it was in a tuple.

    Raises:
        RuntimeError: It is no bool.
    """
    if not isinstance(_enabled, bool):
        raise RuntimeError(f"set_enabled_NNPACK expects a bool, but got {type(_enabled).__name__}")
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


@contextmanager
def _set(enabled: bool) -> Iterator[None]:
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Set the switch for a block."""
    return _set(enabled)
