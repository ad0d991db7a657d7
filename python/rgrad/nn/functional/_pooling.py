"""Pooling: the largest elements and the means of windows."""

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._overridable import overridable

Size = int | Sequence[int]
Pair = tuple[Tensor, Tensor]


def _size(size: Size | None) -> Any:
    """Strides as the native functions take them: none are those of the windows."""
    return () if size is None else size


@overridable("input")
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pair:
    """Find the largest elements of windows of the last dimension, and their positions.

    Args:
        input: A tensor of shape ``(N, C, L)`` or ``(C, L)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened L (int64): of equal elements the first.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> values, indices = F.max_pool1d_with_indices(rgrad.arange(4.0).reshape(1, 4), 2)
        >>> indices.tolist()
        [[1, 3]]
    """
    return _core.max_pool1d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair:
    """Find the largest elements of windows of the last dimension.

    Args:
        input: A tensor of shape ``(N, C, L)`` or ``(C, L)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Return the positions in the flattened L, too (int64): of equal elements the first.

    Returns:
        The elements, or elements and positions. Nan is larger than all others.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> F.max_pool1d(rgrad.arange(4.0).reshape(1, 4), 2)
        tensor([[1., 3.]])
    """
    if return_indices:
        return _core.max_pool1d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool1d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pair:
    """Find the largest elements of windows of the last two dimensions, and their positions.

    Args:
        input: A tensor of shape ``(N, C, H, W)`` or ``(C, H, W)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened H and W (int64): of equal elements the first.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> values, indices = F.max_pool2d_with_indices(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        >>> indices.tolist()
        [[[3]]]
    """
    return _core.max_pool2d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair:
    """Find the largest elements of windows of the last two dimensions.

    Args:
        input: A tensor of shape ``(N, C, H, W)`` or ``(C, H, W)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Return the positions in the flattened H and W, too (int64): of equal elements the first.

    Returns:
        The elements, or elements and positions. Nan is larger than all others.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> F.max_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        tensor([[[3.]]])
    """
    if return_indices:
        return _core.max_pool2d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool2d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pair:
    """Find the largest elements of windows of the last three dimensions, and their positions.

    Args:
        input: A tensor of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened D, H and W (int64): of equal elements the first.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> values, indices = F.max_pool3d_with_indices(rgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
        >>> indices.tolist()
        [[[[7]]]]
    """
    return _core.max_pool3d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair:
    """Find the largest elements of windows of the last three dimensions.

    Args:
        input: A tensor of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: Return the positions in the flattened D, H and W, too (int64): of equal elements the first.

    Returns:
        The elements, or elements and positions. Nan is larger than all others.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.

    Example:
        >>> F.max_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
        tensor([[[[7.]]]])
    """
    if return_indices:
        return _core.max_pool3d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool3d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Take the means of windows of the last dimension.

    Args:
        input: A tensor of floats or int64, of shape ``(N, C, L)`` or ``(C, L)``.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: zeros.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.

    Returns:
        The means.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, there is no window.

    Example:
        >>> F.avg_pool1d(rgrad.arange(4.0).reshape(1, 4), 2)
        tensor([[0.5000, 2.5000]])
    """
    return _core.avg_pool1d(input, kernel_size, _size(stride), padding, ceil_mode, count_include_pad)


@overridable("input")
def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Take the means of windows of the last two dimensions.

    Args:
        input: A tensor of floats or int64, of shape ``(N, C, H, W)`` or ``(C, H, W)``.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: zeros.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.
        divisor_override: What sums are divided by, instead of their number of elements.

    Returns:
        The means.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, there is no window, or the
            divisor is 0.

    Example:
        >>> F.avg_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        tensor([[[1.5000]]])
    """
    return _core.avg_pool2d(input, kernel_size, _size(stride), padding, ceil_mode, count_include_pad, divisor_override)


@overridable("input")
def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Take the means of windows of the last three dimensions.

    Args:
        input: A tensor of floats or int64, of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: zeros.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.
        divisor_override: What sums are divided by, instead of their number of elements.

    Returns:
        The means.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, there is no window, or the
            divisor is 0.

    Example:
        >>> F.avg_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
        tensor([[[[3.5000]]]])
    """
    return _core.avg_pool3d(input, kernel_size, _size(stride), padding, ceil_mode, count_include_pad, divisor_override)


def _with_sizes(output_size: Any, input: Tensor) -> Any:
    """Output sizes in which None stands for the input's size."""
    if isinstance(output_size, int):
        return output_size
    if len(output_size) >= input.dim():
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = input.shape[input.dim() - len(output_size) :]
    return [size if wanted is None else wanted for wanted, size in zip(output_size, own, strict=True)]


