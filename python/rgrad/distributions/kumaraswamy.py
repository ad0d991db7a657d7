"""Kumaraswamy's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..special import digamma, gammaln
from . import constraints
from ._parametric import expand_transformed
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution on 0 to 1 with the cdf ``1 - (1 - x**concentration1)**concentration0``.

    Args:
        concentration1: The inner exponent, more than 0: a tensor or a number.
        concentration0: The outer exponent, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.Kumaraswamy(1.0, 2.0).log_prob(rgrad.tensor(0.5))
        tensor(0.)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}  # noqa: RUF012
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = _core.ones_like(self.concentration0)
        base = Uniform(_core.zeros_like(one), one, validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new = expand_transformed(self, new, batch_shape, "concentration1", "concentration0")
        return super().expand(batch_shape, new)

    def _moment(self, n: int) -> Tensor:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (gammaln(a) + gammaln(b) - gammaln(a + b)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        # In logarithms: ((a - 1) / (a * b - 1)) ** (1 / a).
        none = (a < 1) | (b < 1)
        a, b = a.masked_fill(none, math.nan), b.masked_fill(none, math.nan)
        return (((a - 1).log() - (a * b - 1).log()) / a).exp()

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
