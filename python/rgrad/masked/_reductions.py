"""Reductions of the elements that are not masked."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from ..linalg import vector_norm
from ._elements import Dims, dims_of, filled, fitted, sum_dtype


@operation("masked_sum")
def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Compute sums of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's, int64 for smaller integers.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; 0 where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.

    Example:
        >>> rgrad.masked.sum(rgrad.tensor([1.0, 2.0, 4.0]), mask=rgrad.tensor([True, False, True]))
        tensor(5.)
    """
    elements = filled("sum", input, mask)
    return _core.sum(elements, dims_of(dim, input.dim()), bool(keepdim), dtype=sum_dtype(input, dtype))


@operation("masked_prod")
def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Compute products of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's, int64 for smaller integers.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; 1 where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    made = filled("prod", input, mask).to(sum_dtype(input, dtype))
    for d in reversed(dims_of(dim, input.dim())):
        made = made.prod(dim=d, keepdim=bool(keepdim))
    return made


def _extreme(name: str, input: Tensor, dim: Any, keepdim: Any, dtype: Any, mask: Tensor | None) -> Tensor:
    made: Tensor = getattr(_core, name)(filled(name, input, mask), dims_of(dim, input.dim()), bool(keepdim))
    return made if dtype is None else made.to(dtype)


@operation("masked_amax")
def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Find the largest of the elements that are not masked.

    Args:
        input: A tensor of numbers that have an order.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; the least number of the dtype where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        NotImplementedError: The dtype has no least number.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    return _extreme("amax", input, dim, keepdim, dtype, mask)


@operation("masked_amin")
def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Find the smallest of the elements that are not masked.

    Args:
        input: A tensor of numbers that have an order.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; the largest number of the dtype where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        NotImplementedError: The dtype has no largest number.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def _position(name: str, input: Tensor, dim: Any, keepdim: Any, dtype: Any, mask: Tensor | None) -> Tensor:
    made: Tensor = getattr(_core, name)(filled(name, input, mask), dim, bool(keepdim))
    # As in PyTorch, a position has the dtype of the elements.
    return made.to(input.dtype if dtype is None else dtype)


@operation("masked_argmax")
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Find the position of the largest of the elements that are not masked.

    Args:
        input: A tensor of numbers that have an order.
        dim: The dimension that is reduced; None: all, and positions count the elements in row-major order.
        keepdim: Keep it with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimension ``dim``.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        NotImplementedError: The dtype has no least number.
        RuntimeError: The mask does not broadcast.
    """
    return _position("argmax", input, dim, keepdim, dtype, mask)


@operation("masked_argmin")
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Find the position of the smallest of the elements that are not masked.

    Args:
        input: A tensor of numbers that have an order.
        dim: The dimension that is reduced; None: all, and positions count the elements in row-major order.
        keepdim: Keep it with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimension ``dim``.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        NotImplementedError: The dtype has no largest number.
        RuntimeError: The mask does not broadcast.
    """
    return _position("argmin", input, dim, keepdim, dtype, mask)


def _counted(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements count."""
    counted = _core.ones_like(input, dtype=_core.bool) if mask is None else fitted(mask, input)
    return counted.sum(dims, keepdim)


@operation("masked_mean")
def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Compute means of the elements that are not masked.

    Args:
        input: A tensor of floats or complex numbers, or of others if ``dtype`` is given.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; nan where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
        ValueError: The result's dtype is neither floating point nor complex.
    """
    wanted = input.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted}"
        )
    dims = dims_of(dim, input.dim())
    total: Tensor = sum(input, dims, keepdim=keepdim, dtype=wanted, mask=mask)
    return total / _counted(input, dims, bool(keepdim), mask)


@operation("masked_median")
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Find the medians of the elements that are not masked; of two in the middle the lower one.

    Args:
        input: A tensor of numbers that have an order.
        dim: The dimension that is reduced.
        keepdim: Keep it with size 1.
        dtype: The dtype of the result for an input of integers; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimension ``dim``; nan where all elements are masked.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.
        ValueError: All elements of a slice are masked, and the dtype has no nan.
    """
    of_floats = input.dtype.is_floating_point
    wanted = input.dtype if dtype is None else dtype
    elements = input if of_floats else input.to(_core.float32)
    made = _core.nanmedian(filled("median", elements, mask), dims_of(dim, input.dim())[0], keepdim).values
    if of_floats:
        return made
    if bool(made.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return made.to(wanted)


@operation("masked_logsumexp")
def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Compute logarithms of sums of exponentials of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``; minus infinity where all elements are masked.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    made = _core.logsumexp(filled("logsumexp", input, mask), dims_of(dim, input.dim()), keepdim)
    return made.to(input.dtype if dtype is None else dtype)


@operation("masked_norm")
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute norms of the elements that are not masked.

    Args:
        input: A tensor of floats or complex numbers.
        ord: The order of the norm; see :func:`rgrad.linalg.vector_norm`.
        dim: The dimensions that are reduced; None: all.
        keepdim: Keep them with size 1.
        dtype: The dtype in which is computed; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A real tensor without the dimensions ``dim``.

    Raises:
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, the mask does not broadcast, or the input is of integers.
    """
    ord = 2.0 if ord is None else ord
    dtype = input.dtype if dtype is None else dtype
    elements = filled("norm", input, mask, ord)
    return vector_norm(elements, ord, dims_of(dim, input.dim()), bool(keepdim), dtype=dtype)


def _spread(
    input: Tensor, dim: Any, unbiased: bool | None, correction: Any, keepdim: Any, dtype: Any, mask: Tensor | None
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    wanted = input.dtype if dtype is None else dtype
    is_computed = wanted.is_floating_point or wanted.is_complex
    if dtype is None and not is_computed:
        wanted, is_computed = _core.float32, True
    dims = dims_of(dim, input.dim())
    total: Tensor = sum(input, dims, keepdim=True, dtype=wanted, mask=mask)
    apart = input - total / _counted(input, dims, True, mask)
    squares: Tensor = sum(
        apart * apart.conj(), dims, keepdim=keepdim, dtype=wanted if is_computed else _core.float32, mask=mask
    )
    count = _counted(input, dims, bool(keepdim), mask)
    if correction:
        count = (count.to(squares.dtype.to_real()) - float(correction)).clamp(min=0)
    return (squares / count).to(wanted)


@operation("masked_var")
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute variances of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimensions that are reduced; None: all.
        unbiased: Divide by one less than the number of elements (None counts as True); False: by their number.
        correction: What is subtracted from that number instead.
        keepdim: Keep the dimensions with size 1.
        dtype: The dtype of the result; None: the input's, float32 for integers.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``, complex for complex numbers.

    Raises:
        AssertionError: Both ``unbiased`` and ``correction`` are given.
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


@operation("masked_std")
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute standard deviations of the elements that are not masked: the roots of :func:`var`.

    Args:
        input: A tensor.
        dim: The dimensions that are reduced; None: all.
        unbiased: Divide by one less than the number of elements (None counts as True); False: by their number.
        correction: What is subtracted from that number instead.
        keepdim: Keep the dimensions with size 1.
        dtype: The dtype of the result; None: the input's, float32 for integers.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor without the dimensions ``dim``, complex for complex numbers.

    Raises:
        AssertionError: Both ``unbiased`` and ``correction`` are given.
        IndexError: A dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: A dimension is named twice, or the mask does not broadcast.
    """
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()
