"""Maps to orthogonal matrices, in tensor operations that gradients of every order go through."""

import math

from ... import _core
from ..._core import Tensor

#: Terms of the series of the exponential: enough for float64 at norms up to 1/2.
_TERMS = 14


def matrix_exp(a: Tensor) -> Tensor:
    """The exponential of matrices, by scaling, a Taylor series and squaring (Moler and Van Loan 2003, method 3)."""
    eye = _core.eye(a.size(-1), dtype=a.dtype, device=a.device)
    norm = a.detach().abs().sum(-1).max().item() if a.numel() else 0.0
    squarings = max(0, math.ceil(math.log2(norm / 0.5))) if norm > 0.5 and math.isfinite(norm) else 0
    x = a / 2.0**squarings
    total = eye + x / _TERMS
    for k in range(_TERMS - 1, 0, -1):
        total = eye + x @ total / k
    for _ in range(squarings):
        total = total @ total
    return total


def cayley(a: Tensor) -> Tensor:
    """``(I - A/2)⁻¹ (I + A/2)`` of skew-symmetric matrices.

    The symmetric part of ``I - A/2`` is the identity, so elimination needs no exchange of rows.
    """
    n = a.size(-1)
    eye = _core.eye(n, dtype=a.dtype, device=a.device)
    left, right = eye - a / 2, (eye + a / 2).expand(a.shape)
    for k in range(n):
        pivot = left[..., k : k + 1, k : k + 1]
        row, answer = left[..., k : k + 1, :] / pivot, right[..., k : k + 1, :] / pivot
        unit = eye[:, k : k + 1]
        column = left[..., :, k : k + 1] - unit
        left, right = left - column @ row, right - column @ answer
    return right


def householder_product(a: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections ``I - tau_k v_k v_kᵀ``; v_k is 1 at k and column k below."""
    rows, columns = a.shape[-2:]
    q = _core.eye(rows, dtype=a.dtype, device=a.device)[:, :columns].expand(a.shape)
    below = a.tril(-1)
    for k in range(columns - 1, -1, -1):
        unit = _core.zeros(rows, 1, dtype=a.dtype, device=a.device)
        unit[k] = 1.0
        v = below[..., :, k : k + 1] + unit
        q = q - tau[..., k, None, None] * (v @ (v.mT @ q))
    return q


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """The QR decomposition as LAPACK's geqrf gives it: R with the reflections below it, and their factors.

    Without gradients.
    """
    import numpy as np

    values = a.numpy(force=True)
    pairs = [np.linalg.qr(matrix, mode="raw") for matrix in values.reshape(-1, *values.shape[-2:])]
    columns = min(values.shape[-2:])
    h = np.stack([pair[0].T for pair in pairs]).reshape(values.shape).astype(values.dtype)
    tau = np.stack([pair[1] for pair in pairs]).reshape(*values.shape[:-2], columns).astype(values.dtype)
    return _core.tensor(h, device=a.device), _core.tensor(tau, device=a.device)


def orthogonal_of(a: Tensor) -> Tensor:
    """The factor Q of the QR decomposition whose R has no negative element on its diagonal."""
    h, tau = geqrf(a)
    return householder_product(h, tau) * h.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
