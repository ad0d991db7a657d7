"""Batch norm."""

from ..._core import Tensor
from .. import functional as F
from ._channel_norm import ChannelNorm


class _BatchNorm(ChannelNorm):
    """Batch norm of inputs with any number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input``, and in training take its statistics into account."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        own = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            own,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015).

    In training the statistics are those of the input, and the buffers ``running_mean``, ``running_var`` (of unbiased
    variances) and ``num_batches_tracked`` take them into account. In evaluation mode the running statistics are used.
    The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have an element for each
    channel.

    Args:
        num_features: The number of channels ``C``.
        eps: Added to the variance.
        momentum: How much new statistics count for the running ones; None weighs all batches alike.
        affine: Whether there are parameters.
        track_running_stats: Whether there are buffers; without them the statistics are always those of the input.
        device: The device of parameters and buffers.
        dtype: The dtype of parameters and statistics.
        bias: Whether there is a ``bias`` among the parameters.

    Raises:
        ValueError: The input has another number of dimensions, or a channel has one element in training.

    Shape:
        Input and output: ``(N, C)`` or ``(N, C, L)``.

    Example:
        >>> layer = nn.BatchNorm1d(2)
        >>> layer(rgrad.tensor([[1.0, 0.0], [3.0, 8.0]])).flatten().detach()
        tensor([-1.0000, -1.0000,  1.0000,  1.0000])
        >>> layer.running_mean
        tensor([0.2000, 0.4000])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015).

    In training the statistics are those of the input, and the buffers ``running_mean``, ``running_var`` (of unbiased
    variances) and ``num_batches_tracked`` take them into account. In evaluation mode the running statistics are used.
    The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have an element for each
    channel.

    Args:
        num_features: The number of channels ``C``.
        eps: Added to the variance.
        momentum: How much new statistics count for the running ones; None weighs all batches alike.
        affine: Whether there are parameters.
        track_running_stats: Whether there are buffers; without them the statistics are always those of the input.
        device: The device of parameters and buffers.
        dtype: The dtype of parameters and statistics.
        bias: Whether there is a ``bias`` among the parameters.

    Raises:
        ValueError: The input has another number of dimensions, or a channel has one element in training.

    Shape:
        Input and output: ``(N, C, H, W)``.

    Example:
        >>> layer = nn.BatchNorm2d(2)
        >>> layer(rgrad.tensor([[1.0, 0.0], [3.0, 8.0]]).reshape(2, 2, 1, 1)).flatten().detach()
        tensor([-1.0000, -1.0000,  1.0000,  1.0000])
        >>> layer.running_mean
        tensor([0.2000, 0.4000])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015).

    In training the statistics are those of the input, and the buffers ``running_mean``, ``running_var`` (of unbiased
    variances) and ``num_batches_tracked`` take them into account. In evaluation mode the running statistics are used.
    The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have an element for each
    channel.

    Args:
        num_features: The number of channels ``C``.
        eps: Added to the variance.
        momentum: How much new statistics count for the running ones; None weighs all batches alike.
        affine: Whether there are parameters.
        track_running_stats: Whether there are buffers; without them the statistics are always those of the input.
        device: The device of parameters and buffers.
        dtype: The dtype of parameters and statistics.
        bias: Whether there is a ``bias`` among the parameters.

    Raises:
        ValueError: The input has another number of dimensions, or a channel has one element in training.

    Shape:
        Input and output: ``(N, C, D, H, W)``.

    Example:
        >>> layer = nn.BatchNorm3d(2)
        >>> layer(rgrad.tensor([[1.0, 0.0], [3.0, 8.0]]).reshape(2, 2, 1, 1, 1)).flatten().detach()
        tensor([-1.0000, -1.0000,  1.0000,  1.0000])
        >>> layer.running_mean
        tensor([0.2000, 0.4000])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")
