"""Convolutions that learn the channels of their input from the first one."""

from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ..parameter import UninitializedParameter
from ._ranks import described_as_lazy
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Numbers,
    _Conv,
    _ConvNd,
    _ConvTransposeNd,
)
from .lazy import LazyModuleMixin


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    def _without_shapes(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Have parameters without shapes, in the place of those that the base made for no channels."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_channels`` from the input.

        Args:
            input: The input of the first call.

        Raises:
            RuntimeError: The input has not the dimensions of such a convolution, with or without a batch.
            ValueError: Its channels cannot be divided into the groups.
        """
        if not self.has_uninitialized_params():
            return
        bare = self._dims + 1
        if input.dim() not in (bare, bare + 1):
            raise RuntimeError(
                f"Expected {bare}D (unbatched) or {bare + 1}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        channels = int(input.shape[-bare])
        if channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.in_channels = channels
        weight: Any = self.weight
        bias: Any = self.bias
        with no_grad():
            weight.materialize((*self._weight_channels(), *self.kernel_size))
            if bias is not None:
                bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvNd, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: str | Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._without_shapes(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvNd, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._without_shapes(out_channels, bias, device, dtype)


@described_as_lazy("in_channels", "8, 3", (2, 3, 6))
class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv1d


@described_as_lazy("in_channels", "8, 3", (2, 3, 6, 6))
class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv2d


@described_as_lazy("in_channels", "8, 3", (2, 3, 6, 6, 6))
class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv3d


@described_as_lazy("in_channels", "8, 3", (2, 3, 6))
class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose1d


@described_as_lazy("in_channels", "8, 3", (2, 3, 6, 6))
class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose2d


@described_as_lazy("in_channels", "8, 3", (2, 3, 6, 6, 6))
class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose3d
