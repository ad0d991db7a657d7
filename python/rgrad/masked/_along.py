"""Results of the input's shape: cumulative sums, and normalisations along a dimension."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from ._elements import dims_of, filled
from ._reductions import norm


@operation("masked_cumsum")
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute cumulative sums of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimension along which is summed.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape. A masked element has the sum of those before it.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.
    """
    dtype = input.dtype if dtype is None else dtype
    return _core.cumsum(filled("sum", input, mask), dims_of(dim, input.dim())[0], dtype=dtype)


@operation("masked_cumprod")
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute cumulative products of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimension along which is multiplied.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape. A masked element has the product of those before it.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.
    """
    dtype = input.dtype if dtype is None else dtype
    return _core.cumprod(filled("prod", input, mask), dims_of(dim, input.dim())[0], dtype=dtype)


@operation("masked_logaddexp")
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Compute logarithms of sums of the exponentials of two tensors, without those that are masked.

    Args:
        input: A tensor.
        other: Another tensor; the shapes broadcast.
        dtype: The dtype of the result; None: that of ``input``.
        input_mask: True where an element of ``input`` counts.
        other_mask: True where an element of ``other`` counts.

    Returns:
        A tensor of the broadcast shape; minus infinity where both elements are masked.

    Raises:
        IndexError: A mask has more dimensions than its tensor.
        RuntimeError: A mask does not broadcast.
    """
    made = _core.logaddexp(filled("logaddexp", input, input_mask), filled("logaddexp", other, other_mask))
    return made.to(input.dtype if dtype is None else dtype)


@operation("masked_softmax")
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimension along which the results sum to 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape; 0 where an element is masked, nan where all of a slice are.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.

    Example:
        >>> rgrad.masked.softmax(rgrad.tensor([1.0, 5.0, 1.0]), 0, mask=rgrad.tensor([True, False, True]))
        tensor([0.5000, 0.0000, 0.5000])
    """
    dtype = input.dtype if dtype is None else dtype
    return _core.softmax(filled("amax", input, mask), dims_of(dim, input.dim())[0], dtype=dtype)


@operation("masked_log_softmax")
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute the logarithm of the softmax of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimension along which the exponentials of the results sum to 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape; minus infinity where an element is masked, nan where all of a slice are.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.
    """
    dtype = input.dtype if dtype is None else dtype
    return _core.log_softmax(filled("amax", input, mask), dims_of(dim, input.dim())[0], dtype=dtype)


@operation("masked_softmin")
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the negatives of the elements that are not masked.

    Args:
        input: A tensor.
        dim: The dimension along which the results sum to 1.
        dtype: The dtype of the result; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape; 0 where an element is masked, nan where all of a slice are.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast.
    """
    dtype = input.dtype if dtype is None else dtype
    return _core.softmax(-filled("amin", input, mask), dims_of(dim, input.dim())[0], dtype=dtype)


@operation("masked_normalize")
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Divide the elements that are not masked by their norm.

    Args:
        input: A tensor of floats or complex numbers.
        ord: The order of the norm.
        dim: The dimension along which norms are computed.
        eps: The least divisor.
        dtype: The dtype of the norm; None: the input's.
        mask: True where an element counts; it broadcasts to the input.

    Returns:
        A tensor of the input's shape; 0 where an element is masked.

    Raises:
        IndexError: The dimension is out of range, or the mask has more dimensions than the input.
        RuntimeError: The mask does not broadcast, or the input is of integers.
    """
    size: Tensor = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return filled("sum", input, mask) / _core.maximum(size, size.new_full((), eps))
