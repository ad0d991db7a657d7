"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._functions.methods import poisson
from ..autograd.grad_mode import no_grad
from ..special import gammaln
from . import constraints
from ._parametric import OfProbabilities
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OfProbabilities):
    """The distribution of the number of successes before a number of failures is reached.

    Args:
        total_count: The number of failures, 0 or more, which may be no integer: a tensor or a number.
        probs: The probability of success, at least 0 and less than 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither of ``probs`` and ``logits`` are given, or a parameter is not in its range.

    Example:
        >>> rgrad.distributions.NegativeBinomial(1, 0.5).log_prob(rgrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _state = ("total_count", *OfProbabilities._state)

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._set_odds(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        # A number of 0 is allowed here, and not as a concentration.
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        # Without failures there is no success: gammaln(0) - gammaln(0) stands for 0.
        counted = n.masked_fill(n + value == 0, 1)
        ways = gammaln(counted + value) - gammaln(1 + value) - gammaln(counted)
        return ways + n * _core.logsigmoid(-self.logits) + value * _core.logsigmoid(self.logits)
