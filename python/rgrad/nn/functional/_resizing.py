"""Windows of images as columns, images of another size, and images read at other places."""

import math
from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from ..._runtime.warned import warn_user
from ._images import corners
from ._pooling import Size, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_DIMENSIONS = {"linear": 3, "bilinear": 4, "trilinear": 5}


@overridable("input")
def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """Make a column of each window of an image.

    Args:
        input: Images of shape ``(N, C, H, W)`` or ``(C, H, W)``, of floats or bool.
        kernel_size: The size of the windows: a number, or height and width.
        dilation: The distance between neighbours in a window.
        padding: How many zeros are added on both sides.
        stride: How far apart the windows begin.

    Returns:
        A tensor of shape ``(N, C * kernel height * kernel width, windows)``, or without N.

    Raises:
        RuntimeError: A size is not positive, or there is no window.

    Example:
        >>> F.unfold(rgrad.arange(4.0).reshape(1, 2, 2), (1, 2))
        tensor([[0., 2.],
                [1., 3.]])
    """
    return _core.im2col(input, kernel_size, dilation, padding, stride)


@overridable("input")
def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Add up windows that are columns, each at its place in an image: the adjoint of :func:`unfold`.

    Args:
        input: Columns of shape ``(N, C * kernel height * kernel width, windows)``, or without N.
        output_size: Height and width of the image.
        kernel_size: The size of the windows: a number, or height and width.
        dilation: The distance between neighbours in a window.
        padding: How many elements there are around the image, which are left out.
        stride: How far apart the windows begin.

    Returns:
        Images of shape ``(N, C, H, W)``, or without N.

    Raises:
        RuntimeError: A size is not positive, or there are not so many windows in such an image.

    Example:
        >>> F.fold(rgrad.ones(2, 4), (2, 3), (1, 2))
        tensor([[[1., 2., 1.],
                 [1., 2., 1.]]])
    """
    return _core.col2im(input, output_size, kernel_size, dilation, padding, stride)


def _checked(what: str, name: str, given: Any, input: Tensor, letter: str) -> list[Any]:
    """One number for each dimension behind the second."""
    dims = input.dim() - 2
    if not isinstance(given, list | tuple):
        return [given] * dims
    if len(given) != dims:
        which = "output size" if what == "output" else what
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {name} {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            f"format and {which} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    return list(given)


def _sizes(input: Tensor, size: Any, scale_factor: Any) -> tuple[list[int] | None, list[float] | None]:
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = _checked("output", "output size of", size, input, "o")
        if isinstance(size, list | tuple) and not all(isinstance(n, int) for n in sizes):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got "
                f"size with types {[type(n) for n in sizes]}"
            )
        return sizes, None
    if scale_factor is not None:
        return None, _checked("scale_factor", "scale_factor of shape", scale_factor, input, "s")
    raise ValueError("either size or scale_factor should be defined")


@overridable("input")
def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Change the size of sequences, images or volumes.

    Args:
        input: A tensor of shape ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``, of floats; uint8 for
            ``"nearest"``, ``"nearest-exact"``, ``"bilinear"`` and ``"bicubic"``.
        size: The new sizes: a number, or one for each dimension.
        scale_factor: The new sizes as multiples of the old ones, rounded down.
        mode: How results are made from elements: ``"nearest"``, ``"nearest-exact"``, ``"area"``, for sequences
            ``"linear"``, for images ``"bilinear"``, ``"bicubic"`` and, with ``antialias``, ``"lanczos"``, for volumes
            ``"trilinear"``.
        align_corners: Whether the centers of the corner elements stay where they are, or the edges of the image.
        recompute_scale_factor: Whether ratios of the (rounded) sizes count, or the given factors.
        antialias: Widen the filters of images that become smaller, as Pillow does.

    Returns:
        A tensor of the new size.

    Raises:
        ValueError: Not exactly one of ``size`` and ``scale_factor`` is given, they have the wrong length, or an option
            does not fit the mode.
        NotImplementedError: The mode does not take so many dimensions, or the dtype.
        RuntimeError: A size is not positive.

    Example:
        >>> F.interpolate(rgrad.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="linear")
        tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    interpolating = mode not in ("nearest", "area", "nearest-exact")
    if not interpolating and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes, factors = _sizes(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if sizes is None and factors is not None:
        sizes = [math.floor(float(n) * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
        if recompute_scale_factor or mode == "area":
            factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    ndim = input.dim()
    if mode in _DIMENSIONS and ndim in (3, 4, 5) and ndim != _DIMENSIONS[mode]:
        raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_DIMENSIONS[mode]}D input")
    known = mode in _DIMENSIONS or not interpolating or mode == "bicubic" or (mode == "lanczos" and antialias)
    if ndim not in (3, 4, 5) or not known or (mode in ("bicubic", "lanczos") and ndim != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: {_MODES} (got "
            f"{mode})"
        )
    if mode == "area":
        areas: Any = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[ndim - 3]
        made: Tensor = areas(input, sizes)
        return made
    scales = [None] * (5 - ndim) + (list(factors) if factors is not None else [None] * (ndim - 2))
    assert sizes is not None
    return _core.upsample(input, sizes, mode, bool(align_corners), antialias, *scales)


def _deprecated(name: str) -> None:
    warn_user(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@overridable("input")
def upsample(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Change the size: the old name of :func:`interpolate`.

    Args:
        input: A tensor of shape ``(N, C, *)``.
        size: The new sizes.
        scale_factor: The new sizes as multiples of the old ones.
        mode: See :func:`interpolate`.
        align_corners: See :func:`interpolate`.

    Returns:
        A tensor of the new size.

    Raises:
        ValueError: As for :func:`interpolate`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample(rgrad.ones(1, 1, 2), scale_factor=2).shape
        rgrad.Size([1, 1, 4])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable("input")
def upsample_nearest(
    input: Tensor, size: Size | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Change the size by nearest elements: :func:`interpolate` with the mode ``"nearest"``.

    Args:
        input: A tensor of shape ``(N, C, *)``.
        size: The new sizes.
        scale_factor: The new sizes as multiples of the old ones.

    Returns:
        A tensor of the new size.

    Raises:
        ValueError: As for :func:`interpolate`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample_nearest(rgrad.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@overridable("input")
def upsample_bilinear(
    input: Tensor, size: Size | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Change the size of images: :func:`interpolate` with the mode ``"bilinear"`` and aligned corners.

    Args:
        input: A tensor of shape ``(N, C, H, W)``.
        size: The new sizes.
        scale_factor: The new sizes as multiples of the old ones.

    Returns:
        A tensor of the new size.

    Raises:
        ValueError: As for :func:`interpolate`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     F.upsample_bilinear(rgrad.tensor([[[[1.0, 2.0]]]]), size=(1, 3))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@overridable("input", "grid")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read images or volumes at the places of a grid (Jaderberg et al. 2015).

    Args:
        input: Images of shape ``(N, C, H, W)``, or volumes of shape ``(N, C, D, H, W)``, of floats.
        grid: Places of shape ``(N, height, width, 2)`` or ``(N, depth, height, width, 3)``, of the same dtype: x, y
            (and z), from -1 to 1 inside the image.
        mode: ``"bilinear"`` (for volumes, too), ``"nearest"`` or, of images, ``"bicubic"``.
        padding_mode: What is read beside the image: ``"zeros"``, the ``"border"``, or its ``"reflection"``.
        align_corners: Whether -1 and 1 are the centers of the corner pixels, or the edges of the image.

    Returns:
        A tensor of shape ``(N, C, height, width)`` or ``(N, C, depth, height, width)``.

    Raises:
        ValueError: There is no such mode.
        RuntimeError: The shapes do not fit.

    Example:
        >>> F.grid_sample(rgrad.ones(1, 1, 2, 2), rgrad.zeros(1, 1, 1, 2), align_corners=False)
        tensor([[[[1.]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    align_corners = corners(align_corners)
    how = ("bilinear", "nearest", "bicubic").index(mode)
    beside = ("zeros", "border", "reflection").index(padding_mode)
    return _core.grid_sampler(input, grid, how, beside, align_corners)
