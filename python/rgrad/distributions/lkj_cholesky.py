"""The distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Size, Tensor
from .._runtime.info import finfo
from ..autograd.grad_mode import no_grad
from ..special import gammaln, multigammaln
from . import constraints
from ._parametric import Parametric
from .beta import Beta
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Parametric):
    """The distribution of lower triangular factors of correlation matrices.

    The density of the correlation matrix is proportional to its determinant to the power ``concentration - 1``. See
    Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended onion method,
    2009.

    Args:
        dim: The size of the matrices, at least 2.
        concentration: The shape, more than 0: a tensor or a number; 1 is uniform.
        validate_args: Check parameters and values.

    Raises:
        ValueError: ``dim`` is less than 2, or ``concentration`` not positive.

    Example:
        >>> rgrad.distributions.LKJCholesky(2, 1.0).log_prob(rgrad.eye(2))
        tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.corr_cholesky
    _state = ("dim", "concentration", "_beta")

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of what stands before the diagonal in row k + 1 has the distribution
        # Beta(k / 2, concentration + (dim - 1 - k) / 2). Row 0 has nothing there, and any parameters will do.
        kind = self.concentration
        before = _core.arange(dim, dtype=kind.dtype, device=kind.device).clamp(min=1) / 2
        self._beta = Beta(before, kind.unsqueeze(-1) + (dim - 1) / 2 - before, validate_args=validate_args)
        super().__init__(kind.shape, Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = _core.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
            # Directions are uniform; the first row has none.
            length = normal.pow(2).sum(-1, keepdim=True).sqrt()
            rows = squares.sqrt() * (normal / length.masked_fill(length == 0, 1))
            rest = (1 - rows.pow(2).sum(-1)).clamp(min=finfo(rows.dtype).tiny)
            return rows + _core.diag_embed(rest.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        # The determinant gives each diagonal element twice concentration - 1, the way from the factor to the matrix as
        # many more as rows follow.
        follow = self.dim - _core.arange(2, self.dim + 1, dtype=diagonal.dtype, device=diagonal.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + follow
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + multigammaln(alpha - 0.5, n) - n * gammaln(alpha)
        return (powers * diagonal.log()).sum(-1) - normalizer
