"""What parameters and values of a distribution must satisfy."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "dependent",
    "greater_than",
    "integer_interval",
    "interval",
    "less_than",
    "nonnegative",
    "positive",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A region of values.

    Args:
        text: How errors name it.
        event_dim: How many dimensions a value has.
    """

    def __init__(self, text: str, event_dim: int = 0) -> None:
        self._text = text
        self.event_dim = event_dim
        self.is_discrete = False

    def __repr__(self) -> str:
        return self._text

    def check(self, value: Tensor) -> Tensor:
        """Tell which values lie inside.

        Args:
            value: Values.

        Returns:
            A bool tensor without the dimensions of a value.
        """
        return (value == value) if not self.event_dim else (value == value).all(-1)


class _Between(Constraint):
    def __init__(self, text: str, low: Any, high: Any, open_low: bool = False, whole: bool = False) -> None:
        super().__init__(text)
        self.lower_bound, self.upper_bound = low, high
        self._open, self.is_discrete = open_low, whole

    def check(self, value: Tensor) -> Tensor:
        inside = value == value
        if self.lower_bound is not None:
            inside = inside & (value > self.lower_bound if self._open else value >= self.lower_bound)
        if self.upper_bound is not None:
            inside = inside & (value <= self.upper_bound)
        return inside & (value % 1 == 0) if self.is_discrete else inside


class _Below(Constraint):
    def __init__(self, text: str, high: Any) -> None:
        super().__init__(text)
        self.upper_bound = high

    def check(self, value: Tensor) -> Tensor:
        made: Tensor = value < self.upper_bound
        return made


class _Boolean(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Simplex(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


def interval(lower_bound: float | Tensor, upper_bound: float | Tensor) -> Constraint:
    """Numbers from a lower to an upper bound.

    Args:
        lower_bound: The least number.
        upper_bound: The largest number.
    """
    return _Between(f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})", lower_bound, upper_bound)


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    """Integers from a lower to an upper bound.

    Args:
        lower_bound: The least integer.
        upper_bound: The largest integer.
    """
    text = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Between(text, lower_bound, upper_bound, whole=True)


def less_than(upper_bound: float | Tensor) -> Constraint:
    """Numbers below a bound.

    Args:
        upper_bound: The bound.
    """
    return _Below(f"LessThan(upper_bound={upper_bound})", upper_bound)


def greater_than(lower_bound: float | Tensor) -> Constraint:
    """Numbers above a bound.

    Args:
        lower_bound: The bound.
    """
    return _Between(f"GreaterThan(lower_bound={lower_bound})", lower_bound, None, open_low=True)


boolean: Constraint = _Boolean("Boolean()")
boolean.is_discrete = True
dependent = Constraint("Dependent()")
nonnegative: Constraint = _Between("GreaterThanEq(lower_bound=0.0)", 0.0, None)
positive = greater_than(0.0)
real = Constraint("Real()")
real_vector = Constraint("IndependentConstraint(Real(), 1)", 1)
simplex: Constraint = _Simplex("Simplex()", 1)
unit_interval = interval(0.0, 1.0)


def all_inside(inside: Tensor) -> bool:
    """Whether a check found nothing outside; unknown inside of ``vmap``."""
    return bool(_core._level_of(inside)) or bool(inside.all())
