"""Windows of images as columns, and the adjoint, as modules."""

from ..._core import Tensor
from .. import functional as F
from ..common_types import _size_any_t
from ._text import options
from .module import Module


class Fold(Module):
    """Adds up windows that are columns, each at its place in an image.

    Errors are those of :func:`rgrad.nn.functional.fold`.

    Args:
        output_size: Height and width of the image.
        kernel_size: The size of the windows.
        dilation: The distance between neighbours in a window.
        padding: How many elements there are around the image, which are left out.
        stride: How far apart the windows begin.

    Shape:
        Input: ``(N, C * kernel height * kernel width, windows)``, or without N; output: ``(N, C, H, W)``.

    Example:
        >>> nn.Fold((4, 5), 2)(rgrad.ones(1, 12, 12)).shape
        rgrad.Size([1, 3, 4, 5])
    """

    def __init__(
        self,
        output_size: _size_any_t,
        kernel_size: _size_any_t,
        dilation: _size_any_t = 1,
        padding: _size_any_t = 0,
        stride: _size_any_t = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    extra_repr = options("output_size", "kernel_size", "dilation", "padding", "stride")


class Unfold(Module):
    """Makes a column of each window of an image.

    Errors are those of :func:`rgrad.nn.functional.unfold`.

    Args:
        kernel_size: The size of the windows.
        dilation: The distance between neighbours in a window.
        padding: How many zeros are added on both sides.
        stride: How far apart the windows begin.

    Shape:
        Input: ``(N, C, H, W)``, or without N; output: ``(N, C * kernel height * kernel width, windows)``.

    Example:
        >>> nn.Unfold((2, 3))(rgrad.ones(2, 5, 3, 4)).shape
        rgrad.Size([2, 30, 4])
    """

    def __init__(
        self, kernel_size: _size_any_t, dilation: _size_any_t = 1, padding: _size_any_t = 0, stride: _size_any_t = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    extra_repr = options("kernel_size", "dilation", "padding", "stride")
