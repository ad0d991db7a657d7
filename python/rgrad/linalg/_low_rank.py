"""Factors of low rank from products with random vectors (Halko, Martinsson and Tropp 2009)."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._operation.checked import operation


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that span about what ``A`` maps to (algorithm 4.4)."""
    Q = _core._linalg_qr(A @ _core.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        Q = _core._linalg_qr(A.mH @ Q).Q
        Q = _core._linalg_qr(A @ Q).Q
    return Q


@operation("svd_lowrank")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute about the largest singular values and their vectors, with random numbers.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        q: How many values; some more than are wanted make these better.
        niter: Rounds of multiplications with the matrix and its adjoint: more for values that fall slowly.
        M: What is subtracted from ``A`` first; a shape that broadcasts to that of ``A``.

    Returns:
        ``(U, S, V)`` with ``A - M`` about ``U @ diag(S) @ V.mH``; shapes ``(*, m, q)``, ``(*, q)`` and ``(*, n, q)``
        for ``q`` up to ``min(m, n)``.

    Raises:
        RuntimeError: The input is no matrix, or of another dtype.

    Example:
        >>> U, S, V = rgrad.svd_lowrank(rgrad.diag(rgrad.tensor([3.0, 0.0, 4.0])), q=2)
        >>> S.round()
        tensor([4., 3.])
    """
    A = _core._linalg_matrices("svd_lowrank", A, "A", False)
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    # The vectors of the smaller side are the ones that are found by a complete decomposition.
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = _basis(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = _core._linalg_svd(Q.mH @ A, False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@operation("pca_lowrank")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Compute about the principal components of rows, with random numbers; see :func:`svd_lowrank`.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128: m rows of n numbers.
        q: How many components, by default 6, or as many as there are.
        center: Subtract the mean of the rows first.
        niter: Rounds of multiplications.

    Returns:
        ``(U, S, V)``: the columns of ``V``, of shape ``(*, n, q)``, are the directions.

    Raises:
        RuntimeError: The input is no matrix, or of another dtype.
        ValueError: ``q`` or ``niter`` is negative, or ``q`` larger than a size.

    Example:
        >>> U, S, V = rgrad.pca_lowrank(rgrad.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), q=1)
        >>> S.square().round()
        tensor([10.])
    """
    A = _core._linalg_matrices("pca_lowrank", A, "A", False)
    least = min(A.shape[-2:])
    if q is None:
        q = min(6, least)
    elif not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
