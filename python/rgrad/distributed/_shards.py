"""Tensors cut along a dimension, one piece for each process of a group."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ._collectives import all_gather_into_tensor
from ._group import ProcessGroup


def share(size: int, parts: int) -> int:
    """How many rows each piece has at most: all but the last ones have so many."""
    return -(-size // parts)


def bounds(size: int, parts: int, index: int) -> tuple[int, int]:
    """Where a piece begins and ends, as those of ``chunk`` do; later pieces may be shorter, or empty."""
    each = share(size, parts)
    return min(index * each, size), min((index + 1) * each, size)


def piece(tensor: Tensor, dim: int, parts: int, index: int) -> Tensor:
    """A view of a piece."""
    start, end = bounds(tensor.shape[dim], parts, index)
    return tensor.narrow(dim, start, end - start)


def padded(tensor: Tensor, rows: int) -> Tensor:
    """The elements one after the other, with zeros until there are so many rows along the first dimension."""
    missing = rows - tensor.shape[0]
    plain = tensor.detach().contiguous()
    if missing == 0:
        return plain
    return _core.cat([plain, plain.new_zeros([missing, *tensor.shape[1:]])])


def gathered(part: Tensor, dim: int, size: int, group: ProcessGroup) -> Tensor:
    """The whole tensor of the pieces of all members.

    Args:
        part: This process's.
        dim: Where it was cut.
        size: The size of that dimension in the whole tensor.
        group: The processes, in the order of the pieces.
    """
    rows = share(size, group.size())
    given = padded(part.movedim(dim, 0), rows)
    room = given.new_empty([rows * group.size(), *given.shape[1:]])
    all_gather_into_tensor(room, given, group)
    return room[:size].movedim(0, dim).contiguous()
