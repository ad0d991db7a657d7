"""Linear algebra under the names that PyTorch has at its top level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from .._runtime.warned import warn_user_once
from ._determinants import det as _det
from ._determinants import slogdet as _slogdet
from ._factor import cholesky as _cholesky
from ._factor import lu_factor, lu_factor_ex
from ._factor import lu_solve as _lu_solve
from ._factor import qr as _qr
from ._norms import matrix_norm, vector_norm
from ._products import householder_product
from ._products import matrix_exp as _matrix_exp
from ._products import matrix_power as _matrix_power
from ._solve import inv, solve_triangular
from ._spectrum import pinv
from ._spectrum import svd as _svd


def _deprecated(name: str, new: str, how: str) -> None:
    warn_user_once(
        f"rgrad.{name} is deprecated in favor of rgrad.linalg.{new} and will be removed in a future PyTorch release: "
        + how
    )


@operation("inverse")
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverses of square matrices; see :func:`rgrad.linalg.inv`.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.inverse(rgrad.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return inv(input)


@operation("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Compute the pseudo-inverses of matrices; see :func:`rgrad.linalg.pinv`.

    Args:
        input: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        rcond: Singular values up to this times the largest one count as 0.

    Returns:
        Shape ``(*, n, m)``.

    Example:
        >>> rgrad.pinverse(rgrad.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rcond)


@operation("cholesky")
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute Cholesky factors; see :func:`rgrad.linalg.cholesky`.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        upper: Give the upper factor.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.cholesky(rgrad.tensor([[4.0]]))
        tensor([[2.]])
    """
    _deprecated("cholesky", "cholesky", "L = rgrad.linalg.cholesky(A), and for upper=True its .mH")
    return _cholesky(input, upper=upper)


@operation("det")
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute determinants; see :func:`rgrad.linalg.det`.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Where the result is written.

    Returns:
        Shape ``(*)``.

    Example:
        >>> rgrad.det(2 * rgrad.eye(2))
        tensor(4.)
    """
    return _det(input)


@operation("matrix_exp")
def matrix_exp(input: Tensor) -> Tensor:
    """Compute the exponentials of square matrices; see :func:`rgrad.linalg.matrix_exp`.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.matrix_exp(rgrad.zeros(1, 1))
        tensor([[1.]])
    """
    return _matrix_exp(input)


@operation("matrix_power")
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Compute the powers of square matrices; see :func:`rgrad.linalg.matrix_power`.

    Args:
        input: Shape ``(*, m, m)``.
        n: The exponent; a negative one is that of the inverse.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.matrix_power(rgrad.tensor([[2.0]]), -2)
        tensor([[0.2500]])
    """
    return _matrix_power(input, n)


@operation("qr")
def qr(input: Tensor, some: bool = True, *, out: tuple[Tensor, ...] | None = None) -> return_types.qr:
    """Compute QR factorisations; see :func:`rgrad.linalg.qr`.

    Args:
        input: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        some: Give the reduced factors instead of the complete ones.
        out: Two tensors that the results are written to.

    Returns:
        ``(Q, R)``.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.qr(rgrad.ones(3, 2)).Q.shape
        rgrad.Size([3, 2])
    """
    _deprecated("qr", "qr", "Q, R = rgrad.linalg.qr(A, 'reduced' if some else 'complete')")
    return return_types.qr(*_qr(input, "reduced" if some else "complete"))


@operation("svd")
def svd(
    input: Tensor, some: bool = True, compute_uv: bool = True, *, out: tuple[Tensor, ...] | None = None
) -> return_types.svd:
    """Compute singular value decompositions, ``input = U @ diag(S) @ V.mH``; see :func:`rgrad.linalg.svd`.

    Args:
        input: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        some: Give the reduced factors instead of square ones.
        compute_uv: Give ``U`` and ``V``; they are zeros otherwise.
        out: Three tensors that the results are written to.

    Returns:
        ``(U, S, V)``.

    Example:
        >>> rgrad.svd(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    U, S, Vh = _svd(input, not some)
    V = Vh.mH
    if not compute_uv:
        m, n = input.shape[-2:]
        U, V = (_core.zeros(*input.shape[:-2], k, k, dtype=input.dtype, device=input.device) for k in (m, n))
    return return_types.svd(U, S, V)


@operation("slogdet")
def slogdet(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.slogdet:
    """Compute the signs and logarithms of determinants; see :func:`rgrad.linalg.slogdet`.

    Args:
        input: Shape ``(*, n, n)``, float32, float64, complex64 or complex128.
        out: Two tensors that the results are written to.

    Returns:
        ``(sign, logabsdet)``.

    Example:
        >>> rgrad.slogdet(rgrad.eye(2)).logabsdet
        tensor(0.)
    """
    return return_types.slogdet(*_slogdet(input))


@overload
def lu(
    A: Tensor, pivot: bool = True, get_infos: Literal[False] = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def lu(
    A: Tensor, pivot: bool = True, *, get_infos: Literal[True], out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lu(
    A: Tensor, pivot: bool, get_infos: Literal[True], out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]: ...
@operation("lu")
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """Compute LU factorisations; see :func:`rgrad.linalg.lu_factor`.

    Args:
        A: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        pivot: Exchange rows so that pivots are large.
        get_infos: Give, as a third result, which matrices are singular, instead of an error.
        out: Tensors that the results are written to.

    Returns:
        ``(LU, pivots)``, or ``(LU, pivots, info)``.

    Raises:
        RuntimeError: A matrix is singular, and ``get_infos`` is not set.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.lu(rgrad.eye(2))[0]
        tensor([[1., 0.],
                [0., 1.]])
    """
    _deprecated(
        "lu",
        "lu_factor / rgrad.linalg.lu_factor_ex",
        "LU, pivots = rgrad.linalg.lu_factor(A), and with infos LU, pivots, info = rgrad.linalg.lu_factor_ex(A)",
    )
    if get_infos:
        LU, pivots, infos = lu_factor_ex(A, pivot=pivot)
        return LU, pivots, infos
    LU, pivots = lu_factor(A, pivot=pivot)
    return LU, pivots


@operation("lu_solve")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solve with an LU factorisation; see :func:`rgrad.linalg.lu_solve`.

    Args:
        input: Shape ``(*, n, k)``.
        LU_data: Shape ``(*, n, n)``.
        LU_pivots: Shape ``(*, n)``.
        out: Where the result is written.

    Returns:
        The solutions.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.lu_solve(rgrad.ones(2, 1), *rgrad.lu(2 * rgrad.eye(2)))
        tensor([[0.5000],
                [0.5000]])
    """
    _deprecated("lu_solve", "lu_solve", "X = rgrad.linalg.lu_solve(LU, pivots, B), with the arguments reversed")
    return _lu_solve(LU_data, LU_pivots, input)


