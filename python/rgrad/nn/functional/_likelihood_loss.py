"""Losses that are negative log likelihoods: of Gauss and Poisson distributions, and of sequences (CTC)."""

import math
from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from .._reduction import reduced, reduction_of


@overridable("input", "target")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``0.5 * (log(var) + (input - target)² / var)``, the loss of a normal distribution (Nix and Weigend 1994).

    Args:
        input: Means of any shape.
        target: What was observed, of the same shape or broadcast with it.
        var: Variances of the same shape, without the last dimension or with it of size 1, or one number.
        full: Add the constant ``0.5 * log(2 pi)``.
        eps: The smallest variance. The gradient passes to smaller ones as if they were not replaced.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: ``var`` has negative elements or another shape, or there is no such reduction.

    Example:
        >>> F.gaussian_nll_loss(rgrad.tensor([0.0, 1.0]), rgrad.tensor([0.0, 3.0]), rgrad.tensor([1.0, 4.0]))
        tensor(0.5966)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError(f"var has negative entry/entries: got {var}")
        var = var * _core.ones_like(input)
    elif not isinstance(var, Tensor):
        raise TypeError(f"gaussian_nll_loss(): var must be a tensor or a float, not {type(var).__name__}")
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.shape[:-1] != var.shape[:-1] or var.dim() == 0 or var.size(-1) != 1:
            raise ValueError(f"var is of incorrect size: got {var.shape}, the input has {input.shape}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # Its value changes, its gradient does not.
    small = var.detach() < eps
    var = _core.where(small, var - var.detach() + eps, var)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


@overridable("input", "target")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood of Poisson distributions: ``exp(input) - target * input``.

    Args:
        input: Logarithms of means, of any shape, or means if not ``log_input``.
        target: What was observed, of the same shape or broadcast with it.
        log_input: Whether ``input`` has logarithms; else the loss is ``input - target * log(input + eps)``.
        full: Add Stirling's approximation of ``log(target!)`` where ``target > 1``.
        size_average: Old form of ``reduction``.
        eps: Keeps the logarithm from 0.
        reduce: Old form of ``reduction``.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss for each element.

    Returns:
        A tensor without dimensions, or of the shape of ``input`` for ``"none"``.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> F.poisson_nll_loss(rgrad.tensor([0.0, 1.0]), rgrad.tensor([1.0, 2.0]), reduction="none")
        tensor([1.0000, 0.7183])
    """
    if _core._autocasts():
        input, target = _core._autocast_widened(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        # The logarithm is taken of ones where it does not count, to keep nan out of derivatives.
        large = target > 1
        t = _core.where(large, target, 1.0)
        stirling = t * t.log() - t + 0.5 * (2 * math.pi * t).log()
        loss = loss + _core.where(large, stirling, 0.0)
    return reduced(loss, reduction)


# What stands for the logarithm of 0: finite, so that no derivative is nan, and far below any real sum.
_NEVER = -1e30


def _lengths(given: Tensor | Sequence[int], name: str, batch: int, top: int | None, device: Any) -> Tensor:
    """Lengths as an int64 vector on the device."""
    if isinstance(given, Tensor):
        if given.dtype.is_floating_point or given.dtype == _core.bool:
            raise RuntimeError(f"{name} must be integral: got {given.dtype}")
        values = given.reshape(-1).to(_core.int64)
    else:
        values = _core.tensor([int(n) for n in ([given] if isinstance(given, int) else given)], dtype=_core.int64)
    if values.numel() != batch:
        raise RuntimeError(f"{name} must be of size batch_size: got {values.numel()} for a batch of {batch}")
    listed = values.tolist()
    for n in listed:
        if n < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {n} (ctc_loss)")
        if top is not None and n > top:
            raise RuntimeError(f"Expected {name} to have value at most {top}, but got value {n} (ctc_loss)")
    return values.to(device)


def _padded(targets: Tensor, lengths: Tensor, batch: int) -> Tensor:
    """Targets as a matrix with a row for each example, whatever stands behind an example's length."""
    top = max(lengths.tolist(), default=0)
    if targets.dim() == 1:
        total = int(lengths.sum())
        if targets.size(0) != total:
            raise RuntimeError(
                f"Expected tensor to have size {total} at dimension 0, but got size {targets.size(0)} for argument #2 "
                f"'targets' (ctc_loss)"
            )
        if total == 0:
            return _core.zeros((batch, top), dtype=_core.int64, device=targets.device)
        starts = (lengths.cumsum(0) - lengths).unsqueeze(1)
        index = starts + _core.arange(top, device=targets.device)
        return targets[index.clamp(max=total - 1)]
    if targets.dim() != 2:
        raise RuntimeError(f"Expected a 1- or 2-dimensional tensor for argument #2 'targets', got {targets.dim()}-D")
    if targets.size(0) != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size {targets.size(0)} for argument #2 "
            f"'targets' (ctc_loss)"
        )
    if targets.size(1) < top:
        raise RuntimeError(
            f"Expected tensor to have size at least {top} at dimension 1, but got size {targets.size(1)} for argument "
            f"#2 'targets' (ctc_loss)"
        )
    return targets[:, :top]


