"""``DataLoader``: batches of a dataset, in this process."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _core
from ..._core import Tensor
from .collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


def _copied(view: Tensor) -> Tensor:
    return view.clone() if view.is_contiguous() else view.contiguous()


class DataLoader:
    """Iterates over a dataset in batches.

    Args:
        dataset: A map-style dataset (length and items) or an :class:`IterableDataset`.
        batch_size: Samples per batch; None gives samples one by one.
        shuffle: A new random order in every epoch.
        sampler: Gives the numbers of samples; excludes ``shuffle``.
        batch_sampler: Gives lists of numbers; excludes ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: More than 0 warns: this loader works in the calling process.
        collate_fn: Joins a list of samples; default is :func:`default_collate`.
        pin_memory: Accepted for PyTorch's sake; it has no effect.
        timeout: Accepted for PyTorch's sake; it has no effect.
        worker_init_fn: Accepted for PyTorch's sake; it has no effect.
        prefetch_factor: Accepted for PyTorch's sake; it has no effect.
        persistent_workers: Accepted for PyTorch's sake; it has no effect.
        multiprocessing_context: Accepted for PyTorch's sake; it has no effect.
        pin_memory_device: Accepted for PyTorch's sake; it has no effect.
        in_order: Accepted for PyTorch's sake; it has no effect.
        drop_last: Leave out the last batch if it is not full.
        generator: Source of the random order.

    Raises:
        ValueError: Arguments exclude each other or are out of range.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if num_workers > 0:
            warnings.warn(
                f"DataLoader: got num_workers={num_workers}, but this version loads in the calling process; "
                "the batches are the same",
                UserWarning,
                stacklevel=2,
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            if shuffle:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            if sampler is not None or batch_sampler is not None:
                raise ValueError("DataLoader with IterableDataset: expected unspecified sampler and batch_sampler")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if not iterable:
            if sampler is None:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            if batch_size is not None and batch_sampler is None:
                batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif batch_size is not None:
            batch_sampler = BatchSampler((), batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.generator = generator
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            return self._iterate_stream()
        if self.batch_sampler is None:
            return self._iterate_samples()
        if self.collate_fn is default_collate:
            data, indices = self.dataset, None
            if type(data) is Subset:
                data, indices = data.dataset, data.indices
            if type(data) is TensorDataset and (indices is None or type(indices) is list):
                return self._iterate_tensors(data.tensors, indices)
        return self._iterate_batches(self.batch_sampler)

    def _iterate_tensors(self, tensors: tuple[Tensor, ...], subset: list[int] | None) -> Iterator[Any]:
        # The result is what collating samples would give: new tensors, in a list.
        plan = self.batch_sampler
        if subset is None and type(plan) is BatchSampler and type(plan.sampler) is SequentialSampler:
            total, size = len(plan.sampler), plan.batch_size
            for start in range(0, total - total % size if plan.drop_last else total, size):
                yield [_copied(tensor[start : start + size]) for tensor in tensors]
            return
        table = None if subset is None else _core.tensor(subset, dtype=_core.int64, device="cpu")
        for chosen in self._index_tensors():
            # Not index_select: samplers and subsets of users may count from the end.
            rows = chosen if table is None else table[chosen]
            yield [tensor[rows.to(tensor.device)] for tensor in tensors]

    def _index_tensors(self) -> Iterator[Tensor]:
        """The numbers of each batch as an int64 tensor."""
        plan = self.batch_sampler
        if type(plan) is BatchSampler and type(plan.sampler) in (RandomSampler, SequentialSampler):
            sampler: Any = plan.sampler
            size = plan.batch_size
            order = sampler._order() if type(sampler) is RandomSampler else _core.arange(len(sampler), device="cpu")
            total = order.numel()
            for start in range(0, total - total % size if plan.drop_last else total, size):
                yield order[start : start + size]
        else:
            for indices in plan or ():
                yield _core.as_tensor(indices, dtype=_core.int64, device="cpu")

    def _iterate_batches(self, plan: Iterable[Any]) -> Iterator[Any]:
        fetch = getattr(self.dataset, "__getitems__", None)
        for indices in plan:
            yield self.collate_fn([self.dataset[i] for i in indices] if fetch is None else fetch(indices))

    def _iterate_samples(self) -> Iterator[Any]:
        for index in self.sampler or ():
            yield self.collate_fn(self.dataset[index])

    def _iterate_stream(self) -> Iterator[Any]:
        if self.batch_size is None:
            for sample in self.dataset:
                yield self.collate_fn(sample)
            return
        batch: list[Any] = []
        for sample in self.dataset:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
