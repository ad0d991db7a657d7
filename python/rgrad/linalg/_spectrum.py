"""Eigenvalues and singular values, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from .._runtime.info import finfo
from ._host import add, check_matrix, eye_like, named, primitive, widened, without_autocast

# ------------------------------------------------------------------------------------------------------- eigenvalues


def _gaps(values: Tensor) -> Tensor:
    """1 / (value j - value i) at row i and column j, and 0 on the diagonal."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    eye = eye_like(values, values.shape[-1])
    return (1.0 - eye) / (gaps + eye)


def _eigh_values(A: Any, uplo: Any) -> Any:
    with named("linalg.eigh", "The algorithm failed to converge because the input matrix is ill-conditioned."):
        return tuple(np.linalg.eigh(A, uplo))


def _eigh_vjp(grads: Any, inputs: Any, outputs: Any, uplo: str) -> Any:
    (L, Q), (gL, gQ) = outputs, grads
    inner = None if gQ is None else (Q.mT @ gQ) * _gaps(L)
    inner = add(inner, None if gL is None else _core.diag_embed(gL))
    return (None if inner is None else Q @ inner @ Q.mT,)


def _eigh_jvp(tangents: Any, inputs: Any, outputs: Any, uplo: str) -> Any:
    L, Q = outputs
    inner = Q.mT @ tangents[0] @ Q
    return inner.diagonal(dim1=-2, dim2=-1), Q @ (inner * _gaps(L))


_eigh_apply = primitive(
    "LinalgEigh", _eigh_values, _eigh_vjp, _eigh_jvp, keywords=1, shapes=lambda A, uplo: (A[:-1], A)
)


def _checked_uplo(name: str, UPLO: str) -> str:
    side = UPLO.upper()
    if side not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return side