def _ctc(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int) -> Tensor:
    """The loss of each example: the forward variables of Graves et al., all examples and states of a time at once."""
    steps, batch, classes = log_probs.shape
    device = log_probs.device
    # States: blank, label, blank, label, ..., blank.
    labels = targets.clamp(min=0, max=classes - 1)
    states = 2 * labels.size(1) + 1
    path = _core.full((batch, states), blank, dtype=_core.int64, device=device)
    path = path.index_copy(1, _core.arange(1, states, 2, device=device), labels)
    # A label may follow the label before it, without the blank between, unless both are the same.
    skips = _core.zeros((batch, states), dtype=_core.bool, device=device)
    if states > 3:
        differ = labels[:, 1:] != labels[:, :-1]
        skips = skips.index_copy(1, _core.arange(3, states, 2, device=device), differ)
    emitted = log_probs.clamp(min=_NEVER).gather(2, path.unsqueeze(0).expand(steps, batch, states))
    never = _core.full((batch, 2), _NEVER, dtype=log_probs.dtype, device=device)
    first = _core.arange(states, device=device) < 2
    alpha = _core.where(first, emitted[0], _NEVER)
    alphas = [alpha]
    for t in range(1, steps):
        wide = _core.cat([never, alpha], 1)
        skipped = _core.where(skips, wide[:, :-2], _NEVER)
        alpha = _core.logaddexp(_core.logaddexp(alpha, wide[:, 1:-1]), skipped) + emitted[t]
        alphas.append(alpha)
    last = (input_lengths - 1).clamp(min=0).reshape(1, batch, 1).expand(1, batch, states)
    end = _core.stack(alphas).gather(0, last).squeeze(0)
    final = 2 * target_lengths.unsqueeze(1)
    total = end.gather(1, final)
    label = _core.where(target_lengths.unsqueeze(1) > 0, end.gather(1, (final - 1).clamp(min=0)), _NEVER)
    loss = -_core.logaddexp(total, label).squeeze(1)
    if bool((input_lengths == 0).any()):
        none = _core.where(target_lengths > 0, -_NEVER, 0.0).to(loss.dtype)
        loss = _core.where(input_lengths == 0, none, loss)
    return loss


@overridable("log_probs", "targets")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the negative log likelihood of label sequences over all their alignments (Graves et al. 2006).

    As in PyTorch the gradient of ``log_probs`` is that of scores whose ``log_softmax`` they are; through a
    ``log_softmax`` it is the same as the derivative.

    Args:
        log_probs: Log probabilities of shape ``(T, N, C)`` or ``(T, C)``.
        targets: Labels of shape ``(N, S)`` or ``(S)``, or those of all examples one after the other in one dimension.
        input_lengths: How many of the T times count, for each example.
        target_lengths: How many labels each example has.
        blank: The label that stands for none.
        reduction: ``"mean"`` divides each loss by the length of its target first. Also ``"sum"``, and ``"none"``.
        zero_infinity: Replace losses that are infinite, and their gradients, by 0.

    Returns:
        A tensor without dimensions, or of shape ``(N)`` for ``"none"``.

    Raises:
        RuntimeError: The sizes do not fit, or a length or ``blank`` is out of range.
        ValueError: There is no such reduction.

    Example:
        >>> log_probs = rgrad.zeros(3, 1, 2).log_softmax(2)
        >>> F.ctc_loss(log_probs, rgrad.tensor([[1]]), [3], [1])
        tensor(0.2877)
    """
    if _core._autocasts():
        (log_probs,) = _core._autocast_widened(log_probs)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(f"Expected 3-dimensional tensor for argument #1 'log_probs', but got {log_probs.dim()}-D")
    if not log_probs.dtype.is_floating_point:
        raise NotImplementedError(f"ctc_loss is not implemented for {log_probs.dtype}: it takes a float tensor")
    batched = log_probs.dim() == 3
    lp = log_probs if batched else log_probs.unsqueeze(1)
    steps, batch, classes = lp.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range: got {blank}, labels are 0 to {classes - 1}")
    if steps == 0:
        raise RuntimeError("ctc_loss: log_probs must have at least one time step")
    times = _lengths(input_lengths, "input_lengths", batch, steps, lp.device)
    counts = _lengths(target_lengths, "target_lengths", batch, None, lp.device)
    labels = targets.to(_core.int64)
    if not batched and labels.dim() == 1:
        labels = labels.unsqueeze(0)
    labels = _padded(labels, counts, batch)
    used = _core.arange(labels.size(1), device=labels.device) < counts.unsqueeze(1)
    if bool((used & ((labels < 0) | (labels >= classes))).any()):
        raise RuntimeError(f"ctc_loss: targets must be labels, 0 to {classes - 1}")
    loss = _ctc(lp, labels, times, counts, blank)
    # Without value, but with the gradient that makes the whole one that of scores before log_softmax.
    inside = _core.arange(steps, device=lp.device).unsqueeze(1) < times
    mass = _core.where(inside.unsqueeze(2), lp.exp(), 0.0).sum((0, 2))
    loss = loss + (mass - mass.detach())
    impossible = loss.detach() > -_NEVER / 2
    loss = _core.where(impossible, 0.0 if zero_infinity else math.inf, loss)
    if not batched and reduction == "none":
        return loss.squeeze(0)
    if reduction == "mean":
        return (loss / counts.clamp(min=1)).mean()
    return reduced(loss, reduction)
