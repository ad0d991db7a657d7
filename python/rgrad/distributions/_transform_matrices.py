"""Transforms of vectors and matrices as wholes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core, linalg
from .._core import Size, Tensor
from .._runtime.info import finfo
from . import constraints
from ._transform_base import Transform, _need_dims, _Same
from ._transform_pointwise import _clipped_sigmoid
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


def _after_one(value: Tensor) -> Tensor:
    """A 1 before the elements of the last dimension."""
    return _core.cat([_core.ones_like(value[..., :1]), value], -1)


class CorrCholeskyTransform(Transform):
    """Vectors of ``D * (D - 1) / 2`` numbers to the Cholesky factors of ``D`` by ``D`` correlation matrices.

    The numbers are the rows of a strictly lower triangle. In each row, ``tanh`` of a number is the share, with its
    sign, of what the elements before it have left of the row's length 1; the diagonal takes the rest. So the squares
    are broken off as in :class:`StickBreakingTransform`.

    The determinant is that of the map to the strictly lower triangle of the factor (Stan's reference manual, Cholesky
    factors of correlation matrices).

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.CorrCholeskyTransform()(rgrad.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        share = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - share * share).sqrt().cumprod(-1)
        # The diagonal takes the whole of what is left.
        share = share + _core.eye(share.shape[-1], dtype=share.dtype, device=share.device)
        return share * _after_one(left[..., :-1])

    def _inverse(self, y: Tensor) -> Tensor:
        left = _after_one(1 - (y * y).cumsum(-1)[..., :-1])
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return share.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: object = None) -> Tensor:
        # What is left after an element counts for the next one in its row, so the diagonal below is where it is read.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = 2 * (math.log(2) - x + _core.logsigmoid(2 * x)).sum(-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _need_dims(shape, 1)
        n = shape[-1]
        d = (1 + math.isqrt(1 + 8 * n)) // 2
        if d * (d - 1) // 2 != n:
            raise ValueError(f"Input is not a flattened lower-diagonal number: got {n} elements")
        return Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _need_dims(shape, 2)
        d = shape[-1]
        if shape[-2] != d:
            raise ValueError(f"Input is not square: got the shape {tuple(shape)}")
        return Size((*shape[:-2], d * (d - 1) // 2))


class _ToSimplex(_Same):
    """A transform of vectors to vectors with the sum 1, which may have more elements."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _more = 0

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _need_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + self._more))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _need_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - self._more))


class SoftmaxTransform(_ToSimplex):
    """Vectors to as many probabilities, the exponentials divided by their sum. It is not bijective.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.SoftmaxTransform()(rgrad.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_ToSimplex):
    """Vectors to one more probability, each a share of what those before it have left of 1.

    The share is the sigmoid of the number, shifted so that zeros give equal probabilities. It is bijective.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.StickBreakingTransform()(rgrad.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    bijective = True
    _more = 1

    @staticmethod
    def _shift(value: Tensor) -> Tensor:
        """The logarithms of how many probabilities follow each number."""
        return _core.arange(value.shape[-1], 0, -1, dtype=value.dtype, device=value.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = _clipped_sigmoid(x - self._shift(x))
        left = (1 - share).cumprod(-1)
        return _core.cat([share, _core.ones_like(share[..., :1])], -1) * _after_one(left)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y[..., :-1]
        # Rounding may leave nothing, or less.
        left = (1 - y.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return y.log() - left.log() + self._shift(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # Each derivative is y * (1 - share), and 1 - sigmoid(x) = exp(-x) * sigmoid(x).
        x = x - self._shift(x)
        return (_core.logsigmoid(x) - x + y[..., :-1].log()).sum(-1)


class LowerCholeskyTransform(_Same):
    """Matrices to lower triangular ones with a positive diagonal, the exponential of what was there.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.LowerCholeskyTransform()(rgrad.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Same):
    """Matrices to positive definite ones, whose Cholesky factor :class:`LowerCholeskyTransform` makes.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.PositiveDefiniteTransform()(rgrad.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
