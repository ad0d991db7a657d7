"""Losses. What is composed of tensor operations here is differentiable to every order, as the native ones are."""

import math
import warnings

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._reduction import reduced, reduction_of


def _broadcast(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both at their common shape, with a warning: shapes that differ are a mistake more often than not."""
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        f"This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size "
        f"in {name}.",
        UserWarning,
        stacklevel=4,
    )
    # Shapes that do not broadcast raise here.
    shape = (input.detach() + target.detach()).shape
    return input.expand(shape), target.expand(shape)


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size: got {weight.shape} and {loss.shape}.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


@overridable("input", "target")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the squared error ``(input - target)²``.

    Args:
        input: A tensor of any shape.
        target: A tensor of the same shape; another shape is broadcast, with a warning.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        weight: A factor for each element; a mean is then divided by the sum of the weights.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction, or ``weight`` has another shape than ``input``.

    Example:
        >>> F.mse_loss(rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 4.0]))
        tensor(2.)
    """
    if size_average is not None or reduce is not None or weight is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        input, target = _broadcast("mse_loss", input, target)
    if weight is None:
        return _core.mse_loss(input, target, reduction)
    return _weighted(_core.mse_loss(input, target, "none"), weight, reduction)


@overridable("input", "target")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the absolute error ``|input - target|``.

    Args:
        input: A tensor of any shape.
        target: A tensor of the same shape; another shape is broadcast, with a warning.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        weight: A factor for each element; a mean is then divided by the sum of the weights.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction, or ``weight`` has another shape than ``input``.

    Example:
        >>> F.l1_loss(rgrad.tensor([1.0, 2.0]), rgrad.tensor([1.0, 4.0]), reduction="none")
        tensor([0., 2.])
    """
    if size_average is not None or reduce is not None or weight is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        input, target = _broadcast("l1_loss", input, target)
    if weight is None:
        return _core.l1_loss(input, target, reduction)
    return _weighted(_core.l1_loss(input, target, "none"), weight, reduction)


@overridable("input", "target")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute ``0.5 d² / beta`` where ``|d| < beta``, else ``|d| - 0.5 beta``, of the differences d (Girshick 2015).

    Args:
        input: A tensor of any shape.
        target: A tensor of the same shape; another shape is broadcast, with a warning.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        beta: Where the square ends; 0 makes this the absolute error.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> F.smooth_l1_loss(rgrad.tensor([0.0, 0.0]), rgrad.tensor([0.5, 2.0]), reduction="none")
        tensor([0.1250, 1.5000])
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        input, target = _broadcast("smooth_l1_loss", input, target)
    return _core.smooth_l1_loss(input, target, reduction, beta)


@overridable("input", "target")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Compute ``0.5 d²`` where ``|d| < delta``, else ``delta (|d| - 0.5 delta)``, of the differences d (Huber 1964).

    Args:
        input: A tensor of any shape.
        target: A tensor of the same shape; another shape is broadcast, with a warning.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        delta: Where the square ends.
        weight: A factor for each element; a mean is then divided by the sum of the weights.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction, or ``weight`` has another shape than ``input``.

    Example:
        >>> F.huber_loss(rgrad.tensor([0.0, 0.0]), rgrad.tensor([0.5, 2.0]), reduction="none")
        tensor([0.1250, 1.5000])
    """
    if weight is not None:
        reduction = reduction_of(reduction, None, None)
    if input.shape != target.shape:
        input, target = _broadcast("huber_loss", input, target)
    if weight is None:
        return _core.huber_loss(input, target, reduction, delta)
    return _weighted(_core.huber_loss(input, target, "none", delta), weight, reduction)


@overridable("input", "target")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood of class indices.

    Args:
        input: Log probabilities of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: int64 class indices of shape ``()``, ``(N)`` or ``(N, d1, ...)``.
        weight: A factor for each class; a mean is then divided by the sum of the weights of the targets.
        size_average: Old form of ``reduction``.
        ignore_index: A target with this value counts nothing.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.

    Returns:
        A tensor without dimensions, or of the shape of ``target`` for ``"none"``.

    Raises:
        IndexError: A class is out of range.
        RuntimeError: The shapes do not fit.
        ValueError: The batch sizes differ, or there is no such reduction.

    Example:
        >>> F.nll_loss(rgrad.tensor([[0.2, 0.8], [0.5, 0.5]]).log(), rgrad.tensor([1, 0]), reduction="none")
        tensor([0.2231, 0.6931])
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _core.nll_loss(input, target, weight, reduction, ignore_index)


@overridable("input", "target")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the cross entropy between the softmax of ``input`` along the class dimension and ``target``.

    Args:
        input: Scores of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: int64 class indices as in :func:`nll_loss`, or probabilities of the shape of ``input``.
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        ignore_index: A class index with this value counts nothing.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.
        label_smoothing: The part of the target, in ``[0, 1]``, that is spread evenly over all classes (Szegedy et al.
            2016).

    Returns:
        A tensor without dimensions, or of the shape of ``input`` without the class dimension for ``"none"``.

    Raises:
        IndexError: A class is out of range.
        RuntimeError: The shapes do not fit, or ``label_smoothing`` is out of range.
        ValueError: The batch sizes differ, or there is no such reduction.

    Example:
        >>> scores = rgrad.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)
        >>> loss = F.cross_entropy(scores, rgrad.tensor([0, 1]))
        >>> loss.backward()
        >>> scores.grad
        tensor([[-0.0596,  0.0596],
                [ 0.2500, -0.2500]])
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _core.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


