"""Functions of the top level that are made of others: search, integrals, differences, combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.overridable import overridable


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else _core.tensor(value, device=like.device)


# ------------------------------------------------------------------------------------------------------------- search


@operation("searchsorted")
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Find where elements would have to be inserted so that each row stays sorted, by bisection.

    Args:
        sorted_sequence: Shape ``(*, N)``, sorted along the last dimension. A nan on either side is passed by.
        input: A number, or a tensor of shape ``(*, M)`` with the same leading dimensions; any shape if
            ``sorted_sequence`` has one dimension.
        out_int32: Give int32 instead of int64.
        right: Give the place behind equal elements instead of the one before them.
        side: ``"left"`` or ``"right"``, in place of ``right``.
        sorter: Positions, int64 and of the shape of ``sorted_sequence``, that sort it.
        out: Where the result is written.

    Returns:
        Places, of the shape of ``input``.

    Raises:
        RuntimeError: Shapes do not fit, ``side`` is no side or contradicts ``right``, or ``sorter`` is not int64.
        TypeError: One of the tensors is complex.

    Example:
        >>> rgrad.searchsorted(rgrad.tensor([1.0, 3.0, 5.0]), rgrad.tensor([0.0, 3.0, 6.0]))
        tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    right = right or side == "right"
    values = _as_tensor(input, sorted_sequence)
    shape = sorted_sequence.shape
    if not shape:
        raise RuntimeError("torch.searchsorted(): sorted_sequence should have at least one dimension")
    if len(shape) > 1 and (values.dim() != len(shape) or values.shape[:-1] != shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(shape)} and input value "
            f"tensor {list(values.shape)}"
        )
    if sorter is not None:
        if sorter.shape != shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(shape)} and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype != _core.int64:
            raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got {sorter.dtype}")
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    kind = _core.promote_types(sorted_sequence.dtype, values.dtype)
    wanted = values.reshape(-1) if len(shape) == 1 else values
    places = _core._search_rows(sorted_sequence.to(kind), wanted.to(kind), right).reshape(values.shape)
    return places.to(_core.int32) if out_int32 else places


@operation("bucketize")
def bucketize(
    input: Tensor | float,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Find the bucket of each element: bucket ``i`` lies between boundaries ``i - 1`` and ``i``.

    Args:
        input: A tensor of any shape, or a number.
        boundaries: Shape ``(N)``, sorted.
        out_int32: Give int32 instead of int64.
        right: Whether an element that is a boundary belongs to the bucket behind it.
        out: Where the result is written.

    Returns:
        Numbers from 0 to ``N``, of the shape of ``input``.

    Raises:
        RuntimeError: ``boundaries`` has another number of dimensions.

    Example:
        >>> rgrad.bucketize(rgrad.tensor([0.0, 3.0, 6.0]), rgrad.tensor([1.0, 3.0, 5.0]))
        tensor([0, 1, 3])
    """
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation("isin")
def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Tell for each element whether it is among others.

    Args:
        elements: A tensor of any shape, or a number.
        test_elements: A tensor of any shape, or a number.
        assume_unique: Has no effect.
        invert: Tell whether it is not among them.
        out: Where the result is written.

    Returns:
        A bool tensor of the shape of ``elements``.

    Raises:
        TypeError: Both are numbers.

    Example:
        >>> rgrad.isin(rgrad.arange(4), rgrad.tensor([2, 3]))
        tensor([False, False,  True,  True])
    """
    like: Any = elements if isinstance(elements, Tensor) else test_elements
    found, among = _as_tensor(elements, like), _as_tensor(test_elements, like)
    kind = _core.promote_types(found.dtype, among.dtype)
    found, among = found.detach().to(kind), among.detach().to(kind)
    # For a few elements as many comparisons take less time than sorting.
    if among.numel() < 10 * found.numel() ** 0.145:
        any_same = (found.unsqueeze(-1) == among.reshape(-1)).any(-1)
        return ~any_same if invert else any_same
    ordered = among[among == among].sort().values  # nan is equal to nothing
    if ordered.numel() == 0:
        return _core.full(found.shape, invert, dtype=_core.bool, device=found.device)
    at = searchsorted(ordered, found).clamp(max=ordered.numel() - 1)
    same: Tensor = ordered[at] == found
    return ~same if invert else same


@operation("is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    """Tell whether the one element of a tensor is not 0.

    Args:
        input: A tensor of one element.

    Raises:
        RuntimeError: It has another number of elements.

    Example:
        >>> rgrad.is_nonzero(rgrad.tensor([0.5]))
        True
    """
    return bool(input)


# ----------------------------------------------------------------------------------------- integrals and differences


def _pair(name: str, y: Tensor, x: Tensor | None, dim: int) -> tuple[Tensor, Tensor | None]:
    """The sums of neighbours along `dim`, and the distances of their places."""
    if not y.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -y.dim() <= dim < y.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-y.dim()}, {y.dim() - 1}], but got {dim})"
        )
    for letter, given in (("y", y), ("x", x)):
        if given is not None and given.dtype == _core.bool:
            raise RuntimeError(f"{name}: received a bool input for `{letter}`, but bool is not supported")
    size = y.shape[dim]
    sums = y.narrow(dim, 0, max(size - 1, 0)) + y.narrow(dim, min(1, size), max(size - 1, 0))
    if x is None:
        return sums, None
    if not x.dim():
        raise RuntimeError(f"{name}: The size of tensor `x` must be that of `y`, got a tensor without dimensions")
    if x.dim() == 1:
        if x.shape[0] != size:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        at = dim % y.dim()
        x = x.reshape(*(size if i == at else 1 for i in range(y.dim())))
    elif x.dim() < y.dim():
        x = x.reshape(*[1] * (y.dim() - x.dim()), *x.shape)
    length = x.shape[dim]
    return sums, x.narrow(dim, min(1, length), max(length - 1, 0)) - x.narrow(dim, 0, max(length - 1, 0))


@operation("trapezoid")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Compute the integral along a dimension by the trapezoidal rule.

    Args:
        y: Values at sample points.
        x: The places of the points: as many as there are points, or a tensor that is broadcast with ``y``.
        dx: The distance of neighbouring points, without ``x``.
        dim: The dimension.

    Returns:
        A tensor without the dimension.

    Raises:
        IndexError: ``y`` has no dimensions.
        RuntimeError: ``x`` does not fit.

    Example:
        >>> rgrad.trapezoid(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor(4.)
    """
    sums, gaps = _pair("trapezoid", y, x, dim)
    return sums.sum(dim) * (dx / 2.0) if gaps is None else (gaps * sums).sum(dim) / 2.0


