"""What batch and instance norm have in common: parameters, and statistics that are kept from call to call."""

from typing import Any

from ... import _core
from ..._core import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module


class ChannelNorm(Module):
    """A layer with a weight, a bias, and running statistics for each channel."""

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
        for name, there in [("weight", affine), ("bias", affine and bias)]:
            made = _core.empty(num_features, device=device, dtype=dtype) if there else None
            self.register_parameter(name, None if made is None else Parameter(made))
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
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        has_bias = self.bias is not None
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={has_bias}, "
            f"track_running_stats={self.track_running_stats}"
        )

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
