"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .categorical import Categorical
from .distribution import _NO_SHAPE, Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The distribution of a value of one of several components, which is drawn first.

    Args:
        mixture_distribution: The probabilities of the components. Its batch must broadcast with that of the components,
            without the last dimension.
        component_distribution: The components, along the last dimension of its batch.
        validate_args: Check values.

    Raises:
        ValueError: One of them is no such distribution, or their batches or numbers of components do not match.

    Example:
        >>> weights = rgrad.distributions.Categorical(rgrad.ones(2))
        >>> parts = rgrad.distributions.Normal(rgrad.tensor([-1.0, 1.0]), 1.0)
        >>> rgrad.distributions.MixtureSameFamily(weights, parts).log_prob(rgrad.tensor(0.0))
        tensor(-1.4189)
    """

    arg_constraints = {}  # noqa: RUF012
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of torch.distributions.Categorical, "
                f"got {type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution, "
                f"got {type(component_distribution).__name__}"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        weights, parts = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(weights), reversed(parts), strict=False):
            if a != b and 1 not in (a, b):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({parts})"
                )
        have, want = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if have != want:
            raise ValueError(
                f"`mixture_distribution component` ({have}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({want})"
            )
        self._num_component = have
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(parts, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        super(MixtureSameFamily, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The probabilities of the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # The mean of the variances and the variance of the means.
        parts = self.component_distribution
        return self._average(parts.variance) + self._average((parts.mean - self._pad(self.mean)).pow(2))

    def cdf(self, x: Tensor) -> Tensor:
        probs: Tensor = self.mixture_distribution.probs
        return (self.component_distribution.cdf(self._pad(x)) * probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        weights: Tensor = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(self._pad(x)) + weights).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        with no_grad():
            weights = self.mixture_distribution
            if weights.batch_shape != self.batch_shape:
                weights = weights.expand(self.batch_shape)
            chosen = weights.sample(sample_shape)
            parts = self.component_distribution.sample(sample_shape)
            dim = chosen.dim()
            at = chosen.reshape((*chosen.shape, *[1] * (1 + self._event_ndims)))
            return parts.gather(dim, at.expand((*chosen.shape, 1, *self.event_shape))).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """Values with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _average(self, of_parts: Tensor) -> Tensor:
        """The mean over the components, by their probabilities."""
        probs: Tensor = self.mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *[1] * self._event_ndims))
        return (probs * of_parts).sum(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