trapz = trapezoid


@operation("cumulative_trapezoid")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Compute the integral up to each point by the trapezoidal rule; see :func:`trapezoid`.

    Args:
        y: Values at sample points.
        x: The places of the points.
        dx: The distance of neighbouring points, without ``x``.
        dim: The dimension.

    Returns:
        A tensor with one element less along the dimension.

    Raises:
        IndexError: ``y`` has no dimensions.
        RuntimeError: ``x`` does not fit.

    Example:
        >>> rgrad.cumulative_trapezoid(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor([1.5000, 4.0000])
    """
    sums, gaps = _pair("cumulative_trapezoid", y, x, dim)
    return (sums * (dx / 2.0)).cumsum(dim) if gaps is None else (gaps * sums).cumsum(dim) / 2.0


@operation("gradient")
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[float] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Estimate the derivatives along dimensions by differences of second order (Fornberg 1988).

    Args:
        input: Values of a function at points.
        spacing: The distance of the points, by default 1: one number, one for each dimension, or the coordinates of the
            points along each dimension.
        dim: The dimensions, by default all.
        edge_order: 1 or 2: the order at the ends.

    Returns:
        One tensor of the shape of ``input`` for each dimension.

    Raises:
        RuntimeError: ``spacing`` does not fit, ``edge_order`` is another number, or there are not ``edge_order + 1``
            points.

    Example:
        >>> rgrad.gradient(rgrad.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if isinstance(spacing, Tensor):
        if spacing.dim() or spacing.requires_grad:
            raise TypeError(
                "gradient(): argument 'spacing' must be a number or a sequence of numbers or tensors, not a tensor of "
                f"shape {list(spacing.shape)}{' that requires grad' if spacing.requires_grad else ''}"
            )
        spacing = spacing.item()
    several = isinstance(spacing, (list, tuple))
    spaces: list[Any] = (
        list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    )
    if several and len(spaces) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or it's spacing and dim arguments to have "
            f"the same length, but got a spacing argument of length {len(spaces)} and a dim argument of length "
            f"{len(dims)}."
        )
    wrapped = [d % input.dim() if input.dim() else d for d in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(
            f"dim {next(d for d in wrapped if wrapped.count(d) > 1)} appears multiple times in the list of dims"
        )
    for d in wrapped:
        if input.shape[d] <= edge_order:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_slope(input, d, space, edge_order) for d, space in zip(wrapped, spaces, strict=True))


def _slope(y: Tensor, dim: int, space: Any, edge_order: int) -> Tensor:
    n = y.shape[dim]

    def part(first: int, count: int) -> Tensor:
        return y.narrow(dim, first, count)

    if not isinstance(space, Tensor):
        inner = (part(2, n - 2) - part(0, n - 2)) / (2 * space)
        if edge_order == 1:
            return _core.cat([(part(1, 1) - part(0, 1)) / space, inner, (part(n - 1, 1) - part(n - 2, 1)) / space], dim)
        start = (-3 * part(0, 1) + 4 * part(1, 1) - part(2, 1)) / (2 * space)
        end = (3 * part(n - 1, 1) - 4 * part(n - 2, 1) + part(n - 3, 1)) / (2 * space)
        return _core.cat([start, inner, end], dim)
    if space.dim() != 1 or space.shape[0] != n:
        raise RuntimeError(
            f"torch.gradient expected each element of spacing to have as many coordinates as the dimension has "
            f"points, {n}, got shape {list(space.shape)}"
        )
    gaps = (space[1:] - space[:-1]).to(y.dtype).reshape(*(n - 1 if i == dim else 1 for i in range(y.dim())))
    before, behind = gaps.narrow(dim, 0, n - 2), gaps.narrow(dim, 1, n - 2)
    weights = -behind / (before * (before + behind)), before / (behind * (before + behind))
    centre = (behind - before) / (before * behind)
    inner = part(0, n - 2) * weights[0] + part(1, n - 2) * centre + part(2, n - 2) * weights[1]
    first, last = gaps.narrow(dim, 0, 1), gaps.narrow(dim, n - 2, 1)
    if edge_order == 1:
        ends = (part(1, 1) - part(0, 1)) / first, (part(n - 1, 1) - part(n - 2, 1)) / last
        return _core.cat([ends[0], inner, ends[1]], dim)
    second, late = gaps.narrow(dim, 1, 1), gaps.narrow(dim, n - 3, 1)
    start = (
        part(0, 1) * (-(2.0 * first + second) / (first * (first + second)))
        + part(1, 1) * ((first + second) / (first * second))
        - part(2, 1) * (first / (second * (first + second)))
    )
    end = (
        part(n - 3, 1) * (last / (late * (late + last)))
        - part(n - 2, 1) * ((last + late) / (late * last))
        + part(n - 1, 1) * ((2.0 * last + late) / (last * (late + last)))
    )
    return _core.cat([start, inner, end], dim)


# ------------------------------------------------------------------------------------------------------- combinations


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Give all rows with one element of each vector; the last vector's elements change fastest.

    Args:
        tensors: Vectors.

    Returns:
        Shape ``(N1 * N2 * ..., K)`` for ``K`` vectors; one vector is given back as it is.

    Raises:
        RuntimeError: There is none, or one of them is no vector.

    Example:
        >>> rgrad.cartesian_prod(rgrad.tensor([1, 2]), rgrad.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = _core.meshgrid(*tensors, indexing="ij")
    return _core.stack([grid.flatten() for grid in grids], 1)


@operation("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Give all choices of ``r`` elements of a vector, in the order of :func:`itertools.combinations`.

    Args:
        input: A vector.
        r: How many are chosen.
        with_replacement: Whether an element may be chosen several times.

    Returns:
        A row for each choice.

    Raises:
        RuntimeError: ``input`` is no vector, or ``r`` is negative.

    Example:
        >>> rgrad.combinations(rgrad.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return _core.empty(0, dtype=input.dtype, device=input.device)
    n = input.numel()
    count = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    if count * r * 8 > 2**40:
        raise MemoryError(f"combinations: there are {count} choices of {r} of {n} elements")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = _core.tensor(list(choose(range(n), r)), dtype=_core.int64, device=input.device).reshape(-1, r)
    return input[rows]


@operation("vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Make a Vandermonde matrix: the powers of each element in a row.

    Args:
        x: A vector.
        N: The number of columns, by default that of the elements.
        increasing: Whether powers rise from left to right instead of falling.

    Returns:
        Shape ``(len(x), N)``.

    Raises:
        RuntimeError: ``x`` is no vector, or ``N`` is negative.

    Example:
        >>> rgrad.vander(rgrad.tensor([1, 2, 3]), 3)
        tensor([[1, 1, 1],
                [4, 2, 1],
                [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    columns = x.numel() if N is None else N
    if columns < 0:
        raise RuntimeError(f"N must be non-negative. Got {columns}")
    kind = _core.int64 if x.dtype in (_core.bool, _core.uint8, _core.int8, _core.int16, _core.int32) else x.dtype
    factors = x.to(kind).unsqueeze(1).expand(-1, max(columns - 1, 0))
    ones = _core.ones(x.numel(), min(columns, 1), dtype=kind, device=x.device)
    powers = _core.cat([ones, factors.cumprod(1)], 1)
    return powers if increasing else powers.flip(1)


@overridable("indices")
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Turn positions in a flattened tensor into coordinates.

    Args:
        indices: Positions, of any shape; negative ones count from the end.
        shape: The shape of the tensor.

    Returns:
        An int64 tensor of coordinates for each dimension, of the shape of ``indices``.

    Raises:
        TypeError: ``indices`` are no integers, or ``shape`` no sizes.
        ValueError: A size is negative.

    Example:
        >>> rgrad.unravel_index(rgrad.tensor([3, 5]), (2, 3))
        (tensor([1, 1]), tensor([0, 2]))
    """
    if indices.dtype == _core.bool or indices.is_floating_point():
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if any(not isinstance(size, int) for size in sizes):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    # A smaller dtype may not hold the steps.
    indices = indices.to(_core.int64)
    return tuple((indices // step) % size for step, size in zip(steps, sizes, strict=True))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape.

    Args:
        input: A tensor.
        other: A tensor.

    Example:
        >>> rgrad.is_same_size(rgrad.ones(2), rgrad.ones(3))
        False
    """
    return bool(input.shape == other.shape)
