"""Factorisations: Cholesky, QR and LU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from ._host import LinAlgError, check_matrix, eye_like, primitive, widened, without_autocast
from ._solve import _triangular, solve_triangular

# --------------------------------------------------------------------------------------------------------- Cholesky


def _leading_minors(A: Any) -> Any:
    """For each matrix the place of the first leading minor that is not positive, counted from 1, or 0."""
    M = np.array(A, dtype=np.float64)
    info = np.zeros(M.shape[:-2], dtype=np.int32)
    with np.errstate(all="ignore"):
        for k in range(M.shape[-1]):
            pivot = M[..., k, k]
            info = np.where((info == 0) & ~(pivot > 0), k + 1, info).astype(np.int32)
            column = M[..., k + 1 :, k] / pivot[..., None]
            M[..., k + 1 :, k + 1 :] -= column[..., :, None] * M[..., k + 1 :, k][..., None, :]
    return info


def _cholesky_values(A: Any, check: bool) -> Any:
    """The factors, and the places of the first minors that are not positive; a matrix that has one gives itself."""
    try:
        made = np.linalg.cholesky(A)
        if np.isnan(made).any():
            raise np.linalg.LinAlgError("nan is not positive")
        return made, np.zeros(A.shape[:-2], dtype=np.int32)
    except np.linalg.LinAlgError as e:
        info = _leading_minors(A)
        if check:
            at = int((info.reshape(-1) != 0).argmax())
            order = int(info.reshape(-1)[at])
            place = f"(Batch element {at}): " if info.ndim else ""
            raise LinAlgError(
                f"linalg.cholesky: {place}The factorization could not be completed because the input is not "
                f"positive-definite (the leading minor of order {order} is not positive-definite)."
            ) from e
        bad = (info != 0)[..., None, None]
        made = np.linalg.cholesky(np.where(bad, np.eye(A.shape[-1], dtype=A.dtype), A))
        return np.where(bad, np.tril(A), made), info


def _half(M: Tensor) -> Tensor:
    """The lower triangle, with half of the diagonal."""
    return M.tril() - 0.5 * _core.diag_embed(M.diagonal(dim1=-2, dim2=-1))


def _cholesky_vjp(grads: Any, inputs: Any, outputs: Any, check: bool) -> Any:
    L = outputs[0]
    middle = _half(L.mT @ grads[0])
    middle = 0.5 * (middle + middle.mT)
    left = _triangular(L.mT, middle, True)
    return (_triangular(L.mT, left.mT, True).mT,)


def _cholesky_jvp(tangents: Any, inputs: Any, outputs: Any, check: bool) -> Any:
    L = outputs[0]
    inner = _triangular(L, _triangular(L, tangents[0], False).mT, False).mT
    return L @ _half(inner), None


_cholesky_apply = primitive(
    "LinalgCholeskyEx",
    _cholesky_values,
    _cholesky_vjp,
    _cholesky_jvp,
    without=(1,),
    keywords=1,
    shapes=lambda A, check: (A, A[:-2]),
)


@operation("linalg_cholesky_ex")
def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_cholesky_ex:
    """Compute the Cholesky factors of symmetric matrices, and which have none.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64; one triangle is read.
        upper: Give the upper factor, and read the upper triangle.
        check_errors: Raise an error as :func:`cholesky` does.
        out: Two tensors that the results are written to.

    Returns:
        ``(L, info)``: ``info``, int32, of shape ``(*)``, is 0, or the order of the first leading minor that is not
        positive.

    Raises:
        LinAlgError: A matrix is not positive-definite, and ``check_errors`` is set.

    Example:
        >>> rgrad.linalg.cholesky_ex(rgrad.eye(2)).info
        tensor(0, dtype=rgrad.int32)
    """
    A = check_matrix("linalg.cholesky", A, square=True)
    L, info = _cholesky_apply(A.mT if upper else A, check_errors)
    info = info.to(_core.int32)
    return return_types.linalg_cholesky_ex(L.mT if upper else L, info)


@operation("linalg_cholesky")
def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Compute the lower triangular ``L`` with ``A = L @ L.mT`` of symmetric positive-definite matrices.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64; one triangle is read.
        upper: Give ``L.mT``, and read the upper triangle.
        out: Where the result is written.

    Returns:
        The factors, of the same shape.

    Raises:
        LinAlgError: A matrix is not positive-definite.

    Example:
        >>> rgrad.linalg.cholesky(rgrad.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    A = check_matrix("linalg.cholesky", A, square=True)
    L, _ = _cholesky_apply(A.mT if upper else A, True)
    return L.mT if upper else L


@operation("cholesky_solve")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solve ``A @ X = B`` with the Cholesky factor of ``A``.

    Args:
        input: Shape ``(*, n, k)``.
        input2: Shape ``(*, n, n)``: the factor.
        upper: Whether the factor is the upper one.
        out: Where the result is written.

    Returns:
        The solutions, of shape ``(*, n, k)``. The gradient of the triangle that is not read is 0.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> rgrad.cholesky_solve(rgrad.ones(2, 1), 2 * rgrad.eye(2))
        tensor([[0.2500],
                [0.2500]])
    """
    input2 = check_matrix("cholesky_solve", input2, "A", square=True)
    lower = input2.mT if upper else input2
    made = solve_triangular(lower.mT, solve_triangular(lower, input, upper=False), upper=True)
    return made


