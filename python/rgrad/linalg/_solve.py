"""Inverses and systems of linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from ._host import check_matrix, named, primitive, widened

SINGULAR = "The diagonal element is zero, the inversion could not be completed because the input matrix is singular."
SINGULAR_SOLVE = "The solver failed because the input matrix is singular."


def _unchecked(name: str, message: str, f: Any, *arrays: Any) -> Any:
    with named(name, message):
        return f(*arrays)


_inv = primitive(
    "LinalgInvEx",
    lambda A: (_unchecked("linalg.inv", SINGULAR, np.linalg.inv, A),),
    lambda grads, inputs, outputs: (-outputs[0].mT @ grads[0] @ outputs[0].mT,),
    lambda tangents, inputs, outputs: (-outputs[0] @ tangents[0] @ outputs[0],),
)


def _inverse_or_inf(A: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return (np.linalg.inv(A),)
        except np.linalg.LinAlgError:
            made = np.full_like(A, np.inf)
            flat, rows = made.reshape(-1, *A.shape[-2:]), A.reshape(-1, *A.shape[-2:])
            for i, M in enumerate(rows):
                try:
                    flat[i] = np.linalg.inv(M)
                except np.linalg.LinAlgError:
                    continue  # it stays infinite
            return (made,)


_unchecked_inv = primitive(
    "LinalgInvEx",
    _inverse_or_inf,
    lambda grads, inputs, outputs: (-outputs[0].mT @ grads[0] @ outputs[0].mT,),
    lambda tangents, inputs, outputs: (-outputs[0] @ tangents[0] @ outputs[0],),
)


def _solve_vjp(grads: Any, inputs: Any, outputs: Any) -> Any:
    g = _solve_matrix(inputs[0].mT, grads[0])
    return -g @ outputs[0].mT, g


_solve_apply = primitive(
    "LinalgSolveEx",
    lambda A, B: (_unchecked("linalg.solve", SINGULAR_SOLVE, np.linalg.solve, A, B),),
    _solve_vjp,
    lambda tangents, inputs, outputs: (_solve_matrix(inputs[0], tangents[1] - tangents[0] @ outputs[0]),),
    shapes=lambda A, B: ((*_core.broadcast_shapes(A[:-2], B[:-2]), *B[-2:]),),
)


def _solve_matrix(A: Tensor, B: Tensor) -> Tensor:
    made: Tensor = _solve_apply(A, B)[0]
    return made


def _substitute(A: Any, B: Any, upper: bool, unit: bool) -> Any:
    """The solution of a triangular system, by blocks; a zero on the diagonal gives infinities."""
    n = A.shape[-1]
    X = np.array(np.broadcast_to(B, np.broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[-2:]))
    block = 32
    starts = range(0, n, block)
    with np.errstate(all="ignore"):
        for start in reversed(starts) if upper else starts:
            stop = min(start + block, n)
            for i in reversed(range(start, stop)) if upper else range(start, stop):
                rest = slice(i + 1, stop) if upper else slice(start, i)
                if rest.start < rest.stop:
                    X[..., i, :] -= (A[..., i : i + 1, rest] @ X[..., rest, :])[..., 0, :]
                if not unit:
                    X[..., i, :] /= A[..., i, i][..., None]
            todo = slice(0, start) if upper else slice(stop, n)
            if todo.start < todo.stop:
                X[..., todo, :] -= A[..., todo, start:stop] @ X[..., start:stop, :]
    return X


def _part(G: Tensor, upper: bool, unit: bool) -> Tensor:
    return G.triu(int(unit)) if upper else G.tril(-int(unit))


def _triangular_vjp(grads: Any, inputs: Any, outputs: Any, upper: bool, unit: bool) -> Any:
    g = _triangular(inputs[0].mT, grads[0], not upper, unit)
    return _part(-g @ outputs[0].mT, upper, unit), g


def _triangular_jvp(tangents: Any, inputs: Any, outputs: Any, upper: bool, unit: bool) -> Any:
    change = _part(tangents[0], upper, unit) @ outputs[0]
    return (_triangular(inputs[0], tangents[1] - change, upper, unit),)


_triangular_apply = primitive(
    "LinalgSolveTriangular",
    lambda A, B, upper, unit: (_substitute(A, B, upper, unit),),
    _triangular_vjp,
    _triangular_jvp,
    keywords=2,
    shapes=lambda A, B, upper, unit: ((*_core.broadcast_shapes(A[:-2], B[:-2]), *B[-2:]),),
)


def _triangular(A: Tensor, B: Tensor, upper: bool, unit: bool = False) -> Tensor:
    made: Tensor = _triangular_apply(A, B, upper, unit)[0]
    return made


def _same_batch(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the leading dimensions of both."""
    batch = _core.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])


def _check_pair(name: str, A: Any, B: Any, left: bool = True) -> None:
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type {B.dtype} "
            "instead"
        )
    if B.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    size = B.shape[-2] if left else B.shape[-1]
    if A.shape[-1] != size:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


@operation("linalg_inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverses of square matrices.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
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
    A = check_matrix("linalg.inv", A, square=True)
    return _inv(A)[0]


@operation("linalg_solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solve systems of linear equations, ``A @ X = B``.

    Args:
        A: Shape ``(*, n, n)``, float32 or float64.
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
    A = check_matrix("linalg.solve", A, square=True)
    B = widened(B)
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    rhs = B.unsqueeze(-1) if vector else B
    _check_pair("linalg.solve", A, rhs, left)
    M, rhs = _same_batch(A, rhs)
    made = _solve_matrix(M, rhs) if left else _solve_matrix(M.mT, rhs.mT).mT
    return _core._unrelated(made.squeeze(-1) if vector else made)


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
        A: Shape ``(*, n, n)``, float32 or float64; the other triangle is not read.
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
    A = check_matrix("linalg.solve_triangular", A, square=True)
    B = widened(B)
    _check_pair("linalg.solve_triangular", A, B, left)
    M, rhs = _same_batch(A, B)
    made = _triangular(M, rhs, upper, unitriangular) if left else _triangular(M.mT, rhs.mT, not upper, unitriangular).mT
    return made
