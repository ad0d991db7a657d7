"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Size, Tensor
from ..linalg import cholesky, solve_triangular
from ..linalg._factor import cholesky_inverse
from . import constraints
from ._parametric import Parametric
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]

_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors, whose batches are broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """The squared lengths of ``inverse(bL) @ bx``: triangular matrices, and vectors with at least their batch.

    Further dimensions of the vectors become columns of one right side, so that a factor is not repeated for them.
    """
    more = max(bx.dim() - bL.dim() + 1, 0)
    columns = bx.reshape((-1, *bx.shape[more:])).movedim(0, -1)
    squares = solve_triangular(bL, columns, upper=False).pow(2).sum(-2).movedim(-1, 0)
    return squares.reshape((*bx.shape[:more], *squares.shape[1:]))


def _log_diagonal(tril: Tensor) -> Tensor:
    """The logarithm of the determinant of triangular matrices."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The lower triangular factor of the inverse of matrices.

    Turned by 180 degrees a matrix has a lower factor where it has an upper one; its inverse's factor follows from that.
    """
    upper = cholesky(P.flip(-2, -1)).flip(-2, -1)
    identity = _core.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return solve_triangular(upper.mT, identity, upper=False)


def tril_of(form: str, matrix: Tensor) -> Tensor:
    """The lower triangular factor of the covariance that a matrix of one of the forms stands for."""
    if form == "scale_tril":
        return matrix
    return cholesky(matrix) if form == "covariance_matrix" else _precision_to_scale_tril(matrix)


class OfCovariance(Parametric):
    """A distribution with a covariance in one of three forms; the others are made when first read, and kept."""

    # As it was given: without the dimensions of the batch that others have.
    _unbroadcasted_scale_tril: Tensor

    def _set_covariance(self, **forms: Tensor | None) -> tuple[str, Tensor] | None:
        """The form that is given and its name; None unless there is exactly one."""
        given = [(name, matrix) for name, matrix in forms.items() if matrix is not None]
        return given[0] if len(given) == 1 else None

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self.batch_shape, *matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        tril = self._unbroadcasted_scale_tril
        return self._spread(tril @ tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return self._spread(cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(OfCovariance):
    """The normal distribution of vectors. Exactly one of the three matrices is given.

    Args:
        loc: The mean.
        covariance_matrix: The covariance, which is positive definite.
        precision_matrix: The inverse of the covariance.
        scale_tril: The lower triangular factor of the covariance, with a positive diagonal; it costs least.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Not exactly one matrix is given, there are too few dimensions, or a matrix violates its constraint.

    Example:
        >>> d = rgrad.distributions.MultivariateNormal(rgrad.zeros(2), rgrad.eye(2))
        >>> d.log_prob(rgrad.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _state = ("loc", *_FORMS)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = self._set_covariance(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if given is None:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        form, matrix = given
        if matrix.dim() < 2:
            what = "scale_tril matrix" if form == "scale_tril" else form
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = Size(_core.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.__dict__[form] = matrix.expand(*batch_shape, -1, -1)
        self.loc = loc.expand(*batch_shape, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = tril_of(form, matrix)

    def expand(self, batch_shape: Sequence[int], _instance: MultivariateNormal | None = None) -> MultivariateNormal:
        new: MultivariateNormal = super().expand(batch_shape, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self.loc.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        made = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, made)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squares = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + squares) - _log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi))
        return (constant + _log_diagonal(self._unbroadcasted_scale_tril)).expand(self.batch_shape)