@operation("cholesky_inverse")
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse of a matrix from its Cholesky factor.

    Args:
        input: Shape ``(*, n, n)``: the factor.
        upper: Whether the factor is the upper one.
        out: Where the result is written.

    Returns:
        The inverse, of the same shape. The gradient of the triangle that is not read is 0.

    Raises:
        LinAlgError: The diagonal has a zero.

    Example:
        >>> rgrad.cholesky_inverse(2 * rgrad.eye(2))
        tensor([[0.2500, 0.0000],
                [0.0000, 0.2500]])
    """
    input = check_matrix("cholesky_inverse", input, square=True)
    # Inside of a transform values decide nothing: a zero gives infinities or nan there.
    if input.device.type != "meta" and input.numel() and _core._level_of(input) == 0:
        zero = (input.detach().diagonal(dim1=-2, dim2=-1) == 0).reshape(-1, input.shape[-1])
        if bool(zero.any()):
            at, place = (int(i) for i in zero.nonzero()[0])
            batch = f"(Batch element {at}): " if input.dim() > 2 else ""
            raise LinAlgError(
                f"cholesky_inverse: {batch}The diagonal element {place + 1} is zero, the inversion could not be "
                "completed because the input matrix is singular."
            )
    return cholesky_solve(eye_like(input, input.shape[-1]), input, upper)


# --------------------------------------------------------------------------------------------------------------- QR


def _qr_values(A: Any, mode: Any) -> Any:
    if mode == "r":
        return (np.linalg.qr(A, "r"),)
    return tuple(np.linalg.qr(A, mode))


def _qr_shapes(A: Any, mode: str) -> Any:
    *batch, m, n = A
    k = m if mode == "complete" else min(m, n)
    return ((*batch, m, k), (*batch, k, n))[1 if mode == "r" else 0 :]


def _square_vjp(Q: Tensor, R: Tensor, gQ: Tensor | None, gR: Tensor | None) -> Tensor:
    """For as many rows as columns or more (Walter and Lehmann 2018)."""
    M = _core.zeros_like(R)
    if gR is not None:
        M = R @ gR.mT
    if gQ is not None:
        M = M - gQ.mT @ Q
    inner = Q @ (M.tril() + M.tril(-1).mT)
    if gQ is not None:
        inner = inner + gQ
    return _triangular(R, inner.mT, True).mT


def _qr_vjp(grads: Any, inputs: Any, outputs: Any, mode: str) -> Any:
    A = inputs[0]
    m, n = A.shape[-2:]
    if mode == "r":
        raise RuntimeError("linalg.qr: The derivative of linalg.qr depends on Q, which is not computed for mode='r'.")
    if mode == "complete" and m > n:
        raise RuntimeError(
            "linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    (Q, R), (gQ, gR) = outputs, grads
    if m >= n:
        return (_square_vjp(Q, R, gQ, gR),)
    last, U = A[..., m:], R[..., :m]
    gU, gV = (None, None) if gR is None else (gR[..., :m], gR[..., m:])
    inner = gQ if gV is None else last @ gV.mT if gQ is None else gQ + last @ gV.mT
    left = _square_vjp(Q, U, inner, gU)
    right = _core.zeros_like(last) if gV is None else Q @ gV
    return (_core.cat([left, right], -1),)


def _qr_jvp(tangents: Any, inputs: Any, outputs: Any, mode: str) -> Any:
    A, dA = inputs[0], tangents[0]
    m, n = A.shape[-2:]
    if mode == "r" or (mode == "complete" and m > n):
        _qr_vjp((None, None), inputs, outputs, mode)
    Q, R = outputs
    k = min(m, n)
    # dA R^-1 = Q W + dQ with W upper triangular and Q^T dQ antisymmetric.
    right = _triangular(R[..., :k].mT, dA[..., :k].mT, False).mT
    X = Q.mT @ right
    W = X - X.tril(-1) + X.tril(-1).mT
    dQ = right - Q @ W
    dU = W @ R[..., :k]
    if m >= n:
        return dQ, dU
    return dQ, _core.cat([dU, Q.mT @ (dA[..., k:] - dQ @ R[..., k:])], -1)


_qr_apply = primitive("LinalgQr", _qr_values, _qr_vjp, _qr_jvp, keywords=1, shapes=_qr_shapes)


@operation("linalg_qr")
def qr(A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_qr:
    """Compute ``A = Q @ R`` with orthonormal columns of ``Q`` and upper triangular ``R``.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        mode: ``"reduced"``, ``"complete"`` (a square ``Q``) or ``"r"`` (an empty ``Q``, no derivative).
        out: Two tensors that the results are written to.

    Returns:
        ``(Q, R)``.

    Raises:
        RuntimeError: There is no such mode.

    Example:
        >>> rgrad.linalg.qr(rgrad.ones(2, 2), mode="r").R.shape
        rgrad.Size([2, 2])
    """
    A = check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    made = _qr_apply(A, mode)
    if mode == "r":
        made = (_core.empty(0, dtype=A.dtype, device=A.device), made[0])
    return return_types.linalg_qr(*made)


# --------------------------------------------------------------------------------------------------------------- LU


def _eliminate(A: Any, pivot: bool) -> Any:
    """Gauss's elimination: both factors in one matrix, the rows that were swapped, and the first zero pivot."""
    LU = np.array(A)
    *batch, m, n = LU.shape
    LU = LU.reshape(math.prod(batch), m, n)
    count = min(m, n)
    swaps = np.tile(np.arange(1, count + 1, dtype=np.int32), (LU.shape[0], 1))
    info = np.zeros(LU.shape[0], dtype=np.int32)
    every = np.arange(LU.shape[0])
    with np.errstate(all="ignore"):
        for j in range(count):
            if pivot:
                row = j + np.abs(LU[:, j:, j]).argmax(1)
                swaps[:, j] = row + 1
                moved = LU[every, row].copy()
                LU[every, row] = LU[:, j]
                LU[:, j] = moved
            top = LU[:, j, j]
            info = np.where((info == 0) & (top == 0), j + 1, info).astype(np.int32)
            LU[:, j + 1 :, j] = np.where(top[:, None] == 0, LU[:, j + 1 :, j], LU[:, j + 1 :, j] / top[:, None])
            LU[:, j + 1 :, j + 1 :] -= LU[:, j + 1 :, j][:, :, None] * LU[:, j, j + 1 :][:, None, :]
    return LU.reshape(*batch, m, n), swaps.reshape(*batch, count), info.reshape(batch)


