"""The normal distribution of vectors with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..linalg import cholesky, solve_triangular
from . import constraints
from ._parametric import Parametric
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _log_diagonal
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]

# The capacitance matrix of a factor W and a diagonal D is C = I + W.T @ inverse(D) @ W. With it
#     det(W @ W.T + D) = det(C) * det(D)
#     inverse(W @ W.T + D) = inverse(D) - inverse(D) @ W @ inverse(C) @ W.T @ inverse(D)


def _identity_plus(matrix: Tensor) -> Tensor:
    return matrix + _core.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The lower triangular factor of the capacitance matrix."""
    return cholesky(_identity_plus((W.mT / D.unsqueeze(-2)) @ W))


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The logarithm of the determinant of the covariance."""
    return 2 * _log_diagonal(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The products of vectors with the inverse of the covariance and themselves."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Parametric):
    """The normal distribution of vectors with the covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    It factorises matrices of the rank alone.

    Args:
        loc: The mean.
        cov_factor: The factor: as many rows as the mean has numbers, as many columns as the rank is.
        cov_diag: The diagonal, which is positive.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Shapes do not fit, or a parameter violates its constraint.

    Example:
        >>> d = rgrad.distributions.LowRankMultivariateNormal(rgrad.zeros(2), rgrad.ones(2, 1), rgrad.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _state = ("loc", "cov_diag", "cov_factor")
    # As they were given: without the dimensions of the batch that others have.
    _as_given = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m, got {tuple(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape {event_shape}, got {tuple(cov_diag.shape)}"
            )
        try:
            columns, self.cov_factor, diagonal = _core.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc, self.cov_diag = columns[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Sequence[int], _instance: LowRankMultivariateNormal | None = None
    ) -> LowRankMultivariateNormal:
        new: LowRankMultivariateNormal = super().expand(batch_shape, _instance)
        for name in self._as_given:
            new.__dict__[name] = self.__dict__[name]
        return new

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Factor, diagonal and capacitance as they were given."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self.batch_shape, *matrix.shape[-2:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        factor, diagonal, _ = self._parts()
        return (factor.pow(2).sum(-1) + diagonal).expand(self.loc.shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        # Scaled by the diagonal the matrix has eigenvalues from 1 on, and so a well-conditioned factor.
        factor, diagonal, _ = self._parts()
        root = diagonal.sqrt().unsqueeze(-1)
        scaled = factor / root
        return self._spread(root * cholesky(_identity_plus(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor, diagonal, _ = self._parts()
        return self._spread(factor @ factor.mT + _core.diag_embed(diagonal))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        factor, diagonal, capacitance = self._parts()
        half = solve_triangular(capacitance, factor.mT / diagonal.unsqueeze(-2), upper=False)
        return self._spread(_core.diag_embed(diagonal.reciprocal()) - half.mT @ half)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        factor, diagonal, _ = self._parts()
        shape = self._extended_shape(sample_shape)
        kind, device = self.loc.dtype, self.loc.device
        common = _standard_normal((*shape[:-1], factor.shape[-1]), dtype=kind, device=device)
        own = _standard_normal(shape, dtype=kind, device=device)
        return self.loc + _batch_mv(factor, common) + diagonal.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        factor, diagonal, capacitance = self._parts()
        squares = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, capacitance)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + _batch_lowrank_logdet(*self._parts()) + squares)

    def entropy(self) -> Tensor:
        constant = self.event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (constant + _batch_lowrank_logdet(*self._parts()))).expand(self.batch_shape)
