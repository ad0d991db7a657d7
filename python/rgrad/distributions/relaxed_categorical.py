"""Probabilities in the place of classes, whose samples have gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Size, Tensor
from . import constraints
from ._parametric import OfCategorical
from .categorical import Categorical
from .distribution import _NO_SHAPE
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """The distribution of logarithms of :class:`RelaxedOneHotCategorical` (Maddison and others, 2017).

    Args:
        temperature: How relaxed: a tensor or a number, more than 0.
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Example:
        >>> ExpRelaxedCategorical = rgrad.distributions.relaxed_categorical.ExpRelaxedCategorical
        >>> ExpRelaxedCategorical(1.0, rgrad.ones(2)).log_prob(rgrad.tensor([0.5, 0.5]).log())
        tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        param = self._categorical._param
        self.temperature = _core.as_tensor(temperature, dtype=param.dtype, device=param.device)
        super().__init__(self._categorical.batch_shape, param.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        super(ExpRelaxedCategorical, new).__init__(Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        drawn = _core.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device)
        gumbels = -(-clamp_probs(drawn).log()).log()
        return ((self.logits + gumbels) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        k = self.event_shape[0]
        scores = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(k) + (k - 1) * self.temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """A distribution of probabilities, which are near to those of one class when the temperature is low.

    Args:
        temperature: How relaxed: a tensor or a number, more than 0.
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Example:
        >>> rgrad.distributions.RelaxedOneHotCategorical(1.0, rgrad.ones(2)).log_prob(rgrad.tensor([0.5, 0.5]))
        tensor(0.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> Tensor:
        """How relaxed."""
        return self.base_dist.temperature  # type: ignore[no-any-return]

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits  # type: ignore[no-any-return]

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self.base_dist.probs  # type: ignore[no-any-return]
