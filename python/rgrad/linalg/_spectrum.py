"""Eigenvalues and singular values, and what is made of them."""

from __future__ import annotations

from typing import Any

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from .._runtime.info import finfo
from ._host import check_matrix, widened, without_autocast

# ------------------------------------------------------------------------------------------------------- eigenvalues


@operation("linalg_eigh", native=_core._linalg_eigh, takes=("A",))
def eigh(A: Tensor, UPLO: str = "L", *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_eigh:
    """Compute the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        UPLO: ``"L"`` or ``"U"``: the triangle that is read. The gradient is that of a whole symmetric matrix.
        out: Two tensors that the results are written to.

    Returns:
        ``(eigenvalues, eigenvectors)``: the values are real and rise, the vectors are columns. The gradient of the
        vectors is infinite where eigenvalues are equal. One that depends on the phases of complex vectors is refused.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype, or ``UPLO`` is another letter.

    Example:
        >>> rgrad.linalg.eigh(rgrad.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    return _core._linalg_eigh(A, UPLO)


@operation("linalg_eigvalsh", native=_core._linalg_eigvalsh, takes=("A",))
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Compute the eigenvalues of symmetric or Hermitian matrices.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        UPLO: ``"L"`` or ``"U"``: the triangle that is read.
        out: Where the result is written.

    Returns:
        Shape ``(*, n)``, rising.

    Example:
        >>> rgrad.linalg.eigvalsh(rgrad.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    return _core._linalg_eigvalsh(A, UPLO)


# --------------------------------------------------------------------------------------------------- singular values


@operation("linalg_svd", native=_core._linalg_svd, takes=("A",))
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_svd:
    """Compute the singular value decomposition, ``A = U @ diag(S) @ Vh``.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        full_matrices: Give square ``U`` and ``Vh``; their further vectors have no gradient.
        driver: Is for CUDA: None.
        out: Three tensors that the results are written to.

    Returns:
        ``(U, S, Vh)``; ``S`` is real and falls. The gradients of ``U`` and ``Vh`` are infinite where singular values
        are equal. One that depends on a phase that complex vectors have in common is refused.

    Raises:
        RuntimeError: The input is no matrix, of another dtype, or there is a driver.

    Example:
        >>> rgrad.linalg.svd(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    _no_driver("linalg.svd", driver)
    return _core._linalg_svd(A, full_matrices)


def _no_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@operation("linalg_svdvals", native=_core._linalg_svdvals, takes=("A",))
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Compute the singular values of matrices.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        driver: Is for CUDA: None.
        out: Where the result is written.

    Returns:
        Shape ``(*, min(m, n))``, falling.

    Example:
        >>> rgrad.linalg.svdvals(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.])
    """
    _no_driver("linalg.svdvals", driver)
    return _core._linalg_svdvals(A)


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
    return _core._linalg_eigvalsh(A).abs() if hermitian else _core._linalg_svdvals(A)


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
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
    return _core._linalg_pinv(A, limits, hermitian)


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
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
    S = _core._linalg_svdvals(A.detach())
    rank = (rcond * S.amax(-1, keepdim=True) < S).sum(-1)
    P = pinv(A, rtol=0.0 if driver == "gels" else rcond)
    with without_autocast(A):
        X = P @ rhs
    empty = _core.empty(0, dtype=S.dtype, device=A.device)
    # As PyTorch's, they have a history where they are empty, too.
    residuals = (X.real if A.dtype.is_complex else X).reshape(-1)[:0].clone()
    # On the meta device every matrix counts as one of full rank.
    if m > n and driver != "gelsy" and (driver == "gels" or A.device.type == "meta" or bool((rank == n).all())):
        with without_autocast(A):
            distance = A @ X - rhs
            residuals = (distance.abs() if A.dtype.is_complex else distance).square().sum(-2)
    return return_types.linalg_lstsq(
        X.squeeze(-1) if vector else X,
        residuals,
        _core.empty(0, dtype=_core.int64, device=A.device) if driver == "gels" else rank,
        S if driver in ("gelsd", "gelss") else empty,
    )
