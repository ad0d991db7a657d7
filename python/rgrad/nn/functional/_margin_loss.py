"""Losses of margins: of scores that should differ, of pairs and of triplets."""

from collections.abc import Callable

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._reduction import reduced, reduction_of
from ._activation import logsigmoid
from ._distance import pairwise_distance


@overridable("input1", "input2", "target")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(0, -target * (input1 - input2) + margin)``.

    Args:
        input1: A tensor of any shape.
        input2: A tensor with as many dimensions.
        target: 1 where ``input1`` should be greater, -1 where ``input2`` should; with as many dimensions.
        margin: By how much.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the common shape for ``"none"``.

    Raises:
        RuntimeError: The numbers of dimensions differ.
        ValueError: There is no such reduction.

    Example:
        >>> F.margin_ranking_loss(rgrad.tensor([1.0, 2.0]), rgrad.tensor([0.0, 5.0]), rgrad.tensor([1.0, 1.0]))
        tensor(1.5000)
    """
    if _core._autocasts():
        input1, input2, target = _core._autocast_widened(input1, input2, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


@overridable("input", "target")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``input`` where ``target`` is 1, and ``max(0, margin - input)`` where it is -1.

    Args:
        input: A tensor of any shape: distances.
        target: 1 or -1 for each element.
        margin: The distance that a pair with target -1 should have at least.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> F.hinge_embedding_loss(rgrad.tensor([0.5, 0.25]), rgrad.tensor([1, -1]), reduction="none")
        tensor([0.5000, 0.7500])
    """
    if _core._autocasts():
        (input,) = _core._autocast_widened(input)
    reduction = reduction_of(reduction, size_average, reduce)
    far = _core.where(target != 1, (margin - input).clamp(min=0), 0.0)
    near = _core.where(target != -1, input, 0.0)
    return reduced(far + near, reduction)


