"""What stands in the place of masked elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.info import iinfo

Dims = int | Sequence[int] | None
SMALL = (_core.bool, _core.uint8, _core.int8, _core.int16, _core.int32)


def dims_of(dim: Any, rank: int) -> tuple[int, ...]:
    """The dimensions that are reduced, in order: all of them for None and for none."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(rank))
    rank = max(rank, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        found.append(d % rank)
    return tuple(sorted(found))


def fitted(mask: Tensor, input: Tensor) -> Tensor:
    """The mask in the input's shape, as truth values."""
    if mask.shape != input.shape:
        if mask.dim() > input.dim():
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): a mask of "
                f"shape {tuple(mask.shape)} for an input of shape {tuple(input.shape)}"
            )
        mask = _core.broadcast_to(mask, input.shape)
    return mask.to(_core.bool)


def identity(name: str, input: Tensor, ord: float | None = None) -> Any:
    """The number that changes nothing in a reduction of such elements."""
    dtype = input.dtype
    if name in ("sum", "prod"):
        return int(name == "prod")
    if name == "norm":
        return math.inf if ord == -math.inf else 0
    if name == "median":
        return math.nan
    is_least = name in ("amin", "argmin")
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return math.inf if is_least else -math.inf
    if dtype == _core.uint8 or (dtype.is_signed and not dtype.is_complex):
        limits = iinfo(dtype)
        return limits.max if is_least else limits.min
    raise NotImplementedError(f"identity of {name} on {dtype} input")


def filled(name: str, input: Tensor, mask: Tensor | None, ord: float | None = None) -> Tensor:
    """The input with the identity of a reduction in place of masked elements."""
    if mask is None:
        return input
    value = _core.full((), identity(name, input, ord), dtype=input.dtype, device=input.device)
    return _core.where(fitted(mask, input), input, value)


def sum_dtype(input: Tensor, dtype: Any) -> Any:
    if dtype is None:
        return _core.int64 if input.dtype in SMALL else input.dtype
    return dtype
