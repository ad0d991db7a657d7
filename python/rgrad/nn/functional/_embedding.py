"""Rows of a table by their indices."""

import warnings
from itertools import pairwise
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._operation.composed import type_name
from ..._operation.overridable import overridable


def padding_row(padding_idx: int | None, count: int, name: str) -> int | None:
    """The row that gets no gradient, which may be counted from the end of so many rows."""
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx % count


def _check(name: str, dtype: Any, weight: Tensor, sparse: bool) -> None:
    if sparse:
        raise NotImplementedError(
            f"{name}: there are no sparse gradients; with sparse=False the gradient of the table is a dense tensor"
        )
    if dtype not in (_core.int64, _core.int32):
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_name(dtype)} instead (while checking arguments for {name})"
        )
    if weight.dim() != 2:
        raise RuntimeError(f"'weight' must be 2-D: {name} got a {weight.dim()}-D table")


def _limit_norms(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are used, in place, to a norm of `max_norm` at most."""
    table = weight.detach()
    rows = index.detach().reshape(-1).unique()
    if rows.numel() == 0:
        return
    used = table.index_select(0, rows)
    norms = used.norm(norm_type, 1, keepdim=True)
    table.index_copy_(0, rows, _core.where(norms > max_norm, used * (max_norm / (norms + 1e-7)), used))


def _frequencies(index: Tensor, size: int, dtype: Any) -> Tensor:
    """How often the row of each index is used."""
    counts = _core.zeros(size, dtype=dtype, device=index.device)
    return counts.index_add(0, index, _core.ones_like(index, dtype=dtype)).index_select(0, index)


def _rows(weight: Tensor, index: Tensor, padding: int | None, scale_by_freq: bool) -> Tensor:
    """The rows of a vector of indices. That of `padding` has no gradient."""
    rows = weight.index_select(0, index)
    if not weight.requires_grad:
        return rows
    if scale_by_freq:
        # The value of the rows, and their gradient divided by how often each is used.
        share = rows / _frequencies(index, weight.size(0), rows.dtype).unsqueeze(1)
        rows = share + (rows - share).detach()
    if padding is not None:
        rows = _core.where((index == padding).unsqueeze(1), rows.detach(), rows)
    return rows


@overridable("input", "weight")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of a table.

    Args:
        input: int64 or int32 indices of any shape.
        weight: The table, of shape ``(V, D)``.
        padding_idx: A row that gets no gradient.
        max_norm: Rows that are used and have a larger norm are scaled to it, in place, before.
        norm_type: The order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by the number of its uses.
        sparse: Not supported: gradients are dense.

    Returns:
        A tensor of shape ``(*, D)`` for indices of shape ``(*)``.

    Raises:
        AssertionError: ``padding_idx`` is no index of a row.
        IndexError: An index is out of range.
        NotImplementedError: ``sparse`` is set.
        RuntimeError: The indices have another dtype, or the table is no matrix.

    Example:
        >>> F.embedding(rgrad.tensor([2, 0]), rgrad.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
        tensor([[4., 5.],
                [0., 1.]])
    """
    if padding_idx is not None and not 0 <= padding_idx < weight.size(0):
        padding_idx = padding_row(padding_idx, weight.size(0), "Padding_idx")
    _check("embedding", input.dtype, weight, sparse)
    index = input.reshape(-1).to(_core.int64)
    if max_norm is not None:
        _limit_norms(weight, index, max_norm, norm_type)
    # Out of range is an IndexError of index_select.
    rows = _rows(weight, index, padding_idx, scale_grad_by_freq)
    return rows.reshape(*input.shape, weight.size(1))


def _bounds(offsets: Tensor, length: int, include_last: bool) -> tuple[Tensor, Tensor]:
    """Where each bag starts and ends."""
    listed = offsets.tolist()
    if listed and listed[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {listed[0]}"
        )
    if listed and listed[-1] > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {listed[-1]}"
        )
    if any(a > b for a, b in pairwise(listed)):
        raise RuntimeError(f"embedding_bag: offsets must not decrease, got {listed}")
    if include_last:
        if not listed:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        return offsets[:-1], offsets[1:]
    return offsets, _core.cat([offsets[1:], _core.full((1,), length, dtype=_core.int64, device=offsets.device)])


