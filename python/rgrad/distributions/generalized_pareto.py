"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from . import constraints
from ._parametric import Parametric
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Parametric):
    """The distribution of what exceeds a high threshold.

    It is the exponential one for a concentration of 0, has heavy tails above and an upper end below 0.

    Args:
        loc: The lower end: a tensor or a number.
        scale: The scale, more than 0: a tensor or a number.
        concentration: The shape: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.GeneralizedPareto(0.0, 1.0, 1.0).cdf(rgrad.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _state = ("loc", "scale", "concentration")

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The numbers from ``loc`` on, up to an end where the concentration is negative."""
        bounded = self.concentration < 0
        size = self.scale / self.concentration.masked_fill(~bounded, -1)
        return constraints.interval(self.loc, _core.where(bounded, self.loc - size, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where the distribution is taken for an exponential one, and a concentration that can be divided by."""
        flat = _core.isclose(self.concentration, _core.zeros_like(self.concentration))
        return flat, self.concentration.masked_fill(flat, 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_core.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        flat, shape = self._shape()
        power = 1 / shape + 1
        # A power of 0, of the uniform distribution, has no say at the upper end, where the logarithm is infinite.
        bent = _core.where(power == 0, power, power * (shape * z).log1p())
        return -self.scale.log() - _core.where(flat, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability of what is larger than values.

        Args:
            value: Values.

        Returns:
            A tensor of logarithms.
        """
        self._check(value)
        z = (value - self.loc) / self.scale
        flat, shape = self._shape()
        return _core.where(flat, -z, -(shape * z).log1p() / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Compute the logarithm of :meth:`cdf`.

        Args:
            value: Values.

        Returns:
            A tensor of logarithms.
        """
        return self.cdf(value).log()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        flat, shape = self._shape()
        survival = (-value).log1p()
        return self.loc + self.scale * _core.where(flat, -survival, (-shape * survival).expm1() / shape)

    def _moment(self, limit: float, made: Tensor) -> Tensor:
        return made.masked_fill(self.concentration >= limit, math.nan)

    @property
    def mean(self) -> Tensor:
        shape = self.concentration.masked_fill(self.concentration >= 1, 0.5)
        return self._moment(1, self.loc + self.scale / (1 - shape))

    @property
    def variance(self) -> Tensor:
        shape = self.concentration.masked_fill(self.concentration >= 0.5, 0.25)
        return self._moment(0.5, self.scale.pow(2) / ((1 - shape).pow(2) * (1 - 2 * shape)))

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
