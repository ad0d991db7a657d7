"""Max pooling: the largest elements of windows, and where they stand."""

from collections.abc import Sequence
from typing import Literal, overload

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from ._pooling import Size, _size, _with_sizes

Pair = tuple[Tensor, Tensor]


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


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair: ...
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


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair: ...
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


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    return_indices: Literal[True],
) -> Pair: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | Pair: ...
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


@overload
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: Literal[True]) -> Pair: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Tensor | Pair: ...
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


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[True]
) -> Pair: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair: ...
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


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[True]
) -> Pair: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair: ...
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
