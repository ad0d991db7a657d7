"""The distribution of probabilities that a normal vector gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The distribution of the probabilities that :class:`StickBreakingTransform` makes of independent normal numbers.

    Args:
        loc: The means of the numbers, along the last dimension: a tensor or a number.
        scale: Their standard deviations, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.LogisticNormal(rgrad.zeros(3), 1.0).event_shape
        rgrad.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        """The means of the numbers."""
        return self.base_dist.base_dist.loc  # type: ignore[no-any-return]

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the numbers."""
        return self.base_dist.base_dist.scale  # type: ignore[no-any-return]
