"""Cauchy's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from . import constraints
from ._parametric import Parametric
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Parametric):
    """The distribution of the ratio of two centred normal numbers, which has no mean.

    Args:
        loc: The median: a tensor or a number.
        scale: Half of the width at half of the height, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.Cauchy(0.0, 1.0).cdf(rgrad.tensor(1.0))
        tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    has_rsample = True
    _state = ("loc", "scale")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self._constant(math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._constant(math.inf, self.loc)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z * z).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        # The angle of (loc - value, scale) keeps its digits in the lower tail, where 1 / 2 + atan(z) / pi loses them.
        down, scale = _core.broadcast_tensors(self.loc - value, self.scale)
        return _core.atan2(scale, down) / math.pi

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
