"""Sums in one fixed binary tree, whose leaves are virtual shards. The same bits come out for any number of processes.

Sums of neighbours are summed again: ``((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))``. A process has neighbouring leaves
and sums them itself; the processes go on with what they have. MPI moves the parts and adds nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._buffers import bytes_of, room_for
from ._mpi import Link

_TAG = 32003


def fits(processes: int, leaves: int) -> bool:
    """Whether each process can have a whole part of the tree."""
    return processes & (processes - 1) == 0 and leaves & (leaves - 1) == 0 and processes <= leaves


def sum_of(leaves: Sequence[Tensor | None]) -> Tensor | None:
    """The sum of neighbouring leaves, of which some may be missing."""
    level = list(leaves)
    while len(level) > 1:
        pairs = zip(level[::2], [*level[1::2], *([None] if len(level) % 2 else [])], strict=True)
        level = [a if b is None else b if a is None else a + b for a, b in pairs]
    return level[0]


def sum_of_processes(link: Link, flat: Tensor) -> Generator[Any, None, None]:
    """Sum in place what the processes have; their number is a power of two.

    At each step two processes exchange halves of what they have, and each sums one; then they exchange the sums. Each
    process sends and receives ``2 * (n - 1) / n`` times the elements, which is the least that there can be.
    """
    steps: list[tuple[int, int, int, int]] = []
    low, high, distance = 0, flat.numel(), 1
    while distance < link.size:
        middle = (low + high) // 2
        steps.append((distance, low, middle, high))
        lower = not link.rank & distance
        kept, given = (flat[low:middle], flat[middle:high]) if lower else (flat[middle:high], flat[low:middle])
        got = room_for(kept.numel(), flat.dtype)
        yield link.exchange(bytes_of(given), bytes_of(got), link.rank ^ distance, _TAG)
        # The sum of a and b is that of b and a, so it does not matter who is first.
        _core.add(kept, got, out=kept)
        low, high = (low, middle) if lower else (middle, high)
        distance *= 2
    for distance, low, middle, high in reversed(steps):
        lower = not link.rank & distance
        kept, given = (flat[middle:high], flat[low:middle]) if lower else (flat[low:middle], flat[middle:high])
        yield link.exchange(bytes_of(given), bytes_of(kept), link.rank ^ distance, _TAG)