def _lu_vjp(grads: Any, inputs: Any, outputs: Any) -> Any:
    LU = outputs[0]
    L = LU.tril(-1) + eye_like(LU, LU.shape[-1])
    U = LU.triu()
    inner = (L.mT @ grads[0].tril(-1)).tril(-1) + (grads[0].triu() @ U.mT).triu()
    inner = _triangular(U, inner.mT, True).mT
    return (_triangular(L.mT, inner, True, True),)


def _lu_jvp(tangents: Any, inputs: Any, outputs: Any) -> Any:
    LU = outputs[0]
    L = LU.tril(-1) + eye_like(LU, LU.shape[-1])
    U = LU.triu()
    inner = _triangular(L, tangents[0], False, True)
    inner = _triangular(U.mT, inner.mT, False).mT
    return ((L @ inner.tril(-1)).tril(-1) + (inner.triu() @ U).triu(),)


# Of square matrices whose rows stand in their final order.
_lu_apply = primitive("LinalgLuFactorEx", lambda A: (_eliminate(A, False)[0],), _lu_vjp, _lu_jvp)


def _pivot_values(A: Any, check: bool) -> Any:
    _, pivots, info = _eliminate(A, True)
    if check and info.any():
        at = int(info.max())
        raise RuntimeError(
            f"torch.linalg.lu_factor: U[{at},{at}] is zero and using it on lu_solve would result in a division by "
            "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )
    return pivots.astype(np.int64), info.astype(np.int64)


_pivots_apply = primitive(
    "LuPivots",
    _pivot_values,
    lambda grads, inputs, outputs, check: (None,),
    lambda tangents, inputs, outputs, check: (None, None),
    without=(0, 1),
    keywords=1,
    shapes=lambda A, check: ((*A[:-2], min(A[-2:])), A[:-2]),
)


def _rows(pivots: Tensor, m: int) -> Tensor:
    """The row of the matrix at each row of the factors, from the swaps."""
    order = _core.arange(m, device=pivots.device).expand(*pivots.shape[:-1], m)
    for j in range(pivots.shape[-1]):
        other = (pivots[..., j : j + 1] - 1).to(_core.int64)
        here, there = order[..., j : j + 1], order.gather(-1, other)
        order = order.scatter(-1, other, here)
        order = _core.cat([order[..., :j], there, order[..., j + 1 :]], -1)
    return order


def _factored(A: Tensor, pivot: bool, check: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the swaps, and the first zero pivot."""
    m, n = A.shape[-2:]
    k = min(m, n)
    pivots, info = (x.round().to(_core.int32) for x in _pivots_apply(A.detach(), check))
    if not pivot:
        pivots = _core.arange(1, k + 1, dtype=_core.int32, device=A.device).expand(*A.shape[:-2], k)
        info = _core.zeros_like(info)
    else:
        A = A.gather(-2, _rows(pivots, m).unsqueeze(-1).expand(A.shape))
    LU = _lu_apply(A[..., :k, :k])[0]
    if n > k:
        LU = _core.cat([LU, _triangular(LU, A[..., k:], False, True)], -1)
    elif m > k:
        LU = _core.cat([LU, _triangular(LU.mT, A[..., k:, :].mT, False).mT], -2)
    return LU, pivots, info


@operation("linalg_lu_factor_ex")
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_lu_factor_ex:
    """Compute LU factorisations in the compact form that :func:`lu_solve` takes, and which matrices are singular.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        pivot: Exchange rows so that pivots are large.
        check_errors: Raise an error if a pivot is zero.
        out: Three tensors that the results are written to.

    Returns:
        ``(LU, pivots, info)``: ``pivots`` and ``info`` are int32 and count from 1.

    Raises:
        RuntimeError: A pivot is zero, and ``check_errors`` is set.

    Example:
        >>> rgrad.linalg.lu_factor_ex(rgrad.eye(2)).pivots
        tensor([1, 2], dtype=rgrad.int32)
    """
    A = check_matrix("linalg.lu_factor", A)
    made = _factored(A, pivot, check_errors)
    return return_types.linalg_lu_factor_ex(*made)


@operation("linalg_lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_lu_factor:
    """Compute LU factorisations in the compact form that :func:`lu_solve` takes.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        pivot: Exchange rows so that pivots are large.
        out: Two tensors that the results are written to.

    Returns:
        ``(LU, pivots)``: ``pivots`` is int32 and counts from 1.

    Raises:
        RuntimeError: A pivot is zero.

    Example:
        >>> rgrad.linalg.lu_factor(rgrad.tensor([[0.0, 1.0], [2.0, 3.0]])).LU
        tensor([[2., 3.],
                [0., 1.]])
    """
    LU, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return return_types.linalg_lu_factor(LU, pivots)


@operation("lu_unpack")
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: tuple[Tensor, ...] | None = None,
) -> return_types.lu_unpack:
    """Give the factors of a compact LU factorisation.

    Args:
        LU_data: Shape ``(*, m, n)``.
        LU_pivots: Shape ``(*, min(m, n))``, int32.
        unpack_data: Give ``L`` and ``U``; they are empty otherwise.
        unpack_pivots: Give ``P``; it is empty otherwise.
        out: Three tensors that the results are written to.

    Returns:
        ``(P, L, U)`` with ``A = P @ L @ U``.

    Raises:
        RuntimeError: The pivots have another dtype, or the factors fewer dimensions.

    Example:
        >>> LU, pivots = rgrad.linalg.lu_factor(rgrad.tensor([[0.0, 1.0], [2.0, 3.0]]))
        >>> rgrad.lu_unpack(LU, pivots).P
        tensor([[0., 1.],
                [1., 0.]])
    """
    if LU_data.dim() < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)}"
        )
    if LU_pivots.dtype != _core.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = _core.empty(0, dtype=LU_data.dtype, device=LU_data.device)
    if unpack_data:
        eye = _core.eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
        L, U = LU_data[..., :k].tril(-1) + eye, LU_data[..., :k, :].triu()
    if unpack_pivots:
        P = eye_like(LU_data, m)[_rows(LU_pivots, m)].mT.contiguous()
    return return_types.lu_unpack(P, L, U)


@operation("linalg_lu")
def lu(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_lu:
    """Compute ``A = P @ L @ U``: a permutation, a lower triangular factor with ones, and an upper triangular one.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        pivot: Exchange rows so that pivots are large; ``P`` is empty otherwise.
        out: Three tensors that the results are written to.

    Returns:
        ``(P, L, U)``.

    Example:
        >>> rgrad.linalg.lu(rgrad.tensor([[0.0, 1.0], [2.0, 3.0]])).U
        tensor([[2., 3.],
                [0., 1.]])
    """
    A = check_matrix("linalg.lu", A)
    LU, pivots, _ = _factored(A, pivot)
    return return_types.linalg_lu(*lu_unpack(LU, pivots, True, pivot))


@operation("linalg_lu_solve")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Solve ``A @ X = B`` with the LU factorisation of ``A``.

    Args:
        LU: Shape ``(*, n, n)``, from :func:`lu_factor`.
        pivots: Shape ``(*, n)``, from :func:`lu_factor`.
        B: Shape ``(*, n, k)``.
        left: Solve ``X @ A = B`` if this is False.
        adjoint: Solve with ``A.mT`` in place of ``A``.
        out: Where the result is written.

    Returns:
        The solutions.

    Example:
        >>> LU, pivots = rgrad.linalg.lu_factor(2 * rgrad.eye(2))
        >>> rgrad.linalg.lu_solve(LU, pivots, rgrad.ones(2, 1))
        tensor([[0.5000],
                [0.5000]])
    """
    LU = check_matrix("linalg.lu_solve", LU, "LU", square=True)
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    P, L, U = lu_unpack(LU, pivots)
    B = widened(B)
    with without_autocast(LU):
        return _lu_solved(P, L, U, B, adjoint)


def _lu_solved(P: Tensor, L: Tensor, U: Tensor, B: Tensor, adjoint: bool) -> Tensor:
    if adjoint:
        made = solve_triangular(L.mT, solve_triangular(U.mT, B, upper=False), upper=True, unitriangular=True)
        return P @ made
    made = solve_triangular(L, P.mT @ B, upper=False, unitriangular=True)
    return solve_triangular(U, made, upper=True)
