"""The distribution of absolute values of Cauchy's numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of ``abs(x)`` for an ``x`` of Cauchy's distribution around 0. It has no mean.

    Args:
        scale: The scale of ``x``, more than 0, and the median: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive.

    Example:
        >>> rgrad.distributions.HalfCauchy(1.0).cdf(rgrad.tensor(1.0))
        tensor(0.5000)
    """

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self._of_both_sides(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Tensor:
        return self.scale.new_full(self._extended_shape(), math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance  # type: ignore[no-any-return]

    # Without a detour through both sides' probabilities, which cancels near 0.
    def cdf(self, value: Tensor) -> Tensor:
        return (self._checked(value) / self.scale).atan() * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (value * (math.pi / 2)).tan()
