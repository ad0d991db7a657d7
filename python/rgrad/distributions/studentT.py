"""Student's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._core import Tensor
from ..special import digamma, gammaln
from . import constraints
from ._parametric import Parametric
from .chi2 import Chi2
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Parametric):
    """Student's distribution: of the mean of normal numbers over its estimated deviation.

    Args:
        df: The degrees of freedom, more than 0: a tensor or a number.
        loc: The median: a tensor or a number.
        scale: The scale, more than 0: a tensor or a number.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``df`` or ``scale`` is not positive, or a parameter is nan.

    Example:
        >>> rgrad.distributions.StudentT(2.0).log_prob(rgrad.tensor(0.0))
        tensor(-1.0397)
    """

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _state = ("df", "loc", "scale", "_chi2")

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = self.df.masked_fill(~finite, 3)
        made = (self.scale.pow(2) * df / (df - 2)).masked_fill(~finite, math.inf)
        return made.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * (normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z * z / self.df).log1p() - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        half = 0.5 * self.df
        return self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi)) + gammaln(half) - gammaln(half + 0.5)

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        return self._log_normalizer() + (half + 0.5) * (digamma(half + 0.5) - digamma(half))