@overridable("input", "weight")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Compute sums, means or maxima of bags of rows of a table.

    Args:
        input: int64 or int32 indices: of shape ``(B, L)``, a bag in each row, or all in one dimension; these may be of
            any other dtype that is promoted to one of these two with that of the offsets.
        weight: The table, of shape ``(V, D)``.
        offsets: Where each bag starts in a vector of indices; the first is 0.
        max_norm: Rows that are used and have a larger norm are scaled to it, in place, before.
        norm_type: The order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by the number of its uses.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: Not supported: gradients are dense.
        per_sample_weights: A factor for each index, only for sums.
        include_last_offset: The last of the offsets is the end of the last bag.
        padding_idx: An index that does not count.

    Returns:
        A tensor of shape ``(B, D)``; that of an empty bag is 0.

    Raises:
        NotImplementedError: ``sparse`` is set, or there are factors and the mode is not ``"sum"``.
        RuntimeError: An index is out of range, offsets or dtypes do not fit.
        ValueError: The shapes do not fit, or there is no such mode.

    Example:
        >>> table = rgrad.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        >>> F.embedding_bag(rgrad.tensor([0, 1, 2]), table, rgrad.tensor([0, 2]), mode="sum")
        tensor([[2., 4.],
                [4., 5.]])
    """
    if weight.dtype == _core.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and not isinstance(per_sample_weights, Tensor):
        raise TypeError(
            f"embedding_bag(): argument 'per_sample_weights' must be Tensor, not {type(per_sample_weights).__name__}"
        )
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                f"if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        starts = _core.arange(bags, device=input.device) * length
        ends = starts + length
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError(f"offsets has to be a 1D Tensor: got {offsets.dim()} dimensions")
        starts, ends = _bounds(offsets.to(_core.int64), input.size(0), include_last_offset)
        bags = starts.size(0)
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max: got {mode}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    # Indices and offsets are promoted to one dtype.
    kind = input.dtype if offsets is None else _core.promote_types(input.dtype, offsets.dtype)
    _check("embedding_bag", kind, weight, sparse)
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {type_name(weight.dtype)} does not equal "
            f"{type_name(per_sample_weights.dtype)}"
        )
    if weight.dtype.is_complex:
        raise RuntimeError(
            f"Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {type_name(weight.dtype)} instead (while checking arguments for embedding_bag)"
        )
    count = weight.size(0)
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-count} through {count - 1}, but got "
                f"{padding_idx}"
            )
        padding_idx %= count
    index = input.reshape(-1).to(_core.int64)
    outside = (index < 0) | (index >= count)
    if bool(outside.any()):
        at = int(outside.to(_core.int64).argmax())
        raise RuntimeError(
            f"Index {at} of input takes value {int(index[at])} which is not in the valid range [0, {count})"
        )
    if max_norm is not None:
        _limit_norms(weight, index, max_norm, norm_type)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if mode == "max":
        return _maxima(index, weight, starts, ends, padding_idx)
    if input.dim() == 2 and padding_idx is None and length > 0:
        # All bags have one length.
        rows = _rows(weight, index, None, scale_grad_by_freq)
        if factors is not None:
            rows = rows * factors.unsqueeze(1)
        rows = rows.reshape(bags, length, weight.size(1))
        return rows.sum(1) if mode == "sum" else rows.mean(1)
    return _sums(index, weight, starts, ends, padding_idx, mode, factors, scale_grad_by_freq)


def _sums(
    index: Tensor,
    weight: Tensor,
    starts: Tensor,
    ends: Tensor,
    padding: int | None,
    mode: str,
    factors: Tensor | None,
    scale_by_freq: bool,
) -> Tensor:
    bags, width = starts.size(0), weight.size(1)
    total = int(ends[-1]) if bags else 0
    bag = _core.arange(bags, device=index.device).repeat_interleave(ends - starts)
    index = index[:total]
    if factors is not None:
        factors = factors[:total]
    if padding is not None:
        counting = (index != padding).nonzero().reshape(-1)
        index, bag = index.index_select(0, counting), bag.index_select(0, counting)
        if factors is not None:
            factors = factors.index_select(0, counting)
    rows = _rows(weight, index, None, scale_by_freq)
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    zeros = _core.zeros((bags, width), dtype=rows.dtype, device=rows.device)
    result = zeros.index_add(0, bag, rows)
    if mode == "mean":
        sizes = _core.zeros(bags, dtype=rows.dtype, device=rows.device)
        sizes = sizes.index_add(0, bag, _core.ones_like(bag, dtype=rows.dtype))
        result = result / sizes.clamp(min=1).unsqueeze(1)
    return result


def _maxima(index: Tensor, weight: Tensor, starts: Tensor, ends: Tensor, padding: int | None) -> Tensor:
    bags, width = starts.size(0), weight.size(1)
    longest = int((ends - starts).max()) if bags else 0
    if longest == 0:
        return weight[:1].sum() * 0 + _core.zeros((bags, width), dtype=weight.dtype, device=weight.device)
    place = starts.unsqueeze(1) + _core.arange(longest, device=index.device)
    inside = place < ends.unsqueeze(1)
    padded = index[place.clamp(max=index.size(0) - 1)]
    if padding is not None:
        inside = inside & (padded != padding)
    rows = weight.index_select(0, padded.reshape(-1)).reshape(bags, longest, width)
    lowest = _core.where(inside.unsqueeze(2), rows, -float("inf"))
    # The first of equal ones gets the gradient.
    place = lowest.detach().argmax(1, keepdim=True)
    largest = rows.gather(1, place).squeeze(1)
    return _core.where(inside.any(1).unsqueeze(1), largest, 0.0)
