"""Eigenvalues of general matrices, and factors of symmetric indefinite ones."""

from __future__ import annotations

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation


@operation("linalg_eig", native=_core._linalg_eig, takes=("A",))
def eig(A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_eig:
    """Compute the eigenvalues and eigenvectors of square matrices: ``A @ V = V @ diag(L)``.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Two tensors that the results are written to.

    Returns:
        ``(eigenvalues, eigenvectors)``, complex for real matrices, too. The values have no order; those of a real
        matrix come in conjugate pairs. The vectors are columns of length 1, whose phases are not determined: a
        gradient that depends on them is refused. It is infinite where eigenvalues are equal.

    Raises:
        LinAlgError: A value was not found.
        RuntimeError: The matrices are not square, or of another dtype, or have an infinity or nan.

    Example:
        >>> rgrad.linalg.eig(rgrad.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
        tensor([0.+1.j, 0.-1.j])
    """
    return _core._linalg_eig(A)


@operation("linalg_eigvals", native=_core._linalg_eigvals, takes=("A",))
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the eigenvalues of square matrices.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Where the result is written.

    Returns:
        Shape ``(*, n)``, complex; in no order, those of a real matrix in conjugate pairs.

    Raises:
        LinAlgError: A value was not found.
        RuntimeError: The matrices are not square, or of another dtype, or have an infinity or nan.

    Example:
        >>> rgrad.linalg.eigvals(rgrad.tensor([[0.0, -1.0], [1.0, 0.0]]))
        tensor([0.+1.j, 0.-1.j])
    """
    return _core._linalg_eigvals(A)


@operation("linalg_ldl_factor_ex", native=_core._linalg_ldl_factor_ex, takes=("A",))
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_ldl_factor_ex:
    """Compute ``L @ D @ L.mT`` of symmetric matrices, and which of them have a ``D`` that is singular.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128; the lower triangle is read.
        hermitian: Whether complex matrices are Hermitian: then they are ``L @ D @ L.mH``.
        check_errors: Raise an error as :func:`ldl_factor` does.
        out: Three tensors that the results are written to.

    Returns:
        ``(LD, pivots, info)``: both factors in one matrix, and, as int32, the rows that were exchanged, as LAPACK's
        ``sytrf`` has them (negative for blocks of two rows), and the first block of ``D`` that is zero, counted
        from 1, or 0. They have no derivative.

    Raises:
        LinAlgError: A block is zero, and ``check_errors`` is set.
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.ldl_factor_ex(rgrad.tensor([[0.0, 1.0], [1.0, 0.0]])).pivots
        tensor([-2, -2], dtype=rgrad.int32)
    """
    return _core._linalg_ldl_factor_ex(A, hermitian, check_errors)


@operation("linalg_ldl_factor", native=_core._linalg_ldl_factor, takes=("A",))
def ldl_factor(
    A: Tensor, *, hermitian: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_ldl_factor:
    """Compute ``L @ D @ L.mT`` of symmetric matrices in the compact form that :func:`ldl_solve` takes.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128; the lower triangle is read.
        hermitian: Whether complex matrices are Hermitian: then they are ``L @ D @ L.mH``.
        out: Two tensors that the results are written to.

    Returns:
        ``(LD, pivots)``: see :func:`ldl_factor_ex`.

    Raises:
        LinAlgError: A block of ``D`` is zero.
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.ldl_factor(rgrad.tensor([[2.0, 1.0], [1.0, 2.0]])).LD
        tensor([[2.0000, 0.0000],
                [0.5000, 1.5000]])
    """
    return _core._linalg_ldl_factor(A, hermitian)


@operation("linalg_ldl_solve", native=_core._linalg_ldl_solve, takes=("LD", "pivots", "B"))
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """Solve ``A @ X = B`` with the factors of a symmetric ``A``.

    Args:
        LD: Shape ``(*, n, n)``, from :func:`ldl_factor`.
        pivots: Shape ``(*, n)``, from :func:`ldl_factor`.
        B: Shape ``(*, n, k)``; leading dimensions broadcast.
        hermitian: What :func:`ldl_factor` was given.
        out: Where the result is written.

    Returns:
        The solutions. They have no derivative.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> LD, pivots = rgrad.linalg.ldl_factor(rgrad.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> rgrad.linalg.ldl_solve(LD, pivots, rgrad.tensor([[1.0], [2.0]]))
        tensor([[2.],
                [1.]])
    """
    return _core._linalg_ldl_solve(LD, pivots, B, hermitian)
