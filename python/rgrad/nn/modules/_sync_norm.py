"""Batch norm over several parts of a batch: those of other processes, and the virtual shards of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ... import _core
from ..._core import Tensor
from ...autograd.function import Function, once_differentiable
from ...autograd.grad_mode import no_grad
from ...distributed import ProcessGroup, all_gather

if TYPE_CHECKING:
    from .batchnorm import SyncBatchNorm

T = TypeVar("T")


class Meeting(Protocol):
    """Where shards that run beside each other wait for each other."""

    def meet(self, norm: SyncBatchNorm, x: Tensor) -> Tensor:
        """Give a shard's input, and get its output when all shards have come."""


#: Whether this thread runs a shard beside others, and where they meet.
local = threading.local()


def in_tree(leaves: Sequence[T], combine: Callable[[T, T], T]) -> T:
    """Combine neighbours, and what comes out again: the same order for any number of processes."""
    level = list(leaves)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _everywhere(value: Tensor, group: ProcessGroup | None) -> list[Tensor]:
    """The values of all processes."""
    if group is None or group.size() == 1:
        return [value]
    values = [_core.empty_like(value) for _ in range(group.size())]
    all_gather(values, value, group=group)
    return values


def _merged(a: Tensor, b: Tensor) -> Tensor:
    """Count, mean and sum of squared deviations of two parts: Chan, Golub and LeVeque, 1983."""
    counts = a[0] + b[0]
    # A part without elements counts nothing.
    safe = counts.clamp(min=1)
    apart = b[1] - a[1]
    mean = a[1] + apart * (b[0] / safe)
    squares = a[2] + b[2] + apart * apart * (a[0] * b[0] / safe)
    return _core.stack([counts, mean, squares])


def _sums(values: Sequence[Tensor], group: ProcessGroup | None) -> Tensor:
    return in_tree(_everywhere(in_tree(values, _core.add), group), _core.add)


class _Norm(Function):
    """All shards of this process at once: ``x_0 .. x_k, w_0 .. w_k, b_0 .. b_k`` to ``y_0 .. y_k, statistics``."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup | None, eps: float, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        count = len(tensors) // 3
        shards = [x for x in tensors[:count] if x is not None]
        weight, bias = tensors[count], tensors[2 * count]
        wide = _core.float32 if shards[0].dtype in (_core.float16, _core.bfloat16) else shards[0].dtype
        over = [0, *range(2, shards[0].dim())]
        shape = [1, -1] + [1] * (shards[0].dim() - 2)
        parts = []
        for x in shards:
            values = x.to(wide)
            elements = x.numel() // x.shape[1]
            mean = values.mean(over) if elements else values.sum(over)
            squares = (values - mean.reshape(shape)).square().sum(over)
            parts.append(_core.stack([_core.full_like(mean, elements), mean, squares]))
        statistics = in_tree(_everywhere(in_tree(parts, _merged), group), _merged)
        total, mean, squares = statistics.unbind()
        scale = _core.rsqrt(squares / total + eps)
        outputs = []
        for x in shards:
            y = (x.to(wide) - mean.reshape(shape)) * scale.reshape(shape)
            if weight is not None:
                y = y * weight.to(wide).reshape(shape)
            if bias is not None:
                y = y + bias.to(wide).reshape(shape)
            outputs.append(y.to(x.dtype))
        ctx.save_for_backward(*shards, mean, scale, total, *([] if weight is None else [weight]))
        ctx.group, ctx.over, ctx.shape, ctx.wide, ctx.biased = group, over, shape, wide, bias is not None
        ctx.mark_non_differentiable(statistics)
        return (*outputs, statistics)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        count = len(gradients) - 1
        shards = ctx.saved_tensors[:count]
        mean, scale, total, *weight = ctx.saved_tensors[count:]
        shape, wide = ctx.shape, ctx.wide
        plain, times = [], []
        for x, g in zip(shards, gradients[:count], strict=True):
            plain.append(g.to(wide).sum(ctx.over))
            times.append((g.to(wide) * (x.to(wide) - mean.reshape(shape))).sum(ctx.over))
        both = _sums([_core.stack(pair) for pair in zip(plain, times, strict=True)], ctx.group) / total
        factor = scale * weight[0].to(wide) if weight else scale
        inputs = []
        for x, g in zip(shards, gradients[:count], strict=True):
            centred = x.to(wide) - mean.reshape(shape)
            inner = g.to(wide) - both[0].reshape(shape) - centred * (scale * scale * both[1]).reshape(shape)
            inputs.append((inner * factor.reshape(shape)).to(x.dtype))
        weights = [(t * scale).to(weight[0].dtype) if weight else None for t in times]
        biases = [p.to(weight[0].dtype if weight else wide) if ctx.biased else None for p in plain]
        return (None, None, *inputs, *weights, *biases)


def normalised(norms: Sequence[SyncBatchNorm], inputs: Sequence[Tensor], group: ProcessGroup | None) -> list[Tensor]:
    """The outputs of all shards of this process. The first one's norm has the buffers that are kept.

    Args:
        norms: One for each shard; they differ in their tensors alone.
        inputs: One for each shard.
        group: The processes.
    """
    first = norms[0]
    weights, biases = [norm.weight for norm in norms], [norm.bias for norm in norms]
    found: tuple[Tensor, ...] = _Norm.apply(group, first.eps, *inputs, *weights, *biases)
    *outputs, statistics = found
    if first.running_mean is not None and first.running_var is not None:
        with no_grad():
            total, mean, squares = statistics.unbind()
            assert first.num_batches_tracked is not None
            first.num_batches_tracked.add_(1)
            share = 1.0 / float(first.num_batches_tracked) if first.momentum is None else first.momentum
            variance = squares / (total - 1).clamp(min=1)
            first.running_mean.mul_(1 - share).add_(mean.to(first.running_mean.dtype), alpha=share)
            first.running_var.mul_(1 - share).add_(variance.to(first.running_var.dtype), alpha=share)
    return outputs
