"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._functions.methods import binomial
from ..autograd.grad_mode import no_grad
from ..special import gammaln
from . import constraints
from ._parametric import OfProbabilities, enumerated

__all__ = ["Binomial"]


class Binomial(OfProbabilities):
    """The distribution of the number of successes in independent trials.

    Args:
        total_count: The number of trials: a tensor or a number.
        probs: The probability of success: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither of ``probs`` and ``logits`` are given, or a parameter is not in its range.

    Example:
        >>> rgrad.distributions.Binomial(2, 0.5).log_prob(rgrad.tensor(1.0)).exp()
        tensor(0.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _state = ("total_count", *OfProbabilities._state)

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._set_odds(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The integers up to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        choices = gammaln(n + 1) - gammaln(value + 1) - gammaln(n - value + 1)
        return choices + value * self.logits + n * _core.logsigmoid(-self.logits)

    def _common_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{what}`: expected one number, got {self.total_count}"
            )
        return count

    def entropy(self) -> Tensor:
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(expand=False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._common_count("enumerate_support")
        values = _core.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return enumerated(values, self.batch_shape, expand)
