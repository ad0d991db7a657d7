"""Parts of tensors: what a process has of one, and where two of them overlap."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from ..._tensor.size import Size
from ..tensor._dtensor import DTensor, plain


def own(value: Tensor) -> tuple[Tensor, Size]:
    """This process's part of a tensor, and where it begins in the whole one.

    Raises:
        RuntimeError: The tensor is a reduction that has not been made.
    """
    if not isinstance(value, DTensor):
        return value.detach(), Size([0] * value.dim())
    if value._spec.is_partial():
        raise RuntimeError(
            f"distributed.checkpoint: a tensor with {value.placements} is not computed yet; use .redistribute()"
        )
    return plain(value).detach(), Size(value._spec.local()[1])


def overlap(first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """The elements that two parts share, as places in each; None if there are none.

    Args:
        first: Where the part begins, and its shape.
        second: Likewise.
    """
    here: list[slice] = []
    there: list[slice] = []
    for a, size, b, other in zip(*first, *second, strict=True):
        start, end = max(a, b), min(a + size, b + other)
        if start >= end:
            return None
        here.append(slice(start - a, end - a))
        there.append(slice(start - b, end - b))
    return tuple(here), tuple(there)
