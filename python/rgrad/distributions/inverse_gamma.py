"""The inverse gamma distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from ..special import digamma, gammaln
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of the inverse of numbers with a gamma distribution.

    Args:
        concentration: The shape, more than 0: a tensor or a number.
        rate: The rate of the gamma distribution, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.InverseGamma(1.0, 1.0).log_prob(rgrad.tensor(1.0))
        tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}  # noqa: RUF012
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_full((), -1)), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        shape = self.concentration
        return (self.rate / (shape - 1)).masked_fill(shape <= 1, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        shape = self.concentration
        made = self.rate.square() / ((shape - 1).square() * (shape - 2))
        return made.masked_fill(shape <= 2, math.inf)

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape + self.rate.log() + gammaln(shape) - (1 + shape) * digamma(shape)
