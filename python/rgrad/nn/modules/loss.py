"""Losses as modules; see the functions of the same names in ``nn.functional`` for shapes and errors."""

import math
import warnings
from typing import Any

from ..._core import Tensor
from .. import functional as F
from ._loss_base import _Loss, _WeightedLoss
from ._loss_margin import (
    CosineEmbeddingLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    PoissonNLLLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class L1Loss(_Loss):
    """The absolute error ``|input - target|``.

    Errors are those of :func:`rgrad.nn.functional.l1_loss`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.L1Loss()(rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 4.0]))
        tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.l1_loss`."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared error ``(input - target)²``.

    Errors are those of :func:`rgrad.nn.functional.mse_loss`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> loss = nn.MSELoss()
        >>> loss(rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.mse_loss`."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``0.5 d² / beta`` where ``|d| < beta``, else ``|d| - 0.5 beta``, of the differences d (Girshick 2015).

    Errors are those of :func:`rgrad.nn.functional.smooth_l1_loss`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        beta: Where the square ends; 0 makes this the absolute error.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.SmoothL1Loss(reduction="none")(rgrad.tensor([0.0, 0.0]), rgrad.tensor([0.5, 2.0]))
        tensor([0.1250, 1.5000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.smooth_l1_loss`."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``0.5 d²`` where ``|d| < delta``, else ``delta (|d| - 0.5 delta)``, of the differences d (Huber 1964).

    Errors are those of :func:`rgrad.nn.functional.huber_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        delta: Where the square ends.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.HuberLoss(reduction="none")(rgrad.tensor([0.0, 0.0]), rgrad.tensor([0.5, 2.0]))
        tensor([0.1250, 1.5000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.huber_loss`."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """The negative log likelihood of class indices.

    Errors are those of :func:`rgrad.nn.functional.nll_loss`.

    Args:
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        ignore_index: A target with this value counts nothing.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.

    Shape:
        Input: ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``; target: without C. Output: a number, or the target's shape.

    Example:
        >>> log_probabilities = rgrad.tensor([[0.2, 0.8], [0.5, 0.5]]).log()
        >>> nn.NLLLoss()(log_probabilities, rgrad.tensor([1, 0]))
        tensor(0.4581)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.nll_loss`."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of :class:`NLLLoss`.

    Args:
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        ignore_index: Targets with this value count nothing.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.

    Shape:
        As :class:`NLLLoss`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     loss = nn.NLLLoss2d()
        >>> loss
        NLLLoss2d()
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn("`NLLLoss2d` has been deprecated. Use `NLLLoss` in its place.", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of the softmax of scores, and class indices or probabilities.

    Errors are those of :func:`rgrad.nn.functional.cross_entropy`.

    Args:
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        ignore_index: A class index with this value counts nothing.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.
        label_smoothing: The part of the target that is spread evenly over all classes.

    Shape:
        Input: ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``; target: without C. Output: a number, or the target's shape.

    Example:
        >>> scores = rgrad.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> nn.CrossEntropyLoss()(scores, rgrad.tensor([0, 1]))
        tensor(0.4100)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.cross_entropy`."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy of probabilities.

    Errors are those of :func:`rgrad.nn.functional.binary_cross_entropy`.

    Args:
        weight: A factor for each element.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.BCELoss()(rgrad.tensor([0.5, 0.9]), rgrad.tensor([1.0, 1.0]))
        tensor(0.3993)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.binary_cross_entropy`."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of the sigmoid of scores, without overflow.

    Errors are those of :func:`rgrad.nn.functional.binary_cross_entropy_with_logits`.

    Args:
        weight: A factor for each element.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        pos_weight: A factor for the part of the target that is 1.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.BCEWithLogitsLoss()(rgrad.tensor([0.0, 3.0]), rgrad.tensor([1.0, 1.0]))
        tensor(0.3709)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.binary_cross_entropy_with_logits`."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log probabilities.

    Errors are those of :func:`rgrad.nn.functional.kl_div`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"batchmean"`` (the sum divided by the batch size), ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: The target has log probabilities, too.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> q, p = rgrad.tensor([[0.25, 0.75]]), rgrad.tensor([[0.5, 0.5]])
        >>> nn.KLDivLoss(reduction="batchmean")(q.log(), p)
        tensor(0.1438)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.kl_div`."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


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
