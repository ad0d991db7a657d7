"""Rearranged channels and pixels, normalisation over channels, and grids of positions."""

import warnings
from collections.abc import Sequence

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable


def _copied(t: Tensor) -> Tensor:
    """A dense copy: the result shares no memory with the input, whatever its sizes."""
    return _core.cat([t])


@overridable("input")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into blocks of pixels (Shi et al. 2016).

    Args:
        input: A tensor of shape ``(*, C * r², H, W)``.
        upscale_factor: The number r of pixels in each direction that come from one.

    Returns:
        A tensor of shape ``(*, C, H * r, W * r)``.

    Raises:
        RuntimeError: There are less than three dimensions, r is not positive, or r² does not divide the channels.

    Example:
        >>> F.pixel_shuffle(rgrad.arange(4).reshape(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(lead)
    split = input.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _copied(split.permute(*order)).reshape(*lead, channels // (r * r), height * r, width * r)


@overridable("input")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange blocks of pixels into channels: the reverse of :func:`pixel_shuffle`.

    Args:
        input: A tensor of shape ``(*, C, H * r, W * r)``.
        downscale_factor: The number r of pixels in each direction that become one.

    Returns:
        A tensor of shape ``(*, C * r², H, W)``.

    Raises:
        RuntimeError: There are less than three dimensions, r is not positive, or r does not divide height and width.

    Example:
        >>> F.pixel_unshuffle(rgrad.arange(4).reshape(1, 2, 2), 2).flatten()
        tensor([0, 1, 2, 3])
    """
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.dim()} "
            f"dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    for size, name, at in ((height, "height", -2), (width, "width", -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is "
                f"not divisible by {r}"
            )
    n = len(lead)
    split = input.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _copied(split.permute(*order)).reshape(*lead, channels * r * r, height // r, width // r)


@overridable("input")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Rearrange channels so that those of each group are spread over all (Zhang et al. 2018).

    Args:
        input: A tensor of shape ``(N, C, *)``.
        groups: The number of groups.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: There are less than three dimensions, or ``groups`` does not divide the channels.

    Example:
        >>> F.channel_shuffle(rgrad.arange(4).reshape(1, 4, 1), 2).flatten()
        tensor([0, 2, 1, 3])
    """
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    channels = input.size(1)
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    if input.numel() == 0:
        return input.clone()
    split = input.reshape(input.size(0), groups, channels // groups, *input.shape[2:])
    return _copied(split.transpose(1, 2)).reshape(input.shape)


def sum_of_channels_around(values: Tensor, before: int, after: int) -> Tensor:
    """The sum over the channels from ``before`` below each to ``after`` above it; missing ones count as 0."""
    channels = values.size(1)
    # A sum of slices where the window is narrow, a product with a band where it is wide. Differences of running sums
    # would be faster, and cancel.
    if before + after < 16:
        total = values
        for shift in range(-min(before, channels - 1), min(after, channels - 1) + 1):
            if shift:
                part = values.narrow(1, max(shift, 0), channels - abs(shift))
                zeros = _core.zeros_like(values.detach().narrow(1, 0, abs(shift)))
                total = total + _core.cat([part, zeros] if shift > 0 else [zeros, part], 1)
        return total
    at = _core.arange(channels, device=values.device)
    offset = at.unsqueeze(0) - at.unsqueeze(1)
    band = ((offset >= -before) & (offset <= after)).to(values.dtype)
    return (band @ values.reshape(values.size(0), channels, -1)).reshape(values.shape)


@overridable("input")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by ``(k + alpha * mean(x²))**beta`` of the channels around each (Krizhevsky et al. 2012).

    Args:
        input: A tensor of shape ``(N, C, *)``.
        size: How many channels are averaged; those that do not exist count as 0.
        alpha: The factor of the mean.
        beta: The exponent.
        k: What is added.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        RuntimeError: ``size`` is not positive.
        ValueError: There are less than three dimensions.

    Example:
        >>> F.local_response_norm(rgrad.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
        tensor([0.3333, 0.2500, 0.3333])
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if size <= 0:
        raise RuntimeError(f"local_response_norm: kernel size should be greater than zero, but got {size}")
    if input.numel() == 0:
        return input
    before = size // 2
    total = sum_of_channels_around(input * input, before, size - 1 - before)
    return input / (total * (alpha / size) + k) ** beta


def corners(align_corners: bool | None) -> bool:
    """The option of :func:`affine_grid` and of what reads at its places, with a warning if it is not given."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=4,
        )
        return False
    return align_corners


def _axis(n: int, align_corners: bool, theta: Tensor) -> Tensor:
    """Positions from -1 to 1: of the corner pixels' centers, or of the edges of the image."""
    if n == 1:
        return _core.zeros(1, dtype=theta.dtype, device=theta.device)
    ends = 1.0 if align_corners else (n - 1) / n
    return _core.linspace(-ends, ends, n, dtype=theta.dtype, device=theta.device)


@overridable("theta")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Compute where each pixel of an image comes from under affine maps (Jaderberg et al. 2015).

    Args:
        theta: Maps of shape ``(N, 2, 3)`` for images, or ``(N, 3, 4)`` for volumes.
        size: The size of the image, ``(N, C, H, W)``, or of the volume, ``(N, C, D, H, W)``.
        align_corners: Whether -1 and 1 are the centers of the corner pixels, or the edges of the image.

    Returns:
        Positions of shape ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.

    Raises:
        NotImplementedError: ``size`` has another length than 4 and 5.
        ValueError: ``theta`` has another dtype or shape, or a size is not positive.

    Example:
        >>> identity = rgrad.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> F.affine_grid(identity, (1, 1, 2, 2), align_corners=True)
        tensor([[[[-1., -1.],
                  [ 1., -1.]],
        <BLANKLINE>
                 [[-1.,  1.],
                  [ 1.,  1.]]]])
    """
    align_corners = corners(align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{tuple(size)}."
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {tuple(size)}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if theta.size(0) != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {dims + 1}] but got: "
            f"[{theta.size(0)}, {dims + 1}]."
        )
    spatial = tuple(size[2:])
    if align_corners and min(spatial) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: a "
            "single pixel is at 0. This is not an intended use case of affine_grid.",
            stacklevel=3,
        )
    parts = []
    for i in range(dims):
        # The first coordinate is that of the last dimension.
        at = dims - 1 - i
        shape = [1] * dims
        shape[at] = spatial[at]
        parts.append(_axis(spatial[at], align_corners, theta).reshape(shape).expand(spatial))
    base = _core.stack([*parts, _core.ones_like(parts[0])], -1).reshape(-1, dims + 1)
    return (base @ theta.mT).reshape(size[0], *spatial, dims)