@operation("triangular_solve")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: tuple[Tensor, ...] | None = None,
) -> return_types.triangular_solve:
    """Solve with triangular matrices; see :func:`rgrad.linalg.solve_triangular`.

    Args:
        input: Shape ``(*, n, k)``.
        A: Shape ``(*, n, n)``.
        upper: Whether the matrices are upper triangular.
        transpose: Solve with the transposes.
        unitriangular: Take the diagonal for ones.
        out: Two tensors that the results are written to.

    Returns:
        ``(solution, cloned_coefficient)``: the second is a copy of the matrices.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.triangular_solve(rgrad.ones(1, 1), rgrad.tensor([[2.0]])).solution
        tensor([[0.5000]])
    """
    M = A.mT if transpose else A
    _deprecated(
        "triangular_solve",
        "solve_triangular",
        "X = rgrad.linalg.solve_triangular(A, B, upper=...), with the arguments reversed and one result",
    )
    made = solve_triangular(M, input, upper=upper != transpose, unitriangular=unitriangular)
    return return_types.triangular_solve(made, A.clone())


@operation("geqrf", native=_core._geqrf, takes=("input",))
def geqrf(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.geqrf:
    """Compute the reflections of a QR factorisation, which :func:`rgrad.orgqr` takes.

    Args:
        input: Shape ``(*, m, n)``, float32, float64, complex64 or complex128.
        out: Two tensors that the results are written to.

    Returns:
        ``(a, tau)``: ``R`` on and above the diagonal and the reflections below it, of shape ``(*, m, n)``, and their
        factors, of shape ``(*, min(m, n))``. They have no derivative; :func:`rgrad.linalg.qr` has.

    Raises:
        RuntimeError: The input is no matrix, or of another dtype.

    Example:
        >>> rgrad.geqrf(rgrad.eye(2)).tau
        tensor([0., 0.])
    """
    return _core._geqrf(input)


@operation("orgqr")
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute products of Householder's reflections; see :func:`rgrad.linalg.householder_product`.

    Args:
        input: Shape ``(*, m, n)``: the vectors.
        input2: Shape ``(*, k)``: their factors.
        out: Where the result is written.

    Returns:
        Shape ``(*, m, n)``.

    Example:
        >>> rgrad.orgqr(rgrad.eye(1), rgrad.zeros(1))
        tensor([[1.]])
    """
    return householder_product(input, input2)


@operation("ormqr", native=_core._ormqr, takes=("input", "input2", "input3"))
def ormqr(
    input: Tensor,
    input2: Tensor,
    input3: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Multiply matrices by a product of Householder's reflections.

    Args:
        input: Shape ``(*, m, k)``: the vectors, below the diagonal, as :func:`rgrad.geqrf` has them.
        input2: Shape ``(*, min(m, k))``: their factors.
        input3: Shape ``(*, m, n)``, or ``(*, n, m)`` if ``left`` is False: the matrices.
        left: Multiply from the left.
        transpose: Multiply by the transpose of the product, of complex numbers its adjoint.
        out: Where the result is written.

    Returns:
        A tensor of the shape of ``input3``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> a, tau = rgrad.geqrf(rgrad.tensor([[3.0], [4.0]]))
        >>> rgrad.ormqr(a, tau, rgrad.tensor([[3.0], [4.0]]), transpose=True)[0]
        tensor([-5.])
    """
    return _core._ormqr(input, input2, input3, left, transpose)


@operation("nuclear_norm")
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the sums of the singular values; see :func:`rgrad.linalg.matrix_norm`.

    Args:
        input: A tensor with two dimensions or more.
        dim: The dimensions of the matrices.
        keepdim: Keep them with size 1.
        out: Where the result is written.

    Returns:
        A tensor of the other dimensions.

    Example:
        >>> rgrad.nuclear_norm(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    return matrix_norm(input, "nuc", dim, keepdim)


@operation("frobenius_norm")
def frobenius_norm(
    input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Compute the roots of the sums of squares; see :func:`rgrad.linalg.matrix_norm`.

    Args:
        input: A tensor of floats.
        dim: One or two dimensions, or none for all.
        keepdim: Keep them with size 1.
        out: Where the result is written.

    Returns:
        A tensor of the other dimensions.

    Example:
        >>> rgrad.frobenius_norm(rgrad.tensor([[3.0, 0.0], [0.0, 4.0]]), (0, 1))
        tensor(5.)
    """
    return vector_norm(input, 2, dim, keepdim)
