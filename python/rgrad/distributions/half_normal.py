"""The distribution of absolute values of normal numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The distribution of ``abs(x)`` for a normal ``x`` with the mean 0.

    Args:
        scale: The standard deviation of ``x``, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``scale`` is not positive.

    Example:
        >>> rgrad.distributions.HalfNormal(1.0).log_prob(rgrad.tensor(0.0))
        tensor(-0.2258)
    """

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self._of_both_sides(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    # Without a detour through both sides' probabilities, which cancels near 0.
    def cdf(self, value: Tensor) -> Tensor:
        return _core.erf(self._checked(value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * math.sqrt(2) * value.erfinv()
