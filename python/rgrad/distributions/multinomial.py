"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..special import gammaln
from . import constraints
from ._parametric import OfCategorical, Parametric
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategorical, Parametric):
    """The distribution of how often each class is drawn.

    Args:
        total_count: The number of draws: an int, the same for the whole batch.
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        NotImplementedError: ``total_count`` is no int.
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Note:
        :meth:`log_prob` takes the number of draws from its values.

    Example:
        >>> rgrad.distributions.Multinomial(2, rgrad.ones(2)).log_prob(rgrad.tensor([1.0, 1.0])).exp()
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    _state = ("total_count", "_categorical", "_binomial")

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"inhomogeneous total_count is not supported: expected an int, got {type(total_count).__name__}"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Counts with the right sum."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = _core.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        return counts.scatter_add(-1, drawn, _core.ones_like(drawn)).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        ways = math.lgamma(self.total_count + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        # The mean of log(count!) of each class, whose counts are binomial; counts of 0 add nothing.
        repeated = (self._binomial.log_prob(counts).exp() * gammaln(counts + 1)).sum([0, -1])
        return self.total_count * self._categorical.entropy() - ways + repeated

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        ways = gammaln(value.sum(-1) + 1) - gammaln(value + 1).sum(-1)
        # A class that has no probability and is never drawn: 0 times -inf.
        possible = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return ways + (possible * value).sum(-1)
