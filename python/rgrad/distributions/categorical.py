"""The distribution of class numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Size, Tensor
from .._runtime.info import finfo
from ..autograd.grad_mode import no_grad
from . import constraints
from ._parametric import OfProbabilities, enumerated, one_of

__all__ = ["Categorical"]


class Categorical(OfProbabilities):
    """The distribution of class numbers.

    Args:
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Example:
        >>> rgrad.distributions.Categorical(rgrad.tensor([1.0, 3.0])).log_prob(rgrad.tensor(1))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    has_enumerate_support = True
    _state = (*OfProbabilities._state, "_num_events")
    _is_binary = False

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        name, given = one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        made = given / given.sum(-1, keepdim=True) if logits is None else given - given.logsumexp(-1, keepdim=True)
        self.__dict__[name] = self._param = made
        self._num_events = made.shape[-1]
        super().__init__(Size(made.shape[:-1]), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The class numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self._constant(math.nan, self.probs)

    @property
    def mode(self) -> Tensor:
        made: Tensor = self.probs.argmax(-1)
        return made

    @property
    def variance(self) -> Tensor:
        return self._constant(math.nan, self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            made = _core.multinomial(rows, math.prod(sample_shape), True).mT
        return made.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        at, logits = _core.broadcast_tensors(value.to(_core.int64).unsqueeze(-1), self.logits)
        made: Tensor = logits.gather(-1, at[..., :1]).squeeze(-1)
        return made

    def entropy(self) -> Tensor:
        # A class of probability 0 adds nothing, although its logit is -inf.
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        made: Tensor = -(logits * self.probs).sum(-1)
        return made

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerated(_core.arange(self._num_events, device=self._param.device), self.batch_shape, expand)
