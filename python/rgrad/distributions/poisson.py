"""Poisson's distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._functions.methods import poisson
from ..autograd.grad_mode import no_grad
from ..special import gammaln
from . import constraints
from ._parametric import Parametric
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(Parametric, ExponentialFamily):
    """The distribution of the number of events that happen at a rate.

    Args:
        rate: The mean number, 0 or more: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``rate`` is negative.

    Example:
        >>> rgrad.distributions.Poisson(1.0).log_prob(rgrad.tensor(0.0))
        tensor(-1.)
    """

    arg_constraints = {"rate": constraints.nonnegative}  # noqa: RUF012
    support = constraints.nonnegative_integer
    _state = ("rate",)

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return _core.xlogy(value, rate) - rate - gammaln(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
