"""Changes of size as modules; see :func:`rgrad.nn.functional.interpolate`."""

from ..._core import Tensor
from .. import functional as F
from ..common_types import _size_any_t
from .module import Module

Factor = float | tuple[float, ...]


class Upsample(Module):
    """Changes the size of sequences, images or volumes.

    Errors are those of :func:`rgrad.nn.functional.interpolate`.

    Args:
        size: The new sizes: a number, or one for each dimension.
        scale_factor: The new sizes as multiples of the old ones.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
        align_corners: Whether the centers of the corner elements stay where they are.
        recompute_scale_factor: Whether ratios of the (rounded) sizes count, or the given factors.

    Shape:
        Input: ``(N, C, *)``; in the output the last sizes are the new ones.

    Example:
        >>> nn.Upsample(scale_factor=2, mode="bilinear")(rgrad.ones(1, 1, 2, 3)).shape
        rgrad.Size([1, 1, 4, 6])
    """

    def __init__(
        self,
        size: _size_any_t | None = None,
        scale_factor: Factor | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: Factor | None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input in its new size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        given = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Changes the size of images by nearest elements.

    Errors are those of :func:`rgrad.nn.functional.interpolate`.

    Args:
        size: The new height and width.
        scale_factor: They as multiples of the old ones.

    Shape:
        Input: ``(N, C, H, W)``; in the output the last sizes are the new ones.

    Example:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(rgrad.ones(1, 1, 2, 3)).shape
        rgrad.Size([1, 1, 4, 6])
    """

    def __init__(self, size: _size_any_t | None = None, scale_factor: Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Changes the size of images linearly, with corners that stay where they are.

    Errors are those of :func:`rgrad.nn.functional.interpolate`.

    Args:
        size: The new height and width.
        scale_factor: They as multiples of the old ones.

    Shape:
        Input: ``(N, C, H, W)``; in the output the last sizes are the new ones.

    Example:
        >>> nn.UpsamplingBilinear2d(size=(3, 4))(rgrad.ones(1, 1, 2, 3)).shape
        rgrad.Size([1, 1, 3, 4])
    """

    def __init__(self, size: _size_any_t | None = None, scale_factor: Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
