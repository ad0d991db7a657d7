"""Pooling by the means of windows."""

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._docs import described

Size = int | Sequence[int]

_MEANS = """
    Args:
        input: A tensor of floats or int64, of shape ``(N, C, {sizes})`` or ``(C, {sizes})``.
        kernel_size: The size of the windows: a number, or one for each dimension.
        stride: How far apart the windows begin; None: by their size.
        padding: How many elements are added on both sides, at most half a window: zeros.
        ceil_mode: Count windows that end behind the padding, too.
        count_include_pad: Whether the padding counts as elements.{entry}

    Returns:
        The means.

    Raises:
        RuntimeError: A size is not positive, the padding is larger than half a window{raises}.
"""
_DIVISOR = "\n    divisor_override: What sums are divided by, instead of their number of elements."

#: The text of pooling to a size, and what is in it where sizes may be None, or not.
TO_SIZE = """
    Window i of n goes from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``.

    Args:
        input: A tensor of floats, of shape ``(N, C, {sizes})`` or ``(C, {sizes})``.
        output_size: How many windows there are: a number, or one for each dimension.{none}{entry}

    Returns:
        {returns}

    Raises:
        RuntimeError: The input has another number of dimensions, is empty, or a size is negative.{raises}
"""
FIXED = {"none": "", "raises": ""}
OPTIONAL = {
    "none": " None stands for the input's size.",
    "raises": "\n    ValueError: There are more sizes than the input has dimensions.",
}


def _size(size: Size | None) -> Any:
    """Strides as the native functions take them: none are those of the windows."""
    return () if size is None else size


@overridable("input")
@described(_MEANS, 1, entry="", raises=", there is no window")
def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Take the means of windows of the last dimension.

    Example:
        >>> F.avg_pool1d(rgrad.arange(4.0).reshape(1, 4), 2)
        tensor([[0.5000, 2.5000]])
    """
    return _core.avg_pool1d(input, kernel_size, _size(stride), padding, ceil_mode, count_include_pad)


@overridable("input")
@described(_MEANS, 2, entry=_DIVISOR, raises=", there is no window, or the\n        divisor is 0")
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

    Example:
        >>> F.avg_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), 2)
        tensor([[[1.5000]]])
    """
    return _core.avg_pool2d(input, kernel_size, _size(stride), padding, ceil_mode, count_include_pad, divisor_override)


@overridable("input")
@described(_MEANS, 3, entry=_DIVISOR, raises=", there is no window, or the\n        divisor is 0")
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
@described(TO_SIZE, 1, entry="", returns="The means.", **FIXED)
def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Take the means of windows that divide the last dimension as evenly as possible.

    Example:
        >>> F.adaptive_avg_pool1d(rgrad.arange(5.0).reshape(1, 5), 2)
        tensor([[1., 3.]])
    """
    return _core.adaptive_avg_pool1d(input, output_size)


@overridable("input")
@described(TO_SIZE, 2, entry="", returns="The means.", **OPTIONAL)
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Take the means of windows that divide the last two dimensions as evenly as possible.

    Example:
        >>> F.adaptive_avg_pool2d(rgrad.arange(4.0).reshape(1, 2, 2), (1, None))
        tensor([[[1., 2.]]])
    """
    return _core.adaptive_avg_pool2d(input, _with_sizes(output_size, input))


@overridable("input")
@described(TO_SIZE, 3, entry="", returns="The means.", **OPTIONAL)
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """Take the means of windows that divide the last three dimensions as evenly as possible.

    Example:
        >>> F.adaptive_avg_pool3d(rgrad.arange(8.0).reshape(1, 2, 2, 2), (1, 1, None))
        tensor([[[[3., 4.]]]])
    """
    return _core.adaptive_avg_pool3d(input, _with_sizes(output_size, input))