@overridable("input")
def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Take the means of windows that divide the last dimension as evenly as possible.

    Window i of n goes from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``.

    Args:
        input: A tensor of floats, of shape ``(N, C, L)`` or ``(C, L)``.
        output_size: How many windows there are: a number, or one for each dimension.

    Returns:
        The means.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.

    Example:
        >>> F.adaptive_avg_pool1d(rgrad.arange(5.0).reshape(1, 5), 2)
        tensor([[1., 3.]])
    """
    return _core.adaptive_avg_pool1d(input, output_size)


@overridable("input")
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Size, return_indices: bool = False) -> Pair:
    """Find the largest elements of windows that divide the last dimension, and their positions.

    Args:
        input: A tensor of floats, of shape ``(N, C, L)`` or ``(C, L)``.
        output_size: How many windows there are: a number, or one for each dimension.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened L (int64).

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.

    Example:
        >>> F.adaptive_max_pool1d_with_indices(rgrad.arange(5.0).reshape(1, 5), 2)[1].tolist()
        [[2, 4]]
    """
    return _core.adaptive_max_pool1d(input, output_size)


@overridable("input")
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last dimension as evenly as possible.

    Args:
        input: A tensor of floats, of shape ``(N, C, L)`` or ``(C, L)``.
        output_size: How many windows there are: a number, or one for each dimension.
        return_indices: Return the positions in the flattened L, too (int64).

    Returns:
        The elements, or elements and positions.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.

    Example:
        >>> F.adaptive_max_pool1d(rgrad.arange(5.0).reshape(1, 5), 2)
        tensor([[2., 4.]])
    """
    values, indices = _core.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


@overridable("input")
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Take the means of windows that divide the last two dimensions as evenly as possible.

    Window i of n goes from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``.

    Args:
        input: A tensor of floats, of shape ``(N, C, H, W)`` or ``(C, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.

    Returns:
        The means.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_avg_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))
        tensor([[[1., 2.]]])
    """
    return _core.adaptive_avg_pool2d(input, _with_sizes(output_size, input))


@overridable("input")
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Pair:
    """Find the largest elements of windows that divide the last two dimensions, and their positions.

    Args:
        input: A tensor of floats, of shape ``(N, C, H, W)`` or ``(C, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened H and W (int64).

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_max_pool2d_with_indices(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))[1].tolist()
        [[[2, 3]]]
    """
    return _core.adaptive_max_pool2d(input, _with_sizes(output_size, input))


@overridable("input")
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last two dimensions as evenly as possible.

    Args:
        input: A tensor of floats, of shape ``(N, C, H, W)`` or ``(C, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Return the positions in the flattened H and W, too (int64).

    Returns:
        The elements, or elements and positions.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_max_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))
        tensor([[[2., 3.]]])
    """
    values, indices = _core.adaptive_max_pool2d(input, _with_sizes(output_size, input))
    return (values, indices) if return_indices else values


@overridable("input")
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Take the means of windows that divide the last three dimensions as evenly as possible.

    Window i of n goes from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``.

    Args:
        input: A tensor of floats, of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.

    Returns:
        The means.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_avg_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))
        tensor([[[[3., 4.]]]])
    """
    return _core.adaptive_avg_pool3d(input, _with_sizes(output_size, input))


@overridable("input")
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Pair:
    """Find the largest elements of windows that divide the last three dimensions, and their positions.

    Args:
        input: A tensor of floats, of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Ignored.

    Returns:
        The elements, and their positions in the flattened D, H and W (int64).

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_max_pool3d_with_indices(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))[1].tolist()
        [[[[6, 7]]]]
    """
    return _core.adaptive_max_pool3d(input, _with_sizes(output_size, input))


@overridable("input")
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last three dimensions as evenly as possible.

    Args:
        input: A tensor of floats, of shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output_size: How many windows there are: a number, or one for each dimension. None stands for the input's size.
        return_indices: Return the positions in the flattened D, H and W, too (int64).

    Returns:
        The elements, or elements and positions.

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.
        ValueError: There are more sizes than the input has dimensions.

    Example:
        >>> F.adaptive_max_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))
        tensor([[[[6., 7.]]]])
    """
    values, indices = _core.adaptive_max_pool3d(input, _with_sizes(output_size, input))
    return (values, indices) if return_indices else values
