"""The distribution of a single trial."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._parametric import OfProbabilities, enumerated
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(OfProbabilities, ExponentialFamily):
    """The distribution of 1 with a probability, and 0 otherwise.

    Args:
        probs: The probability of 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or a probability is outside of 0 to 1.

    Example:
        >>> rgrad.distributions.Bernoulli(0.25).log_prob(rgrad.tensor(0.0))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _state = OfProbabilities._state

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        made: Tensor = self.probs
        return made

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        made: Tensor = self.probs * (1 - self.probs)
        return made

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return _core.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -_core.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return _core.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _core.arange(2, dtype=self._param.dtype, device=self._param.device)
        return enumerated(values, self.batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (_core.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -_core.logsigmoid(-x)
