"""Products and powers of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import into, type_name
from .._runtime.warned import warn_user_once
from ._host import eye_like
from ._solve import inv, solve


@operation("linalg_cross", native=_core.linalg_cross, takes=("input", "other"))
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the cross products of vectors of three elements.

    Args:
        input: A tensor with three elements along ``dim``.
        other: A tensor that is broadcast with it.
        dim: The dimension of the vectors.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        RuntimeError: There are not three elements along ``dim``, or the numbers of dimensions differ.

    Example:
        >>> rgrad.linalg.cross(rgrad.tensor([1, 0, 0]), rgrad.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    return _core.linalg_cross(input, other, dim=dim)


@operation("linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the dot products of vectors along a dimension.

    Args:
        x: A tensor; it is conjugated if it is complex.
        y: A tensor that is broadcast with it.
        dim: The dimension of the vectors.
        out: Where the result is written.

    Returns:
        A tensor of the other dimensions.

    Example:
        >>> rgrad.linalg.vecdot(rgrad.tensor([1.0, 2.0]), rgrad.tensor([3.0, 4.0]))
        tensor(11.)
    """
    if _core._autocasts() and _core.is_autocast_enabled(x.device.type):
        small = _core.get_autocast_dtype(x.device.type)
        x, y = (t.to(small) if t.is_floating_point() and t.dtype != _core.float64 else t for t in (x, y))
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {type_name(x.dtype)} and y "
            f"of type {type_name(y.dtype)} instead"
        )
    return (x.conj() * y).sum(dim).to(x.dtype)


@operation("linalg_vander")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Make Vandermonde matrices: the powers of each element in a row, from 0 up.

    Args:
        x: Shape ``(*, n)``; a number counts as one element.
        N: The number of powers, by default ``n``.

    Returns:
        Shape ``(*, n, N)``.

    Raises:
        RuntimeError: ``N`` is less than 2, or the tensor has 16-bit floats or truth values.

    Example:
        >>> rgrad.linalg.vander(rgrad.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]])
    """
    if x.dtype in (_core.float16, _core.bfloat16, _core.bool):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {type_name(x.dtype)}"
        )
    rows = x if x.dim() else x.unsqueeze(0)
    count = rows.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = rows.unsqueeze(-1).expand(*rows.shape, count - 1).cumprod(-1)
    return _core.cat([powers.new_ones((*rows.shape, 1)), powers], -1)


@operation("linalg_diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Give the diagonals of matrices as a view.

    Args:
        A: A tensor with two dimensions or more.
        offset: Which diagonal: above the main one if positive.
        dim1: The dimension of the rows.
        dim2: The dimension of the columns.

    Returns:
        A view; the diagonal is its last dimension.

    Example:
        >>> rgrad.linalg.diagonal(rgrad.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Compute the product of matrices in the order with the fewest multiplications (Cormen et al., chapter 15).

    Args:
        matrices: Two dimensions each.
        out: Where the result is written.

    Raises:
        RuntimeError: There is none, one has another number of dimensions, or their sizes do not fit.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad.chain_matmul(rgrad.ones(2, 3), rgrad.ones(3, 4), rgrad.ones(4, 1))
        tensor([[12.],
                [12.]])
    """
    warn_user_once(
        "rgrad.chain_matmul is deprecated and will be removed in a future PyTorch release. Use rgrad.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    return into(out, _chained(matrices), "chain_matmul")


def _chained(matrices: Sequence[Tensor]) -> Tensor:
    """The product in the order with the fewest multiplications."""
    for i, m in enumerate(matrices):
        if m.dim() != 2:
            raise RuntimeError(f"chain_matmul: Tensor dimension is {m.dim()}, expected 2 instead: matrix {i}")
    if not matrices:
        raise RuntimeError("chain_matmul(): expected at least one matrix")
    n = len(matrices)
    sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else product(i, cut[i][j]) @ product(cut[i][j] + 1, j)

    return product(0, n - 1)


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Compute the product of matrices in the order with the fewest multiplications.

    Args:
        tensors: Two or more; the first and the last may be vectors.
        out: Where the result is written.

    Returns:
        The product.

    Raises:
        RuntimeError: There are fewer than two, or their sizes do not fit.

    Example:
        >>> rgrad.linalg.multi_dot([rgrad.ones(2), rgrad.ones(2, 3), rgrad.ones(3)])
        tensor(6.)
    """
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    matrices = list(tensors)
    for i, m in enumerate(matrices):
        if not isinstance(m, Tensor):
            raise TypeError(f"multi_dot(): argument 'tensors' must be tuple of Tensors, not of {type(m).__name__}")
        ends = i in (0, len(matrices) - 1)
        if m.dim() != 2 and not (ends and m.dim() == 1):
            raise RuntimeError(f"multi_dot(): tensor {i} must be {'1D or 2D' if ends else '2D'} but got {m.dim()}D")
    row, column = matrices[0].dim() == 1, matrices[-1].dim() == 1
    if row:
        matrices[0] = matrices[0].unsqueeze(0)
    if column:
        matrices[-1] = matrices[-1].unsqueeze(1)
    for a, b in itertools.pairwise(matrices):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    made = _chained(matrices)
    made = made.squeeze(-1) if column else made
    return into(out, made.squeeze(0) if row else made, "multi_dot")


@operation("linalg_matrix_power")
def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Compute the powers of square matrices by repeated squaring.

    Args:
        A: Shape ``(*, m, m)``.
        n: The exponent; a negative one is that of the inverse.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Raises:
        LinAlgError: A matrix is singular, and ``n`` is negative.
        RuntimeError: The matrices are not square.

    Example:
        >>> rgrad.linalg.matrix_power(rgrad.tensor([[2.0, 0.0], [0.0, 3.0]]), 3)
        tensor([[ 8.,  0.],
                [ 0., 27.]])
    """
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} "
            "matrices"
        )
    if n == 0:
        made = A.clone().copy_(eye_like(A, A.shape[-1]).expand(A.shape))  # its gradient is 0, not missing
        return made
    base = inv(A) if n < 0 else A
    result, left = None, abs(n)
    while left:
        if left & 1:
            result = base if result is None else result @ base
        left >>= 1
        if left:
            base = base @ base
    assert result is not None
    return result.clone() if n == 1 else result


