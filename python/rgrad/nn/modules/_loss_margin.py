"""Losses of margins and likelihoods as modules; see the functions of the same names in ``nn.functional``."""

from collections.abc import Callable, Sequence

from ..._core import Tensor
from .. import functional as F
from ._loss_base import _Loss, _MarginLoss, _WeightedLoss
from .distance import PairwiseDistance
from .module import Module


class GaussianNLLLoss(_Loss):
    """The loss of a normal distribution, ``0.5 * (log(var) + (input - target)² / var)``.

    Errors are those of :func:`rgrad.nn.functional.gaussian_nll_loss`.

    Args:
        full: Add the constant ``0.5 * log(2 pi)``.
        eps: The smallest variance.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input, target and variance: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.GaussianNLLLoss()(rgrad.tensor([0.0, 1.0]), rgrad.tensor([0.0, 3.0]), rgrad.tensor([1.0, 4.0]))
        tensor(0.5966)
    """

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """See :func:`rgrad.nn.functional.gaussian_nll_loss`."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of Poisson distributions, ``exp(input) - target * input``.

    Errors are those of :func:`rgrad.nn.functional.poisson_nll_loss`.

    Args:
        log_input: Whether the input has logarithms of means.
        full: Add Stirling's approximation of ``log(target!)``.
        size_average: Old form of ``reduction``.
        eps: Keeps a logarithm from 0.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.PoissonNLLLoss()(rgrad.tensor([0.0, 1.0]), rgrad.tensor([1.0, 2.0]))
        tensor(0.8591)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.poisson_nll_loss`."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target * (input1 - input2) + margin)``.

    Errors are those of :func:`rgrad.nn.functional.margin_ranking_loss`.

    Args:
        margin: By how much one should be greater.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Inputs and target: any, the same; output: a number, or the inputs' shape for ``"none"``.

    Example:
        >>> nn.MarginRankingLoss()(rgrad.tensor([1.0, 2.0]), rgrad.tensor([0.0, 5.0]), rgrad.tensor([1.0, 1.0]))
        tensor(1.5000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.margin_ranking_loss`."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Errors are those of :func:`rgrad.nn.functional.hinge_embedding_loss`.

    Args:
        margin: The distance that a pair with target -1 should have at least.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.HingeEmbeddingLoss()(rgrad.tensor([0.5, 0.25]), rgrad.tensor([1, -1]))
        tensor(0.6250)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.hinge_embedding_loss`."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Errors are those of :func:`rgrad.nn.functional.cosine_embedding_loss`.

    Args:
        margin: The cosine that a pair with target -1 should not exceed.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each pair.

    Shape:
        Inputs: ``(N, D)`` or ``(D)``; target: ``(N)`` or ``()``; output: a number, or the target's shape.

    Example:
        >>> nn.CosineEmbeddingLoss()(rgrad.tensor([[1.0, 0.0]]), rgrad.tensor([[0.0, 1.0]]), rgrad.tensor([1]))
        tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.cosine_embedding_loss`."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``.

    Errors are those of :func:`rgrad.nn.functional.soft_margin_loss`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Shape:
        Input and target: any, the same; output: a number, or the input's shape for ``"none"``.

    Example:
        >>> nn.SoftMarginLoss()(rgrad.tensor([0.0, 0.0]), rgrad.tensor([1.0, -1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.soft_margin_loss`."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the binary cross entropy of ``sigmoid(input)`` and the target.

    Errors are those of :func:`rgrad.nn.functional.multilabel_soft_margin_loss`.

    Args:
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Shape:
        Input and target: ``(N, C)``; output: a number, or ``(N)`` for ``"none"``.

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(rgrad.tensor([[0.0, 3.0]]), rgrad.tensor([[1.0, 0.0]]))
        tensor(1.8709)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.multilabel_soft_margin_loss`."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum of ``max(0, 1 - (x[j] - x[i])) / C`` over classes j that are targets and i that are not.

    Errors are those of :func:`rgrad.nn.functional.multilabel_margin_loss`.

    Args:
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Shape:
        Input and target: ``(N, C)`` or ``(C)``; output: a number, or ``(N)`` for ``"none"``.

    Example:
        >>> nn.MultiLabelMarginLoss()(rgrad.tensor([[0.1, 0.2, 0.4, 0.8]]), rgrad.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.multilabel_margin_loss`."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The sum of ``max(0, margin - x[target] + x[i])**p / C`` over the other classes i.

    Errors are those of :func:`rgrad.nn.functional.multi_margin_loss`.

    Args:
        p: The exponent, 1 or 2.
        margin: By how much the score of the target should be greater.
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Shape:
        Input: ``(N, C)`` or ``(C)``; target: ``(N)`` or ``()``; output: a number, or the target's shape for ``"none"``.

    Example:
        >>> nn.MultiMarginLoss()(rgrad.tensor([[0.1, 0.2, 0.4, 0.8]]), rgrad.tensor([3]))
        tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.multi_margin_loss`."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` (Balntas et al. 2016).

    Errors are those of :func:`rgrad.nn.functional.triplet_margin_loss`.

    Args:
        margin: By how much farther negatives should be.
        p: The order of the norm that is the distance.
        eps: Added to differences.
        swap: Take the distance from positive to negative where it is less than that from the anchor.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each triplet.

    Shape:
        Inputs: ``(N, D)`` or ``(D)``; output: a number, or ``(N)`` for ``"none"``.

    Example:
        >>> nn.TripletMarginLoss()(rgrad.tensor([[0.0]]), rgrad.tensor([[3.0]]), rgrad.tensor([[1.0]]))
        tensor(3.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.triplet_margin_loss`."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """As :class:`TripletMarginLoss`, with a distance of one's own.

    Args:
        distance_function: Gives the distances of two tensors; :class:`PairwiseDistance` if it is None.
        margin: By how much farther negatives should be.
        swap: Take the distance from positive to negative where it is less than that from the anchor.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each triplet.

    Raises:
        ValueError: ``margin`` is not positive.

    Shape:
        Inputs: ``(N, D)``; output: a number, or ``(N)`` for ``"none"``.

    Example:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().amax(1))
        >>> loss(rgrad.tensor([[0.0]]), rgrad.tensor([[3.0]]), rgrad.tensor([[1.0]]))
        tensor(3.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function: Callable[[Tensor, Tensor], Tensor] | Module = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.triplet_margin_with_distance_loss`."""
        loss: Tensor = F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
        return loss


class CTCLoss(_Loss):
    """The negative log likelihood of label sequences over all their alignments (Graves et al. 2006).

    Errors are those of :func:`rgrad.nn.functional.ctc_loss`.

    Args:
        blank: The label that stands for none.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each example.
        zero_infinity: Replace losses that are infinite, and their gradients, by 0.

    Shape:
        Log probabilities: ``(T, N, C)`` or ``(T, C)``; targets: ``(N, S)``, or all in one dimension; lengths: ``(N)``;
        output: a number, or ``(N)`` for ``"none"``.

    Example:
        >>> log_probs = rgrad.zeros(3, 1, 2).log_softmax(2)
        >>> nn.CTCLoss()(log_probs, rgrad.tensor([[1]]), [3], [1])
        tensor(0.2877)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """See :func:`rgrad.nn.functional.ctc_loss`."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
