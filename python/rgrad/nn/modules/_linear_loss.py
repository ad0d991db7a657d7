"""The cross entropy of a linear layer's scores, and how the batch is cut for it."""

import math
from dataclasses import dataclass
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from ._loss_base import _WeightedLoss
from .linear import Linear

_POLICIES = ("auto", "accurate", "balanced", "compact")
_HALVES = (_core.float16, _core.bfloat16)
_FLOATS = (*_HALVES, _core.float32, _core.float64)


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How :func:`~rgrad.nn.functional.linear_cross_entropy` cuts a batch, so that not all scores are there at once.

    Each part's scores are computed in the forward pass, and again for its gradient.

    Args:
        allow_retain_graph: Accepted; gradients can be computed as often as wanted.
        batch_chunk_size: Rows in a part; None for what ``chunking_method`` says.
        chunking_method: ``"aspect_ratio"`` makes the scores of a part about as large as the input, ``"aspect_ratio:N"``
            N times smaller, None makes one part; ``"auto"`` is the first for 16-bit floats and the second with 2 for
            others.
        acc_policy: ``"auto"``, ``"accurate"``, ``"balanced"`` or ``"compact"``; accepted.
        acc_dtype: The dtype in which losses are computed from scores; None is float32 for 16-bit floats, else the
            input's.

    Raises:
        ValueError: An option has a value that is not listed.

    Example:
        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}, expected one of {_POLICIES}")
        if self.chunking_method not in (None, "auto") and self._divisor(str(self.chunking_method)) is None:
            raise ValueError(
                f"invalid chunking_method: {self.chunking_method!r}, expected 'auto', 'aspect_ratio', "
                "'aspect_ratio:N' or None"
            )
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if self.acc_dtype is not None and self.acc_dtype not in _FLOATS:
            raise ValueError(f"acc_dtype must be one of {{None, {', '.join(map(str, _FLOATS))}}}, got {self.acc_dtype}")

    @staticmethod
    def _divisor(method: str) -> int | None:
        name, colon, number = method.partition(":")
        if name != "aspect_ratio" or (colon and not (number.isdigit() and int(number) > 0)):
            return None
        return int(number) if colon else 1

    def _rows(self, batch: int, in_features: int, num_classes: int, dtype: Any) -> int:
        """How many rows a part has."""
        method = self.chunking_method
        if method == "auto":
            method = None if self.batch_chunk_size else "aspect_ratio" if dtype in _HALVES else "aspect_ratio:2"
        if method is None:
            return max(1, min(self.batch_chunk_size or batch, batch))
        parts = -(-num_classes // max(in_features, 1))
        wanted = max(-(-batch // max(parts, 1)), 1)
        rows = min((1 << (wanted - 1).bit_length()) // (self._divisor(method) or 1), batch)
        if self.batch_chunk_size not in (None, rows):
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give different chunk "
                f"sizes ({self.batch_chunk_size} vs {rows}); pass only one."
            )
        return max(1, rows)


class LinearCrossEntropyLoss(_WeightedLoss):
    """A :class:`Linear` layer and the :class:`CrossEntropyLoss` of what it gives, computed together.

    The layer is the module ``linear``. See :func:`rgrad.nn.functional.linear_cross_entropy`.

    Args:
        in_features: The size of the input's last dimension.
        num_classes: The number of classes C.
        out_features: Sizes of further dimensions of the target, each place with weights of its own.
        bias: Whether the layer has a bias.
        device: The device of the layer's parameters.
        dtype: The dtype of the layer's parameters.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.
        weight: A factor for each class.
        ignore_index: A class index with this value counts nothing; None is -100 for indices.
        label_smoothing: The part of the target, in ``[0, 1]``, that is spread evenly over all classes.
        options: How the batch is cut; None computes all scores at once.

    Raises:
        RuntimeError: ``weight`` has another shape than ``(num_classes)``, or ``label_smoothing`` is out of range.

    Shape:
        Input: ``(in_features)`` or ``(N, in_features)``; target: class indices ``()``, ``(N)`` or
        ``(N, *out_features)``, or probabilities with a dimension C after N; output: a number, or the shape of indices
        for ``"none"``.

    Example:
        >>> loss = nn.LinearCrossEntropyLoss(5, 10, options=nn.LinearCrossEntropyOptions())
        >>> loss(rgrad.ones(3, 5), rgrad.tensor([1, 0, 9])).shape
        rgrad.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.linear_cross_entropy`."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )
