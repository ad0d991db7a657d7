"""Max pooling: the largest elements of windows, and where they stand."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar, cast, overload

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._docs import described
from ._pooling import FIXED, OPTIONAL, TO_SIZE, Size, _size, _with_sizes

Pair = tuple[Tensor, Tensor]
_Sizes = TypeVar("_Sizes", contravariant=True)

_LARGEST = """
    Args:
        input: A tensor of shape ``(N, C, {sizes})`` or ``(C, {sizes})``, of any dtype but bool.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: they are smaller than all others.
        dilation: The distance between neighbours in a window.
        ceil_mode: Count windows that end behind the padding, too.
        return_indices: {indices}

    Returns:
        {returns}

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window, or there is no window.
"""
_ALWAYS = {
    "indices": "Ignored.",
    "returns": "The elements, and their positions in the flattened {flattened} (int64): of equal elements the first.",
}
_IF_ASKED = {
    "indices": "Return the positions in the flattened {flattened}, too (int64): of equal elements the first.",
    "returns": "The elements, or elements and positions. Nan is larger than all others.",
}
_TO_SIZE_ALWAYS = {
    "entry": "\n    return_indices: Ignored.",
    "returns": "The elements, and their positions in the flattened {flattened} (int64).",
}
_TO_SIZE_IF_ASKED = {
    "entry": "\n    return_indices: Return the positions in the flattened {flattened}, too (int64).",
    "returns": "The elements, or elements and positions.",
}


class _WithIndices(Protocol):
    """The type of max pooling. Functions of three ranks have it, since each would need these overloads."""

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
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
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None,
        padding: Size,
        dilation: Size,
        ceil_mode: bool,
        return_indices: Literal[True],
    ) -> Pair: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor | Pair: ...


class _ToSize(Protocol[_Sizes]):
    """The type of max pooling to a size."""

    @overload
    def __call__(self, input: Tensor, output_size: _Sizes, return_indices: Literal[False] = False) -> Tensor: ...
    @overload
    def __call__(self, input: Tensor, output_size: _Sizes, return_indices: Literal[True]) -> Pair: ...
    @overload
    def __call__(self, input: Tensor, output_size: _Sizes, return_indices: bool = False) -> Tensor | Pair: ...


def _windows(function: Callable[..., Tensor | Pair]) -> _WithIndices:
    return cast(_WithIndices, function)


def _adaptive(function: Callable[..., Tensor | Pair]) -> _ToSize[Size]:
    return cast(_ToSize[Size], function)


def _adaptive_optional(function: Callable[..., Tensor | Pair]) -> _ToSize[int | Sequence[int | None]]:
    return cast(_ToSize[int | Sequence[int | None]], function)


@overridable("input")
@described(_LARGEST, 1, **_ALWAYS)
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

    Example:
        >>> values, indices = F.max_pool1d_with_indices(rgrad.arange(4.0).reshape(1, 4), 2)
        >>> indices.tolist()
        [[1, 3]]
    """
    return _core.max_pool1d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@_windows
@overridable("input")
@described(_LARGEST, 1, **_IF_ASKED)
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

    Example:
        >>> F.max_pool1d(rgrad.arange(4.0).reshape(1, 4), 2)
        tensor([[1., 3.]])
    """
    if return_indices:
        return _core.max_pool1d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool1d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
@described(_LARGEST, 2, **_ALWAYS)
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

    Example:
        >>> values, indices = F.max_pool2d_with_indices(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        >>> indices.tolist()
        [[[3]]]
    """
    return _core.max_pool2d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@_windows
@overridable("input")
@described(_LARGEST, 2, **_IF_ASKED)
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

    Example:
        >>> F.max_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        tensor([[[3.]]])
    """
    if return_indices:
        return _core.max_pool2d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool2d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
@described(_LARGEST, 3, **_ALWAYS)
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

    Example:
        >>> values, indices = F.max_pool3d_with_indices(rgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
        >>> indices.tolist()
        [[[[7]]]]
    """
    return _core.max_pool3d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@_windows
@overridable("input")
@described(_LARGEST, 3, **_IF_ASKED)
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

    Example:
        >>> F.max_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
        tensor([[[[7.]]]])
    """
    if return_indices:
        return _core.max_pool3d_with_indices(input, kernel_size, _size(stride), padding, dilation, ceil_mode)
    return _core.max_pool3d(input, kernel_size, _size(stride), padding, dilation, ceil_mode)


@overridable("input")
@described(TO_SIZE, 1, **_TO_SIZE_ALWAYS, **FIXED)
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Size, return_indices: bool = False) -> Pair:
    """Find the largest elements of windows that divide the last dimension, and their positions.

    Example:
        >>> F.adaptive_max_pool1d_with_indices(rgrad.arange(5.0).reshape(1, 5), 2)[1].tolist()
        [[2, 4]]
    """
    return _core.adaptive_max_pool1d(input, output_size)


@_adaptive
@overridable("input")
@described(TO_SIZE, 1, **_TO_SIZE_IF_ASKED, **FIXED)
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last dimension as evenly as possible.

    Example:
        >>> F.adaptive_max_pool1d(rgrad.arange(5.0).reshape(1, 5), 2)
        tensor([[2., 4.]])
    """
    values, indices = _core.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


@overridable("input")
@described(TO_SIZE, 2, **_TO_SIZE_ALWAYS, **OPTIONAL)
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Pair:
    """Find the largest elements of windows that divide the last two dimensions, and their positions.

    Example:
        >>> F.adaptive_max_pool2d_with_indices(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))[1].tolist()
        [[[2, 3]]]
    """
    return _core.adaptive_max_pool2d(input, _with_sizes(output_size, input))


@_adaptive_optional
@overridable("input")
@described(TO_SIZE, 2, **_TO_SIZE_IF_ASKED, **OPTIONAL)
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last two dimensions as evenly as possible.

    Example:
        >>> F.adaptive_max_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))
        tensor([[[2., 3.]]])
    """
    values, indices = _core.adaptive_max_pool2d(input, _with_sizes(output_size, input))
    return (values, indices) if return_indices else values


@overridable("input")
@described(TO_SIZE, 3, **_TO_SIZE_ALWAYS, **OPTIONAL)
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Pair:
    """Find the largest elements of windows that divide the last three dimensions, and their positions.

    Example:
        >>> F.adaptive_max_pool3d_with_indices(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))[1].tolist()
        [[[[6, 7]]]]
    """
    return _core.adaptive_max_pool3d(input, _with_sizes(output_size, input))


@_adaptive_optional
@overridable("input")
@described(TO_SIZE, 3, **_TO_SIZE_IF_ASKED, **OPTIONAL)
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | Pair:
    """Find the largest elements of windows that divide the last three dimensions as evenly as possible.

    Example:
        >>> F.adaptive_max_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))
        tensor([[[[6., 7.]]]])
    """
    values, indices = _core.adaptive_max_pool3d(input, _with_sizes(output_size, input))
    return (values, indices) if return_indices else values