@operation("linalg_matrix_exp")
def matrix_exp(A: Tensor) -> Tensor:
    """Compute the exponentials of square matrices.

    Args:
        A: Shape ``(*, n, n)``, of floats or complex numbers.

    Returns:
        A tensor of the same shape.

    Raises:
        RuntimeError: The matrices are not square, or of another dtype.

    Example:
        >>> rgrad.linalg.matrix_exp(rgrad.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if A.dtype in (_core.float16, _core.bfloat16):
        return matrix_exp(A.float()).to(A.dtype)
    return _core._linalg_matrix_exp(A)


@operation("linalg_tensorinv")
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse of :func:`rgrad.tensordot` with ``A``.

    Args:
        A: A tensor whose first ``ind`` sizes have the product of the others.
        ind: How many dimensions stand for rows.
        out: Where the result is written.

    Returns:
        A tensor of the shape ``A.shape[ind:] + A.shape[:ind]``.

    Raises:
        LinAlgError: There is no inverse.
        RuntimeError: The sizes do not fit, or ``ind`` is not positive.

    Example:
        >>> rgrad.linalg.tensorinv(rgrad.eye(4).reshape(2, 2, 4), 2).shape
        rgrad.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    if ind > A.dim():
        raise RuntimeError(f"linalg.tensorinv: invalid slice, ind = {ind} for a tensor with {A.dim()} dimensions")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if rows.numel() != columns.numel():
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns.numel()} != {rows.numel()}"
        )
    made = inv(A.reshape(rows.numel(), columns.numel())).reshape(*columns, *rows)
    return made


@operation("linalg_tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """Solve ``tensordot(A, X, X.dim()) = B``.

    Args:
        A: A tensor whose shape begins with that of ``B``; the product of the other sizes is that of ``B``.
        B: A tensor.
        dims: Dimensions of ``A`` that are moved to its end first.
        out: Where the result is written.

    Returns:
        The solution, of the shape ``A.shape[B.dim():]``.

    Raises:
        LinAlgError: There is no solution.
        RuntimeError: The sizes do not fit.

    Example:
        >>> rgrad.linalg.tensorsolve(rgrad.eye(4).reshape(2, 2, 4), rgrad.ones(2, 2))
        tensor([1., 1., 1., 1.])
    """
    M = A if dims is None else A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    wanted = M.shape[B.dim() :]
    if wanted.numel() != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {wanted.numel()} != {B.numel()}"
        )
    made = solve(M.reshape(B.numel(), wanted.numel()), B.reshape(-1)).reshape(wanted)
    return made


@operation("linalg_householder_product", native=_core._linalg_householder_product, takes=("A", "tau"))
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the first columns of a product of Householder's reflections.

    Args:
        A: Shape ``(*, m, n)``, ``m >= n``: below its diagonal the vectors, which begin with a 1.
        tau: Shape ``(*, k)``, ``k <= n``: their factors.
        out: Where the result is written.

    Returns:
        Shape ``(*, m, n)``.

    Raises:
        RuntimeError: The sizes do not fit.

    Example:
        >>> rgrad.linalg.householder_product(rgrad.eye(2), rgrad.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return _core._linalg_householder_product(A, tau)
