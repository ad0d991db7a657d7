"""Inverses and solutions that tell which matrices are singular instead of raising an error."""

from __future__ import annotations

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from ._factor import lu_factor_ex
from ._host import LinAlgError, check_matrix, eye_like
from ._solve import SINGULAR, SINGULAR_SOLVE, _unchecked_inv, solve


@operation("linalg_inv_ex")
def inv_ex(
    A: Tensor, *, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_inv_ex:
    """Compute the inverses of square matrices, and which have none.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
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
    A = check_matrix("linalg.inv_ex", A, square=True)
    info = lu_factor_ex(A.detach()).info
    if check_errors and A.device.type != "meta" and bool((info != 0).any()):
        raise LinAlgError(f"linalg.inv: {SINGULAR}")
    made = _unchecked_inv(A)[0]
    return return_types.linalg_inv_ex(made, info)


@operation("linalg_solve_ex")
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> return_types.linalg_solve_ex:
    """Solve systems of linear equations as :func:`solve` does, and tell which matrices are singular.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
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
    A = check_matrix("linalg.solve_ex", A, square=True)
    info = lu_factor_ex(A.detach()).info
    if check_errors and A.device.type != "meta" and bool((info != 0).any()):
        raise LinAlgError(f"linalg.solve: {SINGULAR_SOLVE}")
    good = (info == 0)[..., None, None]
    made = solve(_core.where(good, A, eye_like(A, A.shape[-1])), B, left=left)
    shown = good if made.dim() == B.dim() and B.dim() >= 2 and made.dim() >= A.dim() else good[..., 0]
    made = _core.where(shown, made, _core.full_like(made, float("inf")))
    return return_types.linalg_solve_ex(made, info)