@overridable("input", "target")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute the binary cross entropy of ``sigmoid(input)`` and ``target``, without overflow.

    Args:
        input: Scores of any shape.
        target: Probabilities of the same shape.
        weight: A factor for each element, broadcast to ``input``.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.
        pos_weight: A factor for the part of ``target`` that is 1, broadcast to ``input``.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: The shapes of ``input`` and ``target`` differ, or there is no such reduction.

    Example:
        >>> F.binary_cross_entropy_with_logits(rgrad.tensor([0.0, 3.0]), rgrad.tensor([1.0, 1.0]), reduction="none")
        tensor([0.6931, 0.0486])
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _core.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@overridable("input", "target")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the binary cross entropy of probabilities; its logarithms are -100 at least.

    Args:
        input: Probabilities of any shape.
        target: Probabilities of the same shape.
        weight: A factor for each element, broadcast to ``input``.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        RuntimeError: A probability is not in ``[0, 1]``.
        ValueError: The shapes of ``input`` and ``target`` differ, or there is no such reduction.

    Example:
        >>> F.binary_cross_entropy(rgrad.tensor([0.5, 0.9]), rgrad.tensor([1.0, 1.0]), reduction="none")
        tensor([0.6931, 0.1054])
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _core.binary_cross_entropy(input, target, weight, reduction)


@overridable("input", "target")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute the Kullback-Leibler divergence ``target * (log(target) - input)``.

    Args:
        input: Log probabilities of any shape.
        target: Probabilities of the same shape.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"batchmean"`` divides the sum by the batch size, which is the divergence of the definition;
            ``"mean"`` divides by the number of elements. Also ``"sum"``, and ``"none"``.
        log_target: ``target`` has log probabilities, too.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> p = rgrad.tensor([[0.5, 0.5]])
        >>> q = rgrad.tensor([[0.25, 0.75]])
        >>> F.kl_div(q.log(), p, reduction="batchmean")
        tensor(0.1438)
    """
    if _core._autocasts():
        input, target = _core._autocast_widened(input, target)
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    batchmean = reduction == "batchmean"
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' "
            "divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=3,
        )
    reduction = reduction_of("sum" if batchmean else reduction, size_average, reduce)
    if log_target:
        # The logarithm of 0 counts as a target of 0.
        none = target == -math.inf
        loss = (target.exp() * (target.masked_fill(none, 0.0) - input)).masked_fill(none, 0.0)
    else:
        # 0 log 0 is 0; the logarithm is taken of ones there, to keep nan out of derivatives too.
        positive = target > 0
        safe = _core.where(positive, target, _core.ones_like(target))
        loss = _core.where(positive, target * safe.log(), _core.zeros_like(target)) - target * input
    loss = reduced(loss, reduction)
    return loss / input.shape[0] if batchmean and input.dim() else loss
