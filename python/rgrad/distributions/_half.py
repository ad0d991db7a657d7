"""What the halves of distributions around 0 share."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """The distribution of ``abs(x)``, where that of ``x`` is symmetric around 0 and has a scale."""

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True

    def _of_both_sides(self, base: Distribution, validate_args: bool | None) -> None:
        TransformedDistribution.__init__(self, base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of both sides."""
        return self.base_dist.scale  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        return _core.zeros_like(self.scale)

    def _checked(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return _core.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return _core.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]
