"""Blocks of pixels as channels, and the reverse."""

from ..._core import Tensor
from .. import functional as F
from ._text import options
from .module import Module


class PixelShuffle(Module):
    """Rearranges channels into blocks of pixels (Shi et al. 2016).

    Errors are those of :func:`rgrad.nn.functional.pixel_shuffle`.

    Args:
        upscale_factor: The number r of pixels in each direction that come from one.

    Shape:
        Input: ``(*, C * r², H, W)``; output: ``(*, C, H * r, W * r)``.

    Example:
        >>> nn.PixelShuffle(2)(rgrad.ones(1, 8, 3, 4)).shape
        rgrad.Size([1, 2, 6, 8])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.pixel_shuffle`."""
        return F.pixel_shuffle(input, self.upscale_factor)

    extra_repr = options("upscale_factor")


class PixelUnshuffle(Module):
    """Rearranges blocks of pixels into channels: the reverse of :class:`PixelShuffle`.

    Errors are those of :func:`rgrad.nn.functional.pixel_unshuffle`.

    Args:
        downscale_factor: The number r of pixels in each direction that become one.

    Shape:
        Input: ``(*, C, H * r, W * r)``; output: ``(*, C * r², H, W)``.

    Example:
        >>> nn.PixelUnshuffle(2)(rgrad.ones(1, 2, 6, 8)).shape
        rgrad.Size([1, 8, 3, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.pixel_unshuffle`."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    extra_repr = options("downscale_factor")
