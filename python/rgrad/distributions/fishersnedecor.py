"""The distribution of Fisher and Snedecor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._core import Tensor
from .._runtime.info import finfo
from ..special import gammaln
from . import constraints
from ._parametric import Parametric
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Parametric):
    """The distribution of the ratio of two estimated variances.

    Args:
        df1: The degrees of freedom above, more than 0: a tensor or a number.
        df2: The degrees of freedom below, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: A parameter is not positive.

    Example:
        >>> rgrad.distributions.FisherSnedecor(2.0, 2.0).log_prob(rgrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}  # noqa: RUF012
    support = constraints.positive
    has_rsample = True
    _state = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df, validate_args=validate_args) for df in (self.df1, self.df2))
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        made = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return made.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        above, below = (gamma.rsample(sample_shape) for gamma in (self._gamma1, self._gamma2))
        return (above / below).clamp(min=finfo(above.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = gammaln(half1) + gammaln(half2) - gammaln(half1 + half2)
        powers = half1 * ratio.log() + (half1 - 1) * value.log()
        return powers - (half1 + half2) * (ratio * value).log1p() - normalizer
