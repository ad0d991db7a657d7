"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from ..special import digamma, gammainc, gammaln
from . import constraints
from ._parametric import Parametric
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(Parametric, ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: The shape, more than 0: a tensor or a number.
        rate: The inverse of the scale, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.Gamma(2.0, 1.0).log_prob(rgrad.tensor(1.0))
        tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _state = ("concentration", "rate")

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _core._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # A sample that has become 0 would have an infinite density; its gradient is none of this correction's.
        value.detach().clamp_(min=finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = _core.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        shape = self.concentration
        return _core.xlogy(shape, self.rate) + _core.xlogy(shape - 1, value) - self.rate * value - gammaln(shape)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape - self.rate.log() + gammaln(shape) + (1 - shape) * digamma(shape)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return gammaln(x + 1) - (x + 1) * (-y).log()
