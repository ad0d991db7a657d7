"""Wishart's distribution of matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import _core
from .._core import Size, Tensor
from .._runtime.info import finfo
from ..linalg import slogdet, solve_triangular
from ..special import digamma, multigammaln
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _FORMS, OfCovariance, _log_diagonal, tril_of

__all__ = ["Wishart"]


def _halves(p: int, like: Tensor) -> Tensor:
    """The numbers 0, 1/2, 1, ... below ``p / 2``."""
    return _core.arange(p, dtype=like.dtype, device=like.device) / 2


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    assert bool((x > (p - 1) / 2).all()), "Wrong domain for multivariate digamma function."
    return digamma(x.unsqueeze(-1) - _halves(p, x)).sum(-1)


class Wishart(OfCovariance, ExponentialFamily):
    """The distribution of sums of products of normal vectors with themselves.

    Exactly one of the three matrices is given.

    Args:
        df: The degrees of freedom, more than the size of the matrix minus 1: a tensor or a number.
        covariance_matrix: The covariance of the vectors, which is positive definite.
        precision_matrix: The inverse of the covariance.
        scale_tril: The lower triangular factor of the covariance, with a positive diagonal; it costs least.
        validate_args: Check parameters and values.

    Raises:
        AssertionError: Not exactly one matrix is given.
        ValueError: There are too few dimensions or degrees of freedom, or a matrix violates its constraint.

    Example:
        >>> d = rgrad.distributions.Wishart(rgrad.tensor(3.0), covariance_matrix=rgrad.eye(2))
        >>> d.mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _state = ("df", "_unbroadcasted_scale_tril", "_dist_chi2", *_FORMS)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The matrices, and how many degrees of freedom they need."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._set_covariance(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if given is None:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        form, matrix = given
        if matrix.dim() < 2:
            raise ValueError(f"{form} must be at least two-dimensional, with optional leading batch dimensions")
        if not isinstance(df, Tensor):
            df = _core.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = Size(_core.broadcast_shapes(matrix.shape[:-2], df.shape))
        p = matrix.shape[-1]
        self.df = df.expand(batch_shape)
        if not constraints.all_inside(df > p - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        if not constraints.all_inside(df >= p):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self.__dict__[form] = matrix.expand(*batch_shape, -1, -1)
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = self._spread(tril_of(form, matrix))
        # The squares of the diagonal of Bartlett's factor.
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - 2 * _halves(p, self.df), validate_args=validate_args)

    def _per_matrix(self, value: Tensor) -> Tensor:
        return value[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[-1] - 1
        return self._per_matrix(factor.masked_fill(factor <= 0, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self._per_matrix(self.df) * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples by Bartlett's decomposition: normal numbers below a diagonal of roots of chi-squared ones."""
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=finfo(roots.dtype).eps)
        below = _core.randn(self._extended_shape(sample_shape), dtype=roots.dtype, device=roots.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + _core.diag_embed(roots))
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Draw matrices with gradients with respect to the parameters.

        Args:
            sample_shape: How many.
            max_try_correction: How often matrices that are singular to the dtype's precision are drawn again; 10 by
                default. A warning tells of them.

        Returns:
            Shape ``sample_shape + batch_shape + event_shape``.
        """
        sample = self._bartlett_sampling(sample_shape)
        for k in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if constraints.all_inside(~singular):
                break
            if not k:
                warnings.warn("Singular sample detected.", stacklevel=2)
            sample = _core.where(self._per_matrix(singular), self._bartlett_sampling(sample_shape), sample)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, p, tril = self.df, self.event_shape[-1], self._unbroadcasted_scale_tril
        half = solve_triangular(tril, value, upper=False)
        trace = solve_triangular(tril.mT, half, upper=True).diagonal(dim1=-2, dim2=-1).sum(-1)
        normalizer = nu * (p * math.log(2) / 2 + _log_diagonal(tril)) + multigammaln(nu / 2, p)
        return (nu - p - 1) / 2 * slogdet(value)[1] - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        nu, p = self.df, self.event_shape[-1]
        scale = (p + 1) * (p * math.log(2) / 2 + _log_diagonal(self._unbroadcasted_scale_tril))
        return scale + multigammaln(nu / 2, p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p) + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self.event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self.event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - slogdet(-2 * x)[1]) + multigammaln(half, p)
