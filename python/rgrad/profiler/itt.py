"""Marks for Intel's VTune. This build has none of them: as in a PyTorch without ITT, everything that marks is refused.

``rgrad.profiler.record_function`` names ranges in rgrad's own traces.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Never

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def _refused() -> Never:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def is_available() -> bool:
    """Whether marks can be made: always False.

    Example:
        >>> rgrad.profiler.itt.is_available()
        False
    """
    return False


def range_push(msg: str) -> Never:
    """Refused.

    Args:
        msg: The name of a range.

    Raises:
        RuntimeError: Always.
    """
    _refused()


def range_pop() -> Never:
    """Refused.

    Raises:
        RuntimeError: Always.
    """
    _refused()


def mark(msg: str) -> Never:
    """Refused.

    Args:
        msg: The name of a mark.

    Raises:
        RuntimeError: Always.
    """
    _refused()


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Generator[None]:
    """Refused when the block begins.

    Args:
        msg: The name of the range, a format for the other arguments.
        *args: What it formats.
        **kwargs: What it formats.

    Raises:
        RuntimeError: Always.
    """
    range_push(msg.format(*args, **kwargs))
    yield
