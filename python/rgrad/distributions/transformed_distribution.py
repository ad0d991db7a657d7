"""Distributions of transformed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import _NO_SHAPE, Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``f(x)`` for a value ``x`` of another one.

    The logarithm of its density is that of ``x`` minus the logarithm of the absolute determinant of ``f``'s derivative.

    Args:
        base_distribution: The distribution of ``x``; its batch is expanded to what the transforms need.
        transforms: ``f``: a transform, or a list of those that are called one after the other.
        validate_args: Check values.

    Raises:
        ValueError: ``transforms`` is neither, or values have fewer dimensions than they need.

    Example:
        >>> base = rgrad.distributions.Normal(0.0, 1.0)
        >>> made = rgrad.distributions.TransformedDistribution(base, rgrad.distributions.ExpTransform())
        >>> made.log_prob(rgrad.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints = {}  # noqa: RUF012
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")

        own_dims = len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        whole = ComposeTransform(self.transforms)
        dims_before, dims_after = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < dims_before:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {dims_before}, but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        needed = whole.inverse_shape(shape)
        if base_shape != needed:
            base_distribution = base_distribution.expand(needed[: len(needed) - own_dims])
        if dims_before > own_dims:
            base_distribution = Independent(base_distribution, dims_before - own_dims)
        self.base_dist = base_distribution
        # Either the transforms or the values before them have the more dimensions.
        event_dim = max(dims_after, own_dims + dims_after - dims_before)
        assert len(shape) >= event_dim, f"the transforms give the shape {shape}, which has no {event_dim} dimensions"
        cut = len(shape) - event_dim
        super().__init__(Size(shape[:cut]), Size(shape[cut:]), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        wanted = Size(batch_shape)
        shape = wanted + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        super(TransformedDistribution, new).__init__(wanted, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        end = self.transforms[-1].codomain
        more = len(self.event_shape) - end.event_dim
        return constraints.independent(end, more) if more > 0 else end

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    def sample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = _NO_SHAPE) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        made: Tensor | float = 0.0
        dims = len(self.event_shape)
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(before, value)
            made = made - _sum_rightmost(term, dims - transform.domain.event_dim)
            value = before
        return made + _sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """``1 - value`` where the transforms together are decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        made: Tensor = sign * (value - 0.5) + 0.5
        return made

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