@operation("linalg_eigh")
def eigh(A: Tensor, UPLO: str = "L", *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_eigh:
    """Compute the eigenvalues and eigenvectors of symmetric matrices.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
        UPLO: ``"L"`` or ``"U"``: the triangle that is read. The gradient is that of a whole symmetric matrix.
        out: Two tensors that the results are written to.

    Returns:
        ``(eigenvalues, eigenvectors)``: the values rise, the vectors are columns. The gradient of the vectors is
        infinite where eigenvalues are equal.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype, or ``UPLO`` is another letter.

    Example:
        >>> rgrad.linalg.eigh(rgrad.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    A = check_matrix("linalg.eigh", A, square=True)
    made = _eigh_apply(A, _checked_uplo("linalg.eigh", UPLO))
    return return_types.linalg_eigh(*made)


@operation("linalg_eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Compute the eigenvalues of symmetric matrices.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
        UPLO: ``"L"`` or ``"U"``: the triangle that is read.
        out: Where the result is written.

    Returns:
        Shape ``(*, n)``, rising.

    Example:
        >>> rgrad.linalg.eigvalsh(rgrad.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    A = check_matrix("linalg.eigvalsh", A, square=True)
    return _eigh_apply(A, _checked_uplo("linalg.eigvalsh", UPLO))[0]


# --------------------------------------------------------------------------------------------------- singular values


def _svd_values(A: Any, full: bool) -> Any:
    with named("linalg.svd", "The algorithm failed to converge because the input matrix is ill-conditioned."):
        return tuple(np.linalg.svd(A, full_matrices=full))


def _svd_shapes(A: Any, full: bool) -> Any:
    *batch, m, n = A
    k = min(m, n)
    return (*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)


def _square_gaps(S: Tensor) -> Tensor:
    """1 / (s_j^2 - s_i^2), and 0 on the diagonal; as products, so that close values keep their digits."""
    eye = eye_like(S, S.shape[-1])
    gaps = (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1))
    return (1.0 - eye) / (gaps + eye)


def _svd_vjp(grads: Any, inputs: Any, outputs: Any, full: bool) -> Any:
    (U, S, Vh), (gU, gS, gVh) = outputs, grads
    k = S.shape[-1]
    m, n = U.shape[-2], Vh.shape[-1]
    U, V = U[..., :k], Vh[..., :k, :].mT
    gU = None if gU is None else gU[..., :k]
    gV = None if gVh is None else gVh[..., :k, :].mT
    inner = None if gS is None else _core.diag_embed(gS)
    outside = None
    if gU is not None or gV is not None:
        F = _square_gaps(S)
    if gU is not None:
        X = U.mT @ gU
        inner = add(inner, F * (X - X.mT) * S.unsqueeze(-2))
        if m > k:
            outside = ((gU - U @ X) / S.unsqueeze(-2)) @ V.mT
    if gV is not None:
        Y = V.mT @ gV
        inner = add(inner, S.unsqueeze(-1) * F * (Y - Y.mT))
        if n > k:
            outside = add(outside, U @ ((gV - V @ Y) / S.unsqueeze(-2)).mT)
    return (add(None if inner is None else U @ inner @ V.mT, outside),)


def _svd_jvp(tangents: Any, inputs: Any, outputs: Any, full: bool) -> Any:
    U, S, Vh = outputs
    dA = tangents[0]
    k = S.shape[-1]
    m, n = dA.shape[-2:]
    if full and m != n:
        raise RuntimeError("linalg.svd: forward mode needs full_matrices=False, since the other vectors are not unique")
    V = Vh.mT
    P = U.mT @ dA @ V
    F = _square_gaps(S)
    row, column = S.unsqueeze(-2), S.unsqueeze(-1)
    dU = U @ (F * (P * row + column * P.mT))
    dV = V @ (F * (column * P + P.mT * row))
    if m > k:
        dU = dU + (dA @ V - U @ P) / row
    if n > k:
        dV = dV + (dA.mT @ U - V @ P.mT) / row
    return dU, P.diagonal(dim1=-2, dim2=-1), dV.mT


_svd_apply = primitive("LinalgSvd", _svd_values, _svd_vjp, _svd_jvp, keywords=1, shapes=_svd_shapes)


@operation("linalg_svd")
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_svd:
    """Compute the singular value decomposition, ``A = U @ diag(S) @ Vh``.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        full_matrices: Give square ``U`` and ``Vh``; their further vectors have no gradient.
        driver: Is for CUDA: None.
        out: Three tensors that the results are written to.

    Returns:
        ``(U, S, Vh)``; ``S`` falls. The gradients of ``U`` and ``Vh`` are infinite where singular values are equal.

    Raises:
        RuntimeError: The input is no matrix, of another dtype, or there is a driver.

    Example:
        >>> rgrad.linalg.svd(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    A = check_matrix("linalg.svd", A)
    _no_driver("linalg.svd", driver)
    return return_types.linalg_svd(*_svd_apply(A, full_matrices))


def _no_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@operation("linalg_svdvals")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Compute the singular values of matrices.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        driver: Is for CUDA: None.
        out: Where the result is written.

    Returns:
        Shape ``(*, min(m, n))``, falling.

    Example:
        >>> rgrad.linalg.svdvals(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    A = check_matrix("linalg.svdvals", A)
    _no_driver("linalg.svdvals", driver)
    return _svd_apply(A, False)[1]


# ------------------------------------------------------------------------------------ pseudo-inverse, rank, condition


def _limits(A: Tensor, largest: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Below which singular values count as 0."""
    if rtol is None:
        given = atol is not None and bool((_core.as_tensor(atol) > 0).all())
        rtol = 0.0 if given else max(A.shape[-2:]) * finfo(A.dtype).eps
    absolute = 0.0 if atol is None else atol
    made = largest * _core.as_tensor(rtol, device=A.device).to(largest.dtype)
    return _core.maximum(made, _core.as_tensor(absolute, dtype=largest.dtype, device=A.device))


def _singular_values(A: Tensor, hermitian: bool) -> Tensor:
    made: Tensor = _eigh_apply(A, "L")[0].abs() if hermitian else _svd_apply(A, False)[1]
    return made


def _pinv_values(A: Any, limits: Any, hermitian: bool) -> Any:
    if hermitian:
        L, Q = _eigh_values(A, "L")
        keep = np.abs(L) > limits[..., None]
        inverse = np.where(keep, 1.0 / np.where(keep, L, 1.0), 0.0)
        return ((Q * inverse[..., None, :]) @ np.swapaxes(Q, -1, -2),)
    U, S, Vh = _svd_values(A, False)
    keep = limits[..., None] < S
    inverse = np.where(keep, 1.0 / np.where(keep, S, 1.0), 0.0)
    return ((np.swapaxes(Vh, -1, -2) * inverse[..., None, :]) @ np.swapaxes(U, -1, -2),)


def _pinv_vjp(grads: Any, inputs: Any, outputs: Any, hermitian: bool) -> Any:
    """Golub and Pereyra 1973, for a rank that stays as it is."""
    A, P, g = inputs[0], outputs[0], grads[0]
    m, n = A.shape[-2:]
    g = 0.5 * (g + g.mT) if hermitian else g
    left = (eye_like(A, m) - A @ P) @ g.mT @ (P @ P.mT)
    right = (P.mT @ P) @ g.mT @ (eye_like(A, n) - P @ A)
    return left + right - P.mT @ g @ P.mT, None


def _pinv_jvp(tangents: Any, inputs: Any, outputs: Any, hermitian: bool) -> Any:
    A, P, dA = inputs[0], outputs[0], tangents[0]
    m, n = A.shape[-2:]
    left = P @ P.mT @ dA.mT @ (eye_like(A, m) - A @ P)
    right = (eye_like(A, n) - P @ A) @ dA.mT @ P.mT @ P
    return (left + right - P @ dA @ P,)


_pinv_apply = primitive(
    "LinalgPinv",
    _pinv_values,
    _pinv_vjp,
    _pinv_jvp,
    keywords=1,
    shapes=lambda A, limits, hermitian: ((*A[:-2], A[-1], A[-2]),),
)


@operation("linalg_pinv")
def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the pseudo-inverses of matrices (Moore and Penrose).

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        rcond: Another name of ``rtol``.
        hermitian: Whether the matrices are symmetric.
        atol: Singular values up to this count as 0.
        rtol: Singular values up to this times the largest one count as 0; by default ``max(m, n)`` times the
            precision of the dtype, or 0 if ``atol`` is given.
        out: Where the result is written.

    Returns:
        Shape ``(*, n, m)``.

    Example:
        >>> rgrad.linalg.pinv(rgrad.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    A = check_matrix("linalg.pinv", A, square=hermitian)
    rtol = rcond if rtol is None else rtol
    if A.numel() == 0:
        return A.mT.clone()
    largest = _singular_values(A.detach(), hermitian).amax(-1)
    limits = _limits(A, largest, atol, rtol).expand(A.shape[:-2])
    return _pinv_apply(A, limits, hermitian)[0]


@operation("linalg_matrix_rank")
def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the ranks of matrices: how many singular values are not small.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        tol: Another name of ``atol``, with ``rtol`` 0.
        hermitian: Whether the matrices are symmetric.
        atol: Singular values up to this count as 0.
        rtol: Singular values up to this times the largest one count as 0; see :func:`pinv`.
        out: Where the result is written.

    Returns:
        Shape ``(*)``, int64.

    Example:
        >>> rgrad.linalg.matrix_rank(rgrad.ones(3, 3))
        tensor(1)
    """
    A = check_matrix("linalg.matrix_rank", A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    A = A.detach()
    if A.numel() == 0:
        return _core.zeros(A.shape[:-2], dtype=_core.int64, device=A.device)
    S = _singular_values(A, hermitian)
    made = (_limits(A, S.amax(-1), atol, rtol).unsqueeze(-1) < S).sum(-1)
    return made


@operation("linalg_lstsq")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> return_types.linalg_lstsq:
    """Solve the least squares problem ``min ||A @ X - B||``; of several solutions the smallest.

    Args:
        A: Shape ``(*, m, n)``, float32 or float64.
        B: Shape ``(*, m, k)``, or ``(*, m)`` with exactly the leading dimensions of ``A``.
        rcond: Singular values up to this times the largest one count as 0, by default the precision of the dtype
            times ``max(m, n)``. The driver ``"gels"`` takes every matrix for one of full rank.
        driver: ``"gels"``, ``"gelsy"`` (the default), ``"gelsd"`` or ``"gelss"``: which of the results are given.

    Returns:
        ``(solution, residuals, rank, singular_values)``. The solution has a gradient. The residuals (the squared
        distances) are empty if a matrix has not full rank or ``m <= n``; the rank is empty with ``"gels"``, the
        singular values are with ``"gels"`` and ``"gelsy"``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit, or there is no such driver.

    Example:
        >>> A = rgrad.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> rgrad.linalg.lstsq(A, rgrad.tensor([[1.0], [3.0], [5.0]])).solution
        tensor([[1.0000],
                [2.0000]])
    """
    A = check_matrix("torch.linalg.lstsq", A)
    B = widened(B)
    if A.dtype != B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype")
    if B.dim() < 1 or A.dim() - B.dim() not in (0, 1):
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            f"<= 1, got {A.dim()} and {B.dim()}"
        )
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got " + str(driver)
        )
    driver = driver or "gelsy"
    vector = B.dim() == A.dim() - 1
    rhs = B.unsqueeze(-1) if vector else B
    m, n = A.shape[-2:]
    if rhs.shape[-2] != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-1 or -2)")
    rcond = max(m, n) * finfo(A.dtype).eps if rcond is None else rcond
    S = _svd_apply(A.detach(), False)[1]
    rank = (rcond * S.amax(-1, keepdim=True) < S).sum(-1)
    P = pinv(A, rtol=0.0 if driver == "gels" else rcond)
    with without_autocast(A):
        X = P @ rhs
    empty = _core.empty(0, dtype=A.dtype, device=A.device)
    residuals = empty
    # On the meta device every matrix counts as one of full rank.
    if m > n and driver != "gelsy" and (driver == "gels" or A.device.type == "meta" or bool((rank == n).all())):
        with without_autocast(A):
            residuals = (A @ X - rhs).square().sum(-2)
    return return_types.linalg_lstsq(
        X.squeeze(-1) if vector else X,
        residuals,
        _core.empty(0, dtype=_core.int64, device=A.device) if driver == "gels" else rank,
        S if driver in ("gelsd", "gelss") else empty,
    )
