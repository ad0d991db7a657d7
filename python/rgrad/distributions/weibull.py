"""Weibull's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..special import gammaln
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, Transform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The distribution of the time until an event whose rate changes with a power of time.

    Args:
        scale: The scale, more than 0: a tensor or a number.
        concentration: The shape, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.Weibull(1.0, 1.0).log_prob(rgrad.tensor(2.0))
        tensor(-2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}  # noqa: RUF012
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(_core.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self) -> list[Transform]:
        return [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        TransformedDistribution.__init__(
            new, self.base_dist.expand(batch_shape), new._transforms(), validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * gammaln(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Tensor:
        shape = self.concentration
        return self.scale * ((shape - 1) / shape).clamp(min=0).pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return self.scale.pow(2) * (gammaln(1 + 2 * inverse).exp() - (2 * gammaln(1 + inverse)).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
