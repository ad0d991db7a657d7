"""Factorisations: Cholesky, QR and LU."""

from __future__ import annotations

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation

# --------------------------------------------------------------------------------------------------------- Cholesky


@operation("linalg_cholesky_ex", native=_core._linalg_cholesky_ex, takes=("A",))
def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_cholesky_ex:
    """Compute the Cholesky factors of symmetric or Hermitian matrices, and which have none.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128; one triangle is read.
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
    return _core._linalg_cholesky_ex(A, upper, check_errors)


@operation("linalg_cholesky", native=_core._linalg_cholesky, takes=("A",))
def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Compute the lower triangular ``L`` with ``A = L @ L.mH`` of Hermitian positive-definite matrices.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128; one triangle is read.
        upper: Give ``L.mH``, and read the upper triangle.
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
    return _core._linalg_cholesky(A, upper)


@operation("cholesky_solve", native=_core._cholesky_solve, takes=("input", "input2"))
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
    return _core._cholesky_solve(input, input2, upper)


@operation("cholesky_inverse", native=_core._cholesky_inverse, takes=("input",))
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
    return _core._cholesky_inverse(input, upper)


# --------------------------------------------------------------------------------------------------------------- QR


@operation("linalg_qr", native=_core._linalg_qr, takes=("A",))
def qr(A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_qr:
    """Compute ``A = Q @ R`` with orthonormal columns of ``Q`` and upper triangular ``R``.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
    return _core._linalg_qr(A, mode)


# --------------------------------------------------------------------------------------------------------------- LU


@operation("linalg_lu_factor_ex", native=_core._linalg_lu_factor_ex, takes=("A",))
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_lu_factor_ex:
    """Compute LU factorisations in the compact form that :func:`lu_solve` takes, and which matrices are singular.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
    return _core._linalg_lu_factor_ex(A, pivot, check_errors)


@operation("linalg_lu_factor", native=_core._linalg_lu_factor, takes=("A",))
def lu_factor(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_lu_factor:
    """Compute LU factorisations in the compact form that :func:`lu_solve` takes.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
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
    return _core._linalg_lu_factor(A, pivot)


@operation("lu_unpack", native=_core._lu_unpack, takes=("LU_data", "LU_pivots"))
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
    return _core._lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@operation("linalg_lu", native=_core._linalg_lu, takes=("A",))
def lu(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_lu:
    """Compute ``A = P @ L @ U``: a permutation, a lower triangular factor with ones, and an upper triangular one.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        pivot: Exchange rows so that pivots are large; ``P`` is empty otherwise.
        out: Three tensors that the results are written to.

    Returns:
        ``(P, L, U)``.

    Example:
        >>> rgrad.linalg.lu(rgrad.tensor([[0.0, 1.0], [2.0, 3.0]])).U
        tensor([[2., 3.],
                [0., 1.]])
    """
    return _core._linalg_lu(A, pivot)


@operation("linalg_lu_solve", native=_core._linalg_lu_solve, takes=("LU", "pivots", "B"))
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Solve ``A @ X = B`` with the LU factorisation of ``A``.

    Args:
        LU: Shape ``(*, n, n)``, from :func:`lu_factor`.
        pivots: Shape ``(*, n)``, from :func:`lu_factor`.
        B: Shape ``(*, n, k)``.
        left: Solve ``X @ A = B`` if this is False.
        adjoint: Solve with ``A.mH`` in place of ``A``.
        out: Where the result is written.

    Returns:
        The solutions.

    Example:
        >>> LU, pivots = rgrad.linalg.lu_factor(2 * rgrad.eye(2))
        >>> rgrad.linalg.lu_solve(LU, pivots, rgrad.ones(2, 1))
        tensor([[0.5000],
                [0.5000]])
    """
    return _core._linalg_lu_solve(LU, pivots, B, left, adjoint)
