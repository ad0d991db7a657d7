"""The continuous uniform distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from . import constraints
from ._parametric import Parametric
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Parametric):
    """The uniform distribution on the numbers from ``low`` up to, but not including, ``high``.

    Args:
        low: The lower end: a tensor or a number.
        high: The upper end: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``low`` is not below ``high``.

    Example:
        >>> rgrad.distributions.Uniform(0.0, 2.0).log_prob(rgrad.tensor(1.0))
        tensor(-0.6931)
    """

    has_rsample = True
    _state = ("low", "high")

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Each end lies on its side of the other one."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The numbers that are drawn."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * math.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        made = _core.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + made * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (self.high > value)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
