"""Numbers that PyTorch's compiler does not know yet. Nothing is compiled here, so all numbers are Python's own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class _Unknown:
    def __init__(self, node: Any) -> None:
        self.node = node


class SymInt(_Unknown):
    """An integer that a compiler does not know yet. Nothing makes one here: it is for :func:`isinstance`."""


class SymFloat(_Unknown):
    """A float that a compiler does not know yet. Nothing makes one here: it is for :func:`isinstance`."""


class SymBool(_Unknown):
    """A bool that a compiler does not know yet. Nothing makes one here: it is for :func:`isinstance`."""


def sym_int(a: Any) -> int:
    """Round towards 0.

    Example:
        >>> rgrad.sym_int(-2.7)
        -2
    """
    return int(math.ceil(a) if a < 0 else math.floor(a))


def sym_float(a: Any) -> float:
    """Give a number as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """Give the greater number, as a float if either is one.

    Example:
        >>> rgrad.sym_max(3, 1.0)
        3.0
    """
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Give the smaller number, as a float if either is one."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> bool:
    """Give the opposite of a bool."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Give ``t`` if ``b`` holds, else ``f``.

    Raises:
        AssertionError: ``b`` is no bool, or ``t`` and ``f`` differ in type.
    """
    if not isinstance(b, bool):
        raise AssertionError(f"sym_ite: expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: type mismatch: {type(t)} vs {type(f)}. Both values must have one type")
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """Add numbers.

    Example:
        >>> rgrad.sym_sum([1, 2, 3])
        6
    """
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """Take the square root of a number."""
    return math.sqrt(a)
