"""Batch norm."""

from typing import Any

from ..._core import Tensor
from .. import functional as F
from ._channel_norm import ChannelNorm
from ._ranks import Ranked
from .module import Module


class _BatchNorm(ChannelNorm):
    """Batch norm of inputs with any number of dimensions."""

    _is_over_batch = True

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


class _RankedBatchNorm(_BatchNorm, Ranked):
    _text = """
        In training the statistics are those of the input, and the buffers ``running_mean``, ``running_var`` (of
        unbiased variances) and ``num_batches_tracked`` take them into account. In evaluation mode the running
        statistics are used. The parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros, have
        an element for each channel.

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
            Input and output: {bare}``(N, C, {sizes})``.

        Example:
            >>> layer = nn.{name}(2)
            >>> layer(rgrad.tensor([1.0, 0.0, 3.0, 8.0]).reshape(2, 2, {ones})).flatten().detach()
            tensor([-1.0000, -1.0000,  1.0000,  1.0000])
            >>> layer.running_mean
            tensor([0.2000, 0.4000])
    """

    @classmethod
    def _words(cls) -> dict[str, str]:
        return {"bare": "``(N, C)`` or " if cls._dims == 1 else "", "ones": ", ".join("1" * cls._dims)}

    def _check_input_dim(self, input: Tensor) -> None:
        allowed = (2, 3) if self._dims == 1 else (self._dims + 2,)
        if input.dim() not in allowed:
            said = " or ".join(f"{n}D" for n in allowed)
            raise ValueError(f"expected {said} input (got {input.dim()}D input)")


class BatchNorm1d(_RankedBatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015)."""

    _dims = 1


class BatchNorm2d(_RankedBatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015)."""

    _dims = 2


class BatchNorm3d(_RankedBatchNorm):
    """Subtracts the mean and divides by the deviation of each channel (Ioffe and Szegedy 2015)."""

    _dims = 3


class SyncBatchNorm(_BatchNorm):
    """Batch norm of a batch that is spread over processes.

    There is one process here, so it computes what :class:`BatchNorm2d` does, for inputs of two and more dimensions.

    Args:
        num_features: The number of channels.
        eps: Added to the variance.
        momentum: How much new statistics count for the running ones; None weighs all batches alike.
        affine: Whether there are parameters.
        track_running_stats: Whether there are buffers.
        process_group: Kept as an attribute; it has no effect.
        device: The device of parameters and buffers.
        dtype: The dtype of parameters and buffers.
        bias: Whether there is a bias.

    Shape:
        Input and output: ``(N, C, *)``.

    Example:
        >>> nn.SyncBatchNorm(2)(rgrad.tensor([[1.0, 2.0], [3.0, 6.0]])).round(decimals=2)
        tensor([[-1., -1.],
                [ 1.,  1.]], grad_fn=<RoundBackward1>)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with all batch norms in it as instances of this class, with the same parameters and buffers.

        Args:
            module: The module.
            process_group: An attribute of the new norms.

        Returns:
            The module, or a new one if it is a batch norm itself.
        """
        made: Module = module
        if isinstance(module, _BatchNorm):
            norm = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                norm.weight, norm.bias = module.weight, module.bias
            norm.running_mean = module.running_mean
            norm.running_var = module.running_var
            norm.num_batches_tracked = module.num_batches_tracked
            norm.training = module.training
            made = norm
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
