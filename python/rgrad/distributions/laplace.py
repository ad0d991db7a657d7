"""Laplace's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from . import constraints
from ._parametric import Parametric
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Parametric):
    """The distribution with exponential tails on both sides.

    Args:
        loc: The mean: a tensor or a number.
        scale: The mean distance from it, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.Laplace(0.0, 1.0).log_prob(rgrad.tensor(1.0))
        tensor(-1.6931)
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
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # From an open interval: the ends would give infinite samples.
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * (u.sign() * (-u.abs()).log1p())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        tail = 0.5 * (-z.abs()).exp()
        return _core.where(z < 0, tail, 1 - tail)

    def icdf(self, value: Tensor) -> Tensor:
        lower = value < 0.5
        tail = _core.where(lower, value, 1 - value)
        z = (2 * tail).log()
        return self.loc + self.scale * _core.where(lower, z, -z)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