@overridable("input1", "input2", "target")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``1 - cos`` where ``target`` is 1, and ``max(0, cos - margin)`` where it is -1, of the angle's cosine.

    Args:
        input1: Vectors of shape ``(N, D)`` or ``(D)``.
        input2: Vectors of the same shape.
        target: 1 or -1 for each pair, of shape ``(N)`` or ``()``.
        margin: The cosine that a pair with target -1 should not exceed.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each pair.

    Returns:
        A tensor without dimensions, or of the shape of ``target`` for ``"none"``.

    Raises:
        RuntimeError: The shapes do not fit.
        ValueError: There is no such reduction.

    Example:
        >>> x, y = rgrad.tensor([[1.0, 0.0], [1.0, 0.0]]), rgrad.tensor([[0.0, 1.0], [2.0, 0.0]])
        >>> F.cosine_embedding_loss(x, y, rgrad.tensor([1, -1]), reduction="none")
        tensor([1., 1.])
    """
    if _core._autocasts():
        input1, input2, target = _core._autocast_widened(input1, input2, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.dim() == input2.dim() == target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    tiny = 1e-12
    dim = target.dim()
    squares = ((input1 * input1).sum(dim) + tiny) * ((input2 * input2).sum(dim) + tiny)
    cosine = (input1 * input2).sum(dim) / squares.sqrt()
    near = _core.where(target == 1, 1 - cosine, 0.0)
    far = _core.where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduced(near + far, reduction)


@overridable("input", "target")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``log(1 + exp(-target * input))``, without overflow.

    Args:
        input: A tensor of any shape.
        target: 1 or -1 for each element.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> F.soft_margin_loss(rgrad.tensor([0.0, 3.0]), rgrad.tensor([1.0, -1.0]), reduction="none")
        tensor([0.6931, 3.0486])
    """
    if _core._autocasts():
        input, target = _core._autocast_widened(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    return reduced(-logsigmoid(target * input), reduction)


@overridable("input", "target")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the mean over the classes of the binary cross entropy of ``sigmoid(input)`` and ``target``.

    Args:
        input: Scores of shape ``(*, C)``.
        target: 0 or 1 for each element.
        weight: A factor for each class.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Returns:
        A tensor without dimensions, or of shape ``(*)`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> F.multilabel_soft_margin_loss(rgrad.tensor([[0.0, 3.0]]), rgrad.tensor([[1.0, 0.0]]))
        tensor(1.8709)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input.dim() == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)


def _check_dtypes(name: str, x: Tensor, target: Tensor) -> None:
    if target.dtype != _core.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}: the target has classes")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"{name} is not implemented for {x.dtype}: convert to a float type")


def _rows(input: Tensor) -> Tensor:
    """The scores as a matrix with a row for each example."""
    ndim = input.dim()
    if ndim > 2 or (ndim > 0 and input.size(-1) == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    return input if ndim == 2 else input.reshape(1, -1)


@overridable("input", "target")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the sum of ``max(0, 1 - (x[j] - x[i])) / C`` over the classes j that are targets and i that are not.

    Args:
        input: Scores of shape ``(N, C)`` or ``(C)``.
        target: int64 classes, of the same shape; those before the first -1 count.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Returns:
        A tensor without dimensions, or of shape ``(N)`` for ``"none"``.

    Raises:
        RuntimeError: The shapes do not fit, or a class is out of range.
        ValueError: There is no such reduction.

    Example:
        >>> x = rgrad.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> F.multilabel_margin_loss(x, rgrad.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    if _core._autocasts():
        (input,) = _core._autocast_widened(input)
    reduction = reduction_of(reduction, size_average, reduce)
    x = _rows(input)
    if target.shape != input.shape and not (input.dim() < 2 and target.numel() == input.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_dtypes("multilabel_margin_loss", x, target)
    classes = x.size(1)
    t = target.reshape(x.shape)
    index = _core.where(t == -1, 0, t)
    try:
        own = x.gather(1, index)
    except RuntimeError as error:
        raise RuntimeError(f"argument #2 'target' is out of range: classes are 0 to {classes - 1}, or -1") from error
    counts = (t >= 0).to(_core.int64).cumprod(1)
    # Whether each class is a target.
    wanted = _core.zeros_like(t).scatter_add(1, index, counts) > 0
    pairs = (1 - (own.unsqueeze(2) - x.unsqueeze(1))).relu()
    used = counts.to(_core.bool).unsqueeze(2) & wanted.logical_not().unsqueeze(1)
    loss = _core.where(used, pairs, 0.0).sum((1, 2)) / classes
    return reduced(loss if input.dim() == 2 else loss.squeeze(0), reduction)


@overridable("input", "target")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the sum of ``max(0, margin - x[target] + x[i])**p / C`` over the other classes i.

    Args:
        input: Scores of shape ``(N, C)`` or ``(C)``.
        target: int64 classes of shape ``(N)``, or ``()``.
        p: The exponent, 1 or 2.
        margin: By how much the score of the target should be greater.
        weight: A factor for each class, which applies where it is the target.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each row.

    Returns:
        A tensor without dimensions, or of shape ``(N)`` for ``"none"``.

    Raises:
        RuntimeError: The shapes do not fit, or a class is out of range.
        ValueError: ``p`` is neither 1 nor 2, or there is no such reduction.

    Example:
        >>> F.multi_margin_loss(rgrad.tensor([[0.1, 0.2, 0.4, 0.8]]), rgrad.tensor([3]))
        tensor(0.3250)
    """
    if _core._autocasts():
        (input,) = _core._autocast_widened(input)
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    x = _rows(input)
    batch, classes = x.shape
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.dim() > 1 or target.numel() != batch:
        raise RuntimeError(
            f"multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{batch}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    _check_dtypes("multi_margin_loss", x, target)
    if weight is not None and weight.dtype != x.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype} but found {weight.dtype}: the weight has the input's dtype")
    t = target.reshape(batch, 1)
    try:
        own = x.gather(1, t)
    except RuntimeError as error:
        raise RuntimeError(f"target out of range: classes are 0 to {classes - 1}") from error
    z = (margin - own + x).relu()
    if p == 2:
        z = z * z
    if weight is not None:
        z = z * weight.detach().index_select(0, target.reshape(-1)).unsqueeze(1)
    z = _core.where(_core.arange(classes, device=x.device) == t, 0.0, z)
    loss = z.sum(1) / classes
    return reduced(loss if input.dim() == 2 or target.dim() == 1 else loss.squeeze(0), reduction)


def _check_triplets(margin: float, anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    a, p, n = anchor.dim(), positive.dim(), negative.dim()
    if not a == p == n:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {p}D, and negative {n}D inputs"
        )


@overridable("anchor", "positive", "negative")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` (Balntas et al. 2016).

    Args:
        anchor: Vectors of shape ``(N, D)`` or ``(D)``.
        positive: Vectors that should be near, of the same shape.
        negative: Vectors that should be far, of the same shape.
        margin: By how much farther.
        p: The order of the norm that is the distance.
        eps: Added to differences, see :func:`pairwise_distance`.
        swap: Take the distance from positive to negative where it is less than that from the anchor.
        size_average: Old form of ``reduction``.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each triplet.

    Returns:
        A tensor without dimensions, or of shape ``(N)`` for ``"none"``.

    Raises:
        RuntimeError: The numbers of dimensions differ.
        ValueError: There is no such reduction, or ``margin`` is not positive.

    Example:
        >>> a, p, n = rgrad.tensor([[0.0]]), rgrad.tensor([[3.0]]), rgrad.tensor([[1.0]])
        >>> F.triplet_margin_loss(a, p, n)
        tensor(3.)
    """
    if _core._autocasts():
        anchor, positive, negative = _core._autocast_widened(anchor, positive, negative)
    reduction = reduction_of(reduction, size_average, reduce)
    _check_triplets(margin, anchor, positive, negative)

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplets(anchor, positive, negative, distance, margin, swap, reduction)


def _triplets(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _core.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


@overridable("anchor", "positive", "negative")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute :func:`triplet_margin_loss` with a distance of one's own.

    Args:
        anchor: Vectors of shape ``(N, D)``.
        positive: Vectors that should be near, of the same shape.
        negative: Vectors that should be far, of the same shape.
        distance_function: Gives the distances of two tensors; :func:`pairwise_distance` if it is None.
        margin: By how much farther.
        swap: Take the distance from positive to negative where it is less than that from the anchor.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each triplet.

    Returns:
        A tensor without dimensions, or of the shape of the distances for ``"none"``.

    Raises:
        RuntimeError: The numbers of dimensions differ.
        ValueError: There is no such reduction, or ``margin`` is not positive.

    Example:
        >>> a, p, n = rgrad.tensor([[0.0]]), rgrad.tensor([[3.0]]), rgrad.tensor([[1.0]])
        >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().amax(1))
        tensor(3.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_triplets(margin, anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplets(anchor, positive, negative, distance, margin, swap, reduction)
