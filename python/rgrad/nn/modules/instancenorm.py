"""Instance norm."""

import warnings
from typing import Any

from ..._core import Tensor
from .. import functional as F
from ._ranks import Ranked, described_as_lazy
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase, Ranked):
    _text = """
        With ``track_running_stats`` there are the buffers of batch norm, which evaluation mode uses. With ``affine``
        there are the parameters ``weight``, which starts as ones, and ``bias``, which starts as zeros.

        Args:
            num_features: The number of channels ``C``.
            eps: Added to the variance.
            momentum: How much new statistics count for the running ones.
            affine: Whether there are parameters.
            track_running_stats: Whether there are running statistics.
            device: The device of parameters and buffers.
            dtype: The dtype of parameters and statistics.
            bias: Whether there is a ``bias`` among the parameters.

        Raises:
            ValueError: The input has another number of dimensions or (with parameters) of channels, or a channel has
                one element in training.

        Shape:
            Input and output: ``(N, C, {sizes})`` or ``(C, {sizes})``.

        Example:
            >>> layer = nn.{name}(2)
            >>> layer(rgrad.tensor([1.0, 3.0, 0.0, 8.0]).reshape(1, 2, {shape})).flatten()
            tensor([-1.0000,  1.0000, -1.0000,  1.0000])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    @classmethod
    def _words(cls) -> dict[str, str]:
        return {"shape": ", ".join([*"1" * (cls._dims - 1), "2"])}

    def _get_no_batch_dim(self) -> int:
        return self._dims + 1

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Normalise ``input``, and in training take its statistics into account."""
        self._check_input_dim(input)
        rank = self._get_no_batch_dim()
        channels = input.dim() - rank
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channels)}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        batch = input.unsqueeze(0) if input.dim() == rank else input
        result = F.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if input.dim() == rank else result


class InstanceNorm1d(_InstanceNorm):
    """Subtracts mean, divides by deviation of each channel of each element of the batch (Ulyanov et al. 2016)."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Subtracts mean, divides by deviation of each channel of each element of the batch (Ulyanov et al. 2016)."""

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Subtracts mean, divides by deviation of each channel of each element of the batch (Ulyanov et al. 2016)."""

    _dims = 3


@described_as_lazy("", (2, 3, 4))
class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """A :class:`InstanceNorm1d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm1d


@described_as_lazy("", (2, 3, 4, 4))
class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """A :class:`InstanceNorm2d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm2d


@described_as_lazy("", (2, 3, 2, 2, 2))
class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """A :class:`InstanceNorm3d` whose ``num_features`` is that of its first input."""

    cls_to_become = InstanceNorm3d
