"""Numbers between 0 and 1 in the place of truth values, whose samples have gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from . import constraints
from ._parametric import OfProbabilities
from .distribution import _NO_SHAPE
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, probs_to_logits

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(OfProbabilities):
    """The distribution of logits of :class:`RelaxedBernoulli` (Maddison and others, The Concrete Distribution, 2017).

    Args:
        temperature: How relaxed: a tensor or a number, more than 0.
        probs: The probability of 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or a probability is outside of 0 to 1.

    Example:
        >>> LogitRelaxedBernoulli = rgrad.distributions.relaxed_bernoulli.LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(1.0, 0.5).log_prob(rgrad.tensor(0.0))
        tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.real
    _state = OfProbabilities._state

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        self.temperature = _core.as_tensor(temperature, dtype=self._param.dtype, device=self._param.device)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = _core.rand(shape, dtype=self._param.dtype, device=self._param.device)
        odds = probs_to_logits(drawn, is_binary=True) + probs_to_logits(self.probs, is_binary=True)
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away + 2 * _core.logsigmoid(-away)


class RelaxedBernoulli(TransformedDistribution):
    """A distribution of numbers between 0 and 1, which are near these when the temperature is low.

    Args:
        temperature: How relaxed: a tensor or a number, more than 0.
        probs: The probability of 1: a tensor or a number.
        logits: The logarithm of the odds, in its place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or a probability is outside of 0 to 1.

    Example:
        >>> rgrad.distributions.RelaxedBernoulli(1.0, 0.5).log_prob(rgrad.tensor(0.5))
        tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Tensor:
        """How relaxed."""
        return self.base_dist.temperature  # type: ignore[no-any-return]

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds."""
        return self.base_dist.logits  # type: ignore[no-any-return]

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs  # type: ignore[no-any-return]
