"""The sampler of one of several processes that train together."""

import math
from collections.abc import Iterator
from typing import Any

from ... import _core, distributed
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """The share of one process: every ``num_replicas``-th number of a common order.

    Args:
        dataset: An object with a length.
        num_replicas: How many processes there are.
        rank: Which of them this one is.
        shuffle: A random order, which is the same in all processes.
        seed: What the order depends on, with the epoch.
        drop_last: Leave out what does not divide evenly; otherwise the first numbers come twice.

    Raises:
        RuntimeError: ``num_replicas`` or ``rank`` is not given, and there is no process group to ask.
        ValueError: ``rank`` is out of range.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if distributed.is_initialized():
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available; give num_replicas and rank, or make a process group"
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        total = len(dataset)
        self.num_samples = total // num_replicas if drop_last else math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        total = len(self.dataset)
        if total == 0:
            return iter(())
        # The order begins anew where it ends.
        mine = (number % total for number in range(self.rank, self.total_size, self.num_replicas))
        if not self.shuffle:
            return mine
        generator = _core.Generator().manual_seed(self.seed + self.epoch)
        order = _core.randperm(total, generator=generator, device="cpu").tolist()
        return (order[place] for place in mine)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch is next: each has an order of its own."""
        self.epoch = epoch
