"""Gumbel's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from . import constraints
from ._parametric import expand_transformed
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The distribution of the largest of many numbers.

    Args:
        loc: The mode: a tensor or a number.
        scale: The scale, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.Gumbel(0.0, 1.0).log_prob(rgrad.tensor(0.0))
        tensor(-1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info, one = finfo(self.loc.dtype), _core.ones_like(self.scale)
        # Without the ends, whose logarithms are infinite.
        base = Uniform(one * info.tiny, one - info.eps, validate_args=validate_args)
        log = ExpTransform().inv
        transforms = [log, AffineTransform(0, -one), log, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        return super().expand(batch_shape, expand_transformed(self, new, batch_shape, "loc", "scale"))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # Through the transforms it would lose its digits.
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
