"""The cross entropy of the scores that a linear layer gives."""

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor, is_grad_enabled
from ..._operation.overridable import overridable
from ...autograd.backward import grad
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad
from ._loss import cross_entropy

if TYPE_CHECKING:
    from ..modules.linear_cross_entropy_options import LinearCrossEntropyOptions


@overridable("input", "linear_weight", "target", "linear_bias", "weight")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: "LinearCrossEntropyOptions | None" = None,
) -> Tensor:
    """Compute :func:`cross_entropy` of ``linear(input, linear_weight, linear_bias)`` and ``target``.

    Args:
        input: Of shape ``(F)`` or ``(N, F)``.
        linear_weight: Of shape ``(C, F)``, or ``(C, d1, ..., F)`` for targets with further dimensions.
        target: int64 class indices of shape ``()``, ``(N)`` or ``(N, d1, ...)``, or probabilities with C after N.
        linear_bias: Of the shape of ``linear_weight`` without its last dimension.
        weight: A factor for each class.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each target.
        ignore_index: A class index with this value counts nothing; None is -100 for indices.
        label_smoothing: The part of the target, in ``[0, 1]``, that is spread evenly over all classes.
        options: Cut the batch into parts, whose scores are not kept but computed again for the gradient. Only for
            class indices, ``(C, F)`` weights and no ``label_smoothing``; else there is a warning and no effect.

    Returns:
        A tensor without dimensions, or of the shape of indices for ``"none"``.

    Raises:
        RuntimeError: Shapes do not fit, or ``ignore_index`` is given for probabilities.
        ValueError: There is no such reduction, or the options contradict each other.

    Example:
        >>> x, w = rgrad.tensor([[1.0, 0.0], [0.0, 1.0]]), rgrad.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> F.linear_cross_entropy(x, w, rgrad.tensor([0, 1]))
        tensor(0.4100)
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features, (classes, *further) = input.shape[-1], linear_weight.shape[:-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *further):
        raise RuntimeError(f"expected linear_bias shape {(classes, *further)}, got {tuple(linear_bias.shape)}")
    if further and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], classes, *further)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        known = reduction in ("mean", "sum", "none")
        if known and label_smoothing == 0.0 and target.dtype == _core.int64 and not further:
            return _by_parts(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; parts need reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={tuple(further)}.",
            stacklevel=3,
        )
    if further:
        linear_weight = linear_weight.reshape(math.prod(further, start=classes), features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = _core.linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        scores, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


class _ComputedAgain(Function):
    """A function of tensors that keeps nothing but its inputs: the gradient computes it again."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *tensors: Tensor | None) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return function(*tensors)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        tensors = ctx.saved_tensors
        recorded = is_grad_enabled()
        # Where the gradient is not recorded the function's graph need not reach behind its inputs.
        inputs = [
            t if t is None or (recorded and t.requires_grad) else t.detach().requires_grad_(needed)
            for t, needed in zip(tensors, ctx.needs_input_grad[1:], strict=True)
        ]
        wanted = [t for t, needed in zip(inputs, ctx.needs_input_grad[1:], strict=True) if needed]
        with enable_grad():
            result = ctx.function(*inputs)
        found = iter(grad(result, wanted, gradient, create_graph=recorded))
        return None, *(next(found) if needed else None for needed in ctx.needs_input_grad[1:])


def _by_parts(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    options: "LinearCrossEntropyOptions",
) -> Tensor:
    shape = target.shape
    if input.dim() == 1:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    batch, features = input.shape
    if target.shape != (batch,):
        raise ValueError(f"Expected input batch_size ({batch}) to match target batch_size ({tuple(shape)}).")
    rows = options._rows(batch, features, linear_weight.shape[0], input.dtype)
    half = input.dtype in (_core.float16, _core.bfloat16)
    within = options.acc_dtype or (_core.float32 if half else input.dtype)
    kept = None if weight is None else weight.to(within)

    def loss_of(y: Tensor) -> Callable[..., Tensor]:
        def loss(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
            scores = _core.linear(x, w, b).to(within)
            each = "none" if reduction == "none" else "sum"
            return cross_entropy(scores, y, kept, ignore_index=ignore_index, reduction=each)

        return loss

    losses: list[Any] = [
        _ComputedAgain.apply(loss_of(y), x, linear_weight, linear_bias)
        for x, y in zip(input.split(rows), target.split(rows), strict=True)
    ]
    if reduction == "none":
        return _core.cat(losses).to(input.dtype).reshape(shape)
    total: Tensor = _core.stack(losses).sum()
    if reduction == "mean":
        counted = target != ignore_index
        if kept is None:
            total = total / counted.sum()
        else:
            total = total / _core.where(counted, kept[_core.where(counted, target, 0)], 0.0).sum()
    return total.to(input.dtype)
