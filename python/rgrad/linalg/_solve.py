"""Inverses and systems of linear equations."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._operation.checked import operation


@operation("linalg_inv", native=_core._linalg_inv, takes=("A",))
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverses of square matrices.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Where the result is written.

    Returns:
        The inverses, of the same shape.

    Raises:
        LinAlgError: A matrix is singular.
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.inv(rgrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return _core._linalg_inv(A)


@operation("linalg_solve", native=_core._linalg_solve, takes=("A", "B"))
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solve systems of linear equations, ``A @ X = B``.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        B: Shape ``(*, n, k)``, or ``(n)``, or ``(*, n)`` with exactly the leading dimensions of ``A``.
        left: Solve ``X @ A = B`` if this is False, for ``B`` of shape ``(*, k, n)``.
        out: Where the result is written.

    Returns:
        The solutions.

    Raises:
        LinAlgError: A matrix is singular.
        RuntimeError: Shapes do not fit, dtypes differ or are others.

    Example:
        >>> rgrad.linalg.solve(rgrad.tensor([[2.0, 0.0], [0.0, 4.0]]), rgrad.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    return _core._linalg_solve(A, B, left)


@operation("linalg_solve_triangular")
def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solve systems of linear equations with triangular matrices, ``A @ X = B``.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128; the other triangle is not read.
        B: Shape ``(*, n, k)``.
        upper: Whether the matrices are upper triangular.
        left: Solve ``X @ A = B`` if this is False, for ``B`` of shape ``(*, k, n)``.
        unitriangular: Take the diagonal for ones.
        out: Where the result is written.

    Returns:
        The solutions; infinite or nan where a diagonal has a zero.

    Raises:
        RuntimeError: Shapes do not fit, dtypes differ or are others.

    Example:
        >>> A = rgrad.tensor([[2.0, 1.0], [0.0, 1.0]])
        >>> rgrad.linalg.solve_triangular(A, rgrad.tensor([[4.0], [2.0]]), upper=True)
        tensor([[1.],
                [2.]])
    """
    return _core._linalg_solve_triangular(A, B, upper, left, unitriangular)
