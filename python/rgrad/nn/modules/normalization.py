"""Normalisation of the last dimensions, or of groups of channels."""

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from ..functional._images import sum_of_channels_around
from ..parameter import Parameter
from ._parameters import register, reset_scale
from ._text import options
from .module import Module


class LayerNorm(Module):
    """Subtracts the mean and divides by the deviation over the last dimensions (Ba et al. 2016).

    The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have the shape
    ``normalized_shape``.

    Args:
        normalized_shape: The sizes of the last dimensions; a number for one dimension.
        eps: Added to the variance.
        elementwise_affine: Whether there are parameters.
        bias: Whether there is a ``bias`` among them.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input and output: ``(*, *normalized_shape)``.

    Example:
        >>> layer = nn.LayerNorm(2)
        >>> layer(rgrad.tensor([[1.0, 3.0]])).detach()
        tensor([[-1.0000,  1.0000]])
    """

    normalized_shape: tuple[int, ...]

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape if elementwise_affine else None
        register(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        reset_scale(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input``."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    extra_repr = options("eps", "elementwise_affine", "bias", first=["normalized_shape"])


class RMSNorm(Module):
    """Divides by the root of the mean of squares over the last dimensions (Zhang and Sennrich 2019).

    The parameter ``weight`` has the shape ``normalized_shape`` and starts as ones.

    Args:
        normalized_shape: The sizes of the last dimensions; a number for one dimension.
        eps: Added to the mean of squares; None takes the epsilon of the input's dtype.
        elementwise_affine: Whether there is a ``weight``.
        device: The device of the weight.
        dtype: The dtype of the weight.

    Shape:
        Input and output: ``(*, *normalized_shape)``.

    Example:
        >>> layer = nn.RMSNorm(2)
        >>> layer(rgrad.tensor([[1.0, 7.0]])).detach()
        tensor([[0.2000, 1.4000]])
    """

    normalized_shape: tuple[int, ...]
    weight: Parameter

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        register(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones."""
        reset_scale(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    extra_repr = options("eps", "elementwise_affine", first=["normalized_shape"])


class GroupNorm(Module):
    """Subtracts the mean and divides by the deviation over each group of channels (Wu and He 2018).

    The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have an element for each
    channel.

    Args:
        num_groups: How many groups the channels form.
        num_channels: The number of channels.
        eps: Added to the variance.
        affine: Whether there are parameters.
        device: The device of the parameters.
        dtype: The dtype of the parameters.
        bias: Whether there is a ``bias`` among them.

    Raises:
        ValueError: The channels cannot be divided into so many groups.

    Shape:
        Input and output: ``(N, num_channels, *)``.

    Example:
        >>> layer = nn.GroupNorm(2, 4)
        >>> layer(rgrad.tensor([[1.0, 3.0, 0.0, 8.0]])).detach()
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = num_channels if affine else None
        register(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        reset_scale(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input``."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    extra_repr = options("eps", "affine", "bias", first=["num_groups", "num_channels"])


class LocalResponseNorm(Module):
    """``x / (k + alpha * mean(x²))**beta``, the mean over the channels around each (Krizhevsky et al. 2012).

    Errors are those of :func:`rgrad.nn.functional.local_response_norm`.

    Args:
        size: How many channels are averaged.
        alpha: The factor of the mean.
        beta: The exponent.
        k: What is added.

    Shape:
        ``(N, C, *)``; the output has the shape of the input.

    Example:
        >>> nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(rgrad.ones(1, 3, 1)).flatten()
        tensor([0.3333, 0.2500, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.local_response_norm`."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    extra_repr = options("alpha", "beta", "k", first=["size"])


class CrossMapLRN2d(Module):
    """``x / (k + alpha / size * s)**beta``, where ``s`` is a sum of squares over channels, as in PyTorch.

    The sum is over the channel and ``(size - 1) // 2`` channels to each side, and the first channel, which stays in the
    sum of all channels whose window has left it. :class:`LocalResponseNorm` sums its window alone.

    Args:
        size: How many channels a window has.
        alpha: The factor of the mean.
        beta: The exponent.
        k: What is added.

    Shape:
        ``(N, C, H, W)``; the output has the shape of the input.

    Raises:
        ValueError: The input has another number of dimensions.

    Example:
        >>> nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(rgrad.ones(1, 4, 1, 1)).flatten()
        tensor([0.3333, 0.2500, 0.2000, 0.2500])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input``."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        around = int((self.size - 1) / 2)
        squares = input * input
        total = sum_of_channels_around(squares, around, around)
        left = _core.arange(input.size(1), device=input.device) > around
        total = total + squares[:, :1] * left.to(input.dtype).view(-1, 1, 1)
        return (total * (self.alpha / self.size) + self.k) ** -self.beta * input

    extra_repr = options("alpha", "beta", "k", first=["size"])
