"""Pareto's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from . import constraints
from ._parametric import expand_transformed
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The distribution whose density falls with a power, from a lower end on.

    Args:
        scale: The lower end, more than 0: a tensor or a number.
        alpha: The power of what lies above a number, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.Pareto(1.0, 2.0).cdf(rgrad.tensor(2.0))
        tensor(0.7500)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}  # noqa: RUF012

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Pareto, _instance)
        return super().expand(batch_shape, expand_transformed(self, new, batch_shape, "scale", "alpha"))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The numbers from the lower end on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)  # infinite below
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)  # infinite below
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
