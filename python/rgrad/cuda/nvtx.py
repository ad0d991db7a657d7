"""Marks for NVIDIA's profilers, which do not run here: they have no effect. :mod:`rgrad.profiler` has ranges."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """Do nothing; gives -2, as without a profiler."""
    return -2


def range_pop() -> int:
    """Do nothing; gives -2, as without a profiler."""
    return -2


def range_start(msg: str) -> int:
    """Do nothing; gives 0."""
    return 0


def range_end(range_id: int) -> None:
    """Do nothing."""


def mark(msg: str) -> None:
    """Do nothing."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Generator[None]:
    """A range that nobody sees.

    Args:
        msg: Its name.
        *args: What it is formatted with.
        **kwargs: What it is formatted with.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
