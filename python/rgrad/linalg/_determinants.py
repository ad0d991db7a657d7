"""Determinants. Their derivatives are made of cofactors, which singular matrices have, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from ._host import check_matrix, named, primitive
from ._solve import _inv, _unchecked_inv


def _cofactor_values(A: Any) -> Any:
    with named("linalg.det", "The algorithm failed to converge."):
        U, S, Vh = np.linalg.svd(A)
        n = S.shape[-1]
        others = np.repeat(S[..., None, :], n, -2)
        others[..., np.arange(n), np.arange(n)] = 1.0
        sign = np.linalg.det(U) * np.linalg.det(Vh)
        return ((U * others.prod(-1)[..., None, :]) @ Vh * np.round(sign)[..., None, None],)


def _cofactor_vjp(grads: Any, inputs: Any, outputs: Any) -> Any:
    C, G = outputs[0], grads[0]
    inverse = _inv(inputs[0])[0].mT
    return ((G * C).sum((-2, -1), keepdim=True) * inverse - C @ G.mT @ inverse,)


def _cofactor_jvp(tangents: Any, inputs: Any, outputs: Any) -> Any:
    C, dA = outputs[0], tangents[0]
    inverse = _inv(inputs[0])[0].mT
    return ((inverse * dA).sum((-2, -1), keepdim=True) * C - inverse @ dA.mT @ C,)


_cofactor_apply = primitive("Cofactor", _cofactor_values, _cofactor_vjp, _cofactor_jvp)


def _cofactor(A: Tensor) -> Tensor:
    """The derivative of the determinant.

    Up to three rows it is a polynomial here, so singular matrices have every derivative; above, the second derivative
    needs the inverse.
    """
    n = A.shape[-1]
    if n == 0:
        return A
    if n == 1:
        return _core.ones_like(A)
    if n == 2:
        (a, b), (c, d) = ((A[..., i, j] for j in range(2)) for i in range(2))
        return _core.stack([_core.stack([d, -c], -1), _core.stack([-b, a], -1)], -2)
    if n == 3:
        rows = [A[..., i, :] for i in range(3)]
        return _core.stack([_cross(rows[(i + 1) % 3], rows[(i + 2) % 3]) for i in range(3)], -2)
    made: Tensor = _cofactor_apply(A)[0]
    return made


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a.roll(-1, -1) * b.roll(-2, -1) - a.roll(-2, -1) * b.roll(-1, -1)


_det_apply = primitive(
    "LinalgDet",
    lambda A: (np.linalg.det(A),),
    lambda grads, inputs, outputs: (grads[0][..., None, None] * _cofactor(inputs[0]),),
    lambda tangents, inputs, outputs: ((_cofactor(inputs[0]) * tangents[0]).sum((-2, -1)),),
    shapes=lambda A: (A[:-2],),
)


def _slogdet_vjp(grads: Any, inputs: Any, outputs: Any) -> Any:
    if grads[1] is None:
        return (None,)
    return (grads[1][..., None, None] * _unchecked_inv(inputs[0])[0].mT,)


_slogdet_apply = primitive(
    "LinalgSlogdet",
    lambda A: tuple(np.linalg.slogdet(A)),
    _slogdet_vjp,
    lambda tangents, inputs, outputs: (
        None,
        (_unchecked_inv(inputs[0])[0].mT * tangents[0]).sum((-2, -1)),
    ),
    without=(0,),
    shapes=lambda A: (A[:-2], A[:-2]),
)


@operation("linalg_det")
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the determinants of square matrices.

    The gradient exists for singular matrices, too; the second derivative does for those of up to three rows.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
        out: Where the result is written.

    Returns:
        Shape ``(*)``.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.det(rgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.)
    """
    A = check_matrix("linalg.det", A, square=True)
    return _det_apply(A)[0]


@operation("linalg_slogdet")
def slogdet(A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.linalg_slogdet:
    """Compute the signs of determinants, and the logarithms of their magnitudes.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
        out: Two tensors that the results are written to.

    Returns:
        ``(sign, logabsdet)``, both of shape ``(*)``; of a singular matrix 0 and minus infinity.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.slogdet(rgrad.eye(2)).sign
        tensor(1.)
    """
    A = check_matrix("linalg.slogdet", A, square=True)
    return return_types.linalg_slogdet(*_slogdet_apply(A))


@operation("logdet")
def logdet(input: Tensor) -> Tensor:
    """Compute the logarithms of the determinants of square matrices.

    Args:
        input: Shape ``(*, n, n)``, float32 or float64.

    Returns:
        Shape ``(*)``; nan where a determinant is negative.

    Example:
        >>> rgrad.logdet(rgrad.eye(2))
        tensor(0.)
    """
    sign, size = slogdet(input)
    return _core.where(sign == -1.0, _core.full_like(size, float("nan")), size)
