"""Norms of vectors and matrices, and the condition number."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import type_name
from .._operation.options import checked_dtype
from ._host import check_matrix

_Dims = int | Sequence[int] | None


def _listed(name: str, dim: Any) -> tuple[int, ...]:
    """One dimension, which may be a tensor without dimensions, or several."""
    if isinstance(dim, int) or (isinstance(dim, Tensor) and not dim.dim()):
        dim = (dim,)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"{name}(): argument 'dim' must be int or tuple of ints, not {type(dim).__name__}")
    return tuple(operator.index(d) for d in dim)


def _checked(name: str, x: Any, dtype: Any) -> Tensor:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(x.dtype)}")
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {type_name(dtype)}")
        if x.dtype.is_complex != dtype.is_complex:
            kind = "complex" if x.dtype.is_complex else "real"
            raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {type_name(dtype)}")
        if not _core.can_cast(x.dtype, dtype) or _core.promote_types(x.dtype, dtype) != dtype:
            raise RuntimeError(
                f"{name}: the dtype of the input ({type_name(x.dtype)}) should be convertible without narrowing to the "
                f"specified dtype ({type_name(dtype)})"
            )
        x = x.to(dtype)
    made: Tensor = x
    return made


@operation("linalg_vector_norm")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: _Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute norms of vectors.

    Args:
        x: A tensor of floats or complex numbers, whose norms are real.
        ord: The order: any number, infinities included; 0 counts what is not 0.
        dim: The dimensions of the vectors, by default all.
        keepdim: Keep them with size 1.
        dtype: Convert the input first.
        out: Where the result is written.

    Returns:
        A tensor of the other dimensions.

    Raises:
        RuntimeError: The input has neither floats nor complex numbers, or no elements where a smallest or largest
            one is wanted.

    Example:
        >>> rgrad.linalg.vector_norm(rgrad.tensor([3.0, 4.0]))
        tensor(5.)
    """
    x = _checked("linalg.vector_norm", x, checked_dtype("linalg_vector_norm", dtype))
    dims = list(range(x.dim())) if dim is None else list(_listed("linalg_vector_norm", dim))
    dims = dims or list(range(x.dim()))
    if (ord < 0 or ord == math.inf) and any(not x.shape[d] for d in dims if x.dim()):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor along a dimension because the "
            "operation does not have an identity"
        )
    if not dims:
        return x.abs() if ord else _core.norm(x.reshape(1), ord, [0])
    return _core.norm(x, ord, dims, keepdim)


def _matrix_dims(name: str, A: Tensor, dim: Any) -> tuple[int, int]:
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    for d in dim:
        if not -A.dim() <= d < A.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-A.dim()}, {A.dim() - 1}], but got {d})"
            )
    first, second = (d % A.dim() for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


@operation("linalg_matrix_norm")
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute norms of matrices.

    Args:
        A: A tensor of floats or complex numbers with two dimensions or more.
        ord: ``"fro"``, ``"nuc"`` (the sum of the singular values), 2 or -2 (the largest, the smallest singular
            value), 1 or -1 (the largest, the smallest sum of a column), infinity or minus infinity (of a row).
        dim: The two dimensions of the matrices.
        keepdim: Keep them with size 1.
        dtype: Convert the input first.
        out: Where the result is written.

    Returns:
        A tensor of the other dimensions.

    Raises:
        RuntimeError: The input has no floats or fewer dimensions, or there is no such order.

    Example:
        >>> rgrad.linalg.matrix_norm(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
        tensor(4.)
    """
    A = _checked("linalg.matrix_norm", A, dtype)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"linalg_matrix_norm(): argument 'dim' must be tuple of two ints, not {type(dim).__name__}")
    first, second = _matrix_dims("linalg.matrix_norm", A, _listed("linalg_matrix_norm", dim))
    orders: tuple[Any, ...] = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    if ord not in orders:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        A = check_matrix("linalg.matrix_norm", A)
        S = _core._linalg_svdvals(A.movedim((first, second), (-2, -1)), "linalg.matrix_norm")
        if ord == 2 and not S.shape[-1]:
            # The largest of no singular values is 0.
            S = S.new_zeros((*S.shape[:-1], 1))
        made = S.sum(-1) if ord == "nuc" else S.amax(-1) if ord == 2 else S.amin(-1)
    else:
        order = float(ord)
        summed, chosen = (first, second) if abs(order) == 1 else (second, first)
        sums = vector_norm(A, 1, summed, True)
        if order > 0 and not sums.shape[chosen]:
            sums = sums.sum(chosen, True)
        made = sums.amax(chosen, True) if order > 0 else sums.amin(chosen, True)
        made = _core._unrelated(made.squeeze((first, second)))
    if keepdim:
        for d in sorted((first, second)):
            made = made.unsqueeze(d)
    return made


@operation("linalg_norm")
def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: _Dims = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Compute norms of vectors or matrices.

    Args:
        A: A tensor of floats.
        ord: The order, as for :func:`matrix_norm` or :func:`vector_norm`; None is 2 over all given dimensions.
        dim: One dimension of vectors or two of matrices; by default that of a vector, those of a matrix, or, without
            an order, all.
        keepdim: Keep them with size 1.
        out: Where the result is written.
        dtype: Convert the input first.

    Returns:
        A tensor of the other dimensions.

    Example:
        >>> rgrad.linalg.norm(rgrad.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor(5.)
    """
    A = _checked("linalg.norm", A, dtype)
    dims = None if dim is None else _listed("linalg_norm", dim)
    if ord is None:
        return vector_norm(A, 2, dims, keepdim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and A.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    if (dims is not None and len(dims) == 2) or (dims is None and A.dim() == 2):
        return matrix_norm(A, ord, dims or (0, 1), keepdim)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} not supported for vectors; it needs two dimensions.")
    return vector_norm(A, ord, dims, keepdim)


@operation("linalg_cond")
def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Compute the condition numbers of matrices: the norm times the norm of the inverse.

    Args:
        A: Shape ``(*, n, n)``, or ``(*, m, n)`` with ``p`` None, 2 or -2; float32, float64, complex64 or complex128.
        p: The order of the norm, as for :func:`matrix_norm`; None is 2.
        out: Where the result is written.

    Returns:
        Shape ``(*)``; infinite for singular matrices.

    Example:
        >>> rgrad.linalg.cond(rgrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(2.)
    """
    A = check_matrix("linalg.cond", A, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        S = _core._linalg_svdvals(A, "linalg.cond")
        if not S.shape[-1]:
            return _core.zeros(A.shape[:-2], dtype=S.dtype, device=A.device)
        made = S[..., -1] / S[..., 0] if p == -2 else S[..., 0] / S[..., -1]
        return made
    assert p is not None
    inverse, info = _core._linalg_inv_ex(A)
    bad = info != 0
    made = matrix_norm(A, p) * matrix_norm(_core.where(bad[..., None, None], A, inverse), p)
    return _core.where(bad, _core.full_like(made, math.inf), made)
