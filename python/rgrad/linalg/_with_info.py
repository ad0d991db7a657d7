"""Inverses and solutions that tell which matrices are singular instead of raising an error."""

from __future__ import annotations

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation


@operation("linalg_inv_ex", native=_core._linalg_inv_ex, takes=("A",))
def inv_ex(
    A: Tensor, *, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_inv_ex:
    """Compute the inverses of square matrices, and which have none.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        check_errors: Raise an error for a singular matrix, as :func:`inv` does.
        out: Two tensors that the results are written to.

    Returns:
        ``(inverse, info)``: ``info``, int32, of shape ``(*)``, is the place of the first zero on the diagonal of the
        factorisation, counted from 1, or 0.

    Raises:
        LinAlgError: A matrix is singular, and ``check_errors`` is set.

    Example:
        >>> rgrad.linalg.inv_ex(rgrad.eye(2)).info
        tensor(0, dtype=rgrad.int32)
    """
    return _core._linalg_inv_ex(A, check_errors)


@operation("linalg_solve_ex", native=_core._linalg_solve_ex, takes=("A", "B"))
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_solve_ex:
    """Solve systems of linear equations as :func:`solve` does, and tell which matrices are singular.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        B: As for :func:`solve`.
        left: Solve ``X @ A = B`` if this is False.
        check_errors: Raise an error for a singular matrix.
        out: Two tensors that the results are written to.

    Returns:
        ``(result, info)``: ``info``, int32, is not 0 for singular matrices; their solutions are infinite.

    Raises:
        LinAlgError: A matrix is singular, and ``check_errors`` is set.

    Example:
        >>> rgrad.linalg.solve_ex(rgrad.eye(2), rgrad.ones(2)).result
        tensor([1., 1.])
    """
    return _core._linalg_solve_ex(A, B, left, check_errors)
