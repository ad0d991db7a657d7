"""The distribution of classes as unit vectors."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from . import constraints
from ._parametric import OfCategorical, Parametric, enumerated
from .categorical import Categorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


def _unit_vectors(at: Tensor, like: Tensor) -> Tensor:
    """A 1 at each place, along a new last dimension as long as that of ``like``."""
    classes = _core.arange(like.shape[-1], device=like.device)
    return (at.unsqueeze(-1) == classes).to(like.dtype)


class OneHotCategorical(OfCategorical, Parametric):
    """The distribution of classes as vectors with one 1 and zeros elsewhere.

    Args:
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, there is no dimension, or a probability is negative.

    Example:
        >>> rgrad.distributions.OneHotCategorical(rgrad.tensor([1.0, 3.0])).log_prob(rgrad.tensor([0.0, 1.0]))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}  # noqa: RUF012
    support = constraints.one_hot
    has_enumerate_support = True
    _state = ("_categorical",)

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return _unit_vectors(self._categorical.mode, self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return _unit_vectors(self._categorical.sample(sample_shape), self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _core.eye(self.event_shape[0], dtype=self._param.dtype, device=self._param.device)
        return enumerated(values, self.batch_shape, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The distribution of classes as unit vectors, whose samples have the gradient of the probabilities.

    The estimator is the straight-through one: Bengio, Leonard and Courville, Estimating or propagating gradients
    through stochastic neurons, 2013.

    Args:
        probs: Probabilities of the classes along the last dimension, divided by their sum.
        logits: Their logarithms up to a constant, in their place.
        validate_args: Check parameters and values.

    Example:
        >>> d = rgrad.distributions.OneHotCategoricalStraightThrough(rgrad.tensor([1.0, 0.0]))
        >>> d.rsample()
        tensor([1., 0.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
