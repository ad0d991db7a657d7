"""Determinants."""

from __future__ import annotations

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation


@operation("linalg_det", native=_core._linalg_det, takes=("A",))
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the determinants of square matrices.

    The gradient exists for singular matrices, too; the second derivative does for those of up to three rows.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Where the result is written.

    Returns:
        Shape ``(*)``.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.det(rgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.0000)
    """
    return _core._linalg_det(A)


@operation("linalg_slogdet", native=_core._linalg_slogdet, takes=("A",))
def slogdet(A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_slogdet:
    """Compute the signs of determinants, and the logarithms of their magnitudes.

    Args:
        A: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Two tensors that the results are written to.

    Returns:
        ``(sign, logabsdet)``, both of shape ``(*)``; of a singular matrix 0 and minus infinity. The logarithm is real.
        The sign of a complex determinant has magnitude 1 and a gradient.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.slogdet(rgrad.eye(2)).sign
        tensor(1.)
    """
    return _core._linalg_slogdet(A)


@operation("logdet")
def logdet(input: Tensor) -> Tensor:
    """Compute the logarithms of the determinants of square matrices.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.

    Returns:
        Shape ``(*)``; nan where a real determinant is negative.

    Example:
        >>> rgrad.logdet(rgrad.eye(2))
        tensor(0.)
    """
    sign, size = slogdet(input)
    if sign.dtype.is_complex:
        return sign.log() + size
    return _core.where(sign == -1.0, _core.full_like(size, float("nan")), size)
