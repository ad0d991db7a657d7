"""Batch norm."""

from itertools import chain
from typing import Any

from ... import _core, distributed
from ..._core import Tensor
from .. import functional as F
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import _sync_norm
from ._parameters import register, reset_scale
from ._ranks import Ranked, described_as_lazy
from ._text import options
from .lazy import _LazyLayer
from .module import Module


class _NormBase(Module):
    """What batch and instance norm have in common: a weight, a bias, and running statistics for each channel."""

    _version = 2
    track_running_stats: bool
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = num_features if affine else None
        register(self, device, dtype, weight=shape, bias=shape if bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", _core.zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", _core.ones(num_features, device=device, dtype=dtype) if tracked else None)
        batches = _core.tensor(0, dtype=_core.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", batches)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running means and the number of batches to 0 and the running variances to 1."""
        for name, value in [("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)]:
            statistic = getattr(self, name)
            if statistic is not None:
                statistic.fill_(value)

    def reset_parameters(self) -> None:
        """Reset the running statistics, the weight to ones and the bias to zeros."""
        self.reset_running_stats()
        reset_scale(self.weight, self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    extra_repr = options("eps", "momentum", "affine", "bias", "track_running_stats", first=["num_features"])

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        # States of the first version do not have it.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            have = self.num_batches_tracked
            usable = have is not None and have.device.type != "meta"
            state_dict[key] = have if usable else _core.tensor(0, dtype=_core.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _LazyNormBase(_LazyLayer, _NormBase):
    _learned = "num_features"

    def __init__(
        self,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name in ("weight", "bias"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``num_features`` from the input.

        Args:
            input: The input of the first call.
        """
        if not self.has_uninitialized_params():
            # A state dict gave the shapes.
            self.num_features = self.num_features or self._channels_of(input)
            return
        self.num_features = self._channels_of(input)
        for value in chain(self._parameters.values(), self._buffers.values()):
            if is_lazy(value):
                value.materialize((self.num_features,))
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        return int(input.shape[1])


class _BatchNorm(_NormBase):
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


@described_as_lazy("", (2, 3, 4))
class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A :class:`BatchNorm1d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm1d


@described_as_lazy("", (2, 3, 4, 4))
class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A :class:`BatchNorm2d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm2d


@described_as_lazy("", (2, 3, 2, 2, 2))
class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A :class:`BatchNorm3d` whose ``num_features`` is that of its first input."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch norm of a batch that is spread over processes: in training it has the statistics of all their parts.

    In one process it computes what :class:`BatchNorm2d` does, for inputs of two and more dimensions. Over several the
    statistics are combined in a fixed tree, and the derivative cannot be differentiated again.

    Args:
        num_features: The number of channels.
        eps: Added to the variance.
        momentum: How much new statistics count for the running ones; None weighs all batches alike.
        affine: Whether there are parameters.
        track_running_stats: Whether there are buffers.
        process_group: The processes; by default all of them.
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

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        self._check_input_dim(input)
        if self.training or self.running_mean is None:
            meeting = getattr(_sync_norm.local, "meeting", None)
            if meeting is not None:
                found: Tensor = meeting.meet(self, input)
                return found
            group = self.process_group or distributed.group.WORLD
            if group is not None and group.size() > 1:
                return _sync_norm.normalised([self], [input], group)[0]
        return super().forward(input)

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
