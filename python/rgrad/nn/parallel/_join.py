"""Processes with unequal numbers of batches: who has none left takes part in the others' sums with zeros."""

from __future__ import annotations

from ... import _core
from ...autograd.grad_mode import no_grad
from ...distributed import ProcessGroup, all_reduce
from ._reducer import Reducer


class Join:
    """What the calls of a wrapped module do while not all processes have as many batches.

    Args:
        group: The processes.
        divide_by_all: Whether means are over all processes, or over those that still have batches.
        throw: Whether to raise in all processes as soon as one has no more batches.
    """

    def __init__(self, group: ProcessGroup, divide_by_all: bool, throw: bool) -> None:
        self.group, self.divide_by_all, self.throw = group, divide_by_all, throw

    def _count(self, here: bool) -> int:
        """How many processes still have a batch."""
        count = _core.tensor([int(here)], device="cpu")
        all_reduce(count, group=self.group)
        return int(count.item())

    def begin(self, reducer: Reducer) -> None:
        """This process has a batch.

        Raises:
            RuntimeError: Another one has none, and that is an error.
        """
        active = self._count(True)
        if active < self.group.size() and self.throw:
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        reducer.divide_by = self.group.size() if self.divide_by_all else active

    def follow(self, reducer: Reducer) -> int:
        """This process has no more batches. One step of the others, if there are any.

        Returns:
            How many still have a batch.

        Raises:
            RuntimeError: That is an error.
        """
        active = self._count(False)
        if active and self.throw:
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return active

    def sum_zeros(self, reducer: Reducer) -> None:
        """Take part in the sums of one backward pass."""
        with no_grad():
            works = []
            for number, bucket in enumerate(reducer.buckets):
                flat = bucket.memory()
                works.append(reducer.sum(flat, f"bucket {number}"))
            for work in works:
                work.wait()
            if reducer.unused or reducer.static:
                reducer.unused_everywhere()

    def last(self, steps: int) -> int:
        """The place of a process that has had the most batches, the first of them."""
        counts = _core.zeros([self.group.size()], dtype=_core.int64, device="cpu")
        counts[self.group.rank()] = steps
        all_reduce(counts, group=self.group)
        return int(counts.argmax().item())
