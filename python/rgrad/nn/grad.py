"""The gradients of convolutions as functions: what backward computes, of tensors that are given."""

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ._docs import described

Numbers = int | Sequence[int]

_INPUT = """
    Args:
        input_size: The shape of the input.
        weight: The weight, of shape ``(out_channels, in_channels / groups, *kernel)``.
        grad_output: The gradient of the output.
        stride: As in the convolution.
        padding: As in the convolution.
        dilation: As in the convolution.
        groups: As in the convolution.

    Returns:
        A tensor of the shape ``input_size``.

    Raises:
        RuntimeError: The shapes do not belong to one convolution.
"""
_WEIGHT = """
    Args:
        input: The input, of shape ``(N, C, {sizes})``.
        weight_size: The shape of the weight.
        grad_output: The gradient of the output.
        stride: As in the convolution.
        padding: As in the convolution.
        dilation: As in the convolution.
        groups: As in the convolution.

    Returns:
        A tensor of the shape ``weight_size``.

    Raises:
        RuntimeError: The shapes do not belong to one convolution.
"""


@described(_INPUT, 1)
def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv1d` with respect to its input."""
    return _core._convolution_input(input_size, weight, grad_output, stride, padding, dilation, groups)


@described(_WEIGHT, 1)
def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv1d` with respect to its weight."""
    return _core._convolution_weight(input, weight_size, grad_output, stride, padding, dilation, groups)


@described(_INPUT, 2)
def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv2d` with respect to its input."""
    return _core._convolution_input(input_size, weight, grad_output, stride, padding, dilation, groups)


@described(_WEIGHT, 2)
def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv2d` with respect to its weight."""
    return _core._convolution_weight(input, weight_size, grad_output, stride, padding, dilation, groups)


@described(_INPUT, 3)
def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv3d` with respect to its input."""
    return _core._convolution_input(input_size, weight, grad_output, stride, padding, dilation, groups)


@described(_WEIGHT, 3)
def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of :func:`rgrad.conv3d` with respect to its weight."""
    return _core._convolution_weight(input, weight_size, grad_output, stride, padding, dilation, groups)
