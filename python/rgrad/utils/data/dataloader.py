"""``DataLoader``: batches of a dataset, made in this process or in workers."""

import multiprocessing
import multiprocessing.context
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _core
from ._fetch import Source
from ._parallel import ParallelIterator
from ._worker import Job
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class _Endless:
    """Says how many samples of a stream are wanted: always one more."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class _Batches(map):  # type: ignore[type-arg]
    """The batches of one pass, as fast as a ``map``, with a length."""

    plan: Any

    def __len__(self) -> int:
        return len(self.plan)


class DataLoader:
    """Iterates over a dataset in batches.

    Args:
        dataset: A map-style dataset (length and items) or an :class:`IterableDataset`.
        batch_size: Samples per batch; None gives samples one by one.
        shuffle: A new random order in every epoch.
        sampler: Gives the numbers of samples; excludes ``shuffle``.
        batch_sampler: Gives lists of numbers; excludes ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: How many processes make batches, on the CPU; with 0 this one does.
        collate_fn: Joins a list of samples; default is :func:`default_collate`.
        pin_memory: Accepted for PyTorch's sake; it has no effect.
        drop_last: Leave out the last batch if it is not full.
        timeout: The most seconds to wait for a batch of workers; 0 for any time.
        worker_init_fn: Called in each worker with its number, after seeding and before loading.
        multiprocessing_context: A context of ``multiprocessing``, or the name of a start method. None is Python's
            default: ``"fork"`` on Linux before 3.14, of which Python warns (since 3.12) where the process has threads
            of its own.
        generator: Source of the random order and of the workers' seeds.
        prefetch_factor: How many batches each worker makes ahead; None is 2.
        persistent_workers: Whether workers stay for the next epoch.
        pin_memory_device: Accepted for PyTorch's sake; it has no effect.
        in_order: Whether batches of workers come in the order of the sampler, or as soon as they are made.

    Raises:
        ValueError: Arguments exclude each other or are out of range; or one that must not change is set afterwards.
    """

    _iterator: ParallelIterator | None
    _initialized = False

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
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
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
        if sampler is None:
            if iterable:
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterator = None
        self._told_length: int | None = None
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self._initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that starts workers; None for the default one."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _source(self) -> Source:
        return Source(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            if self.timeout != 0:
                raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
            return self._iterate()
        if self.persistent_workers and self._iterator is not None:
            self._iterator._reset(self)
            return self._iterator
        self.check_worker_number_rationality()
        seed = int(_core.randint(0, 2**63 - 1, (), generator=self.generator, device="cpu").item())
        found = ParallelIterator(self, Job(self._source(), seed, self.num_workers, self.worker_init_fn))
        if self.persistent_workers:
            self._iterator = found
        return found

    def _forget(self, iterator: ParallelIterator) -> None:
        if self._iterator is iterator:
            self._iterator = None

    def _iterate(self) -> Iterator[Any]:
        source = self._source()
        fetch = source.fetcher()
        indices = self._index_iterator()
        if not source.is_stream:
            # What most programs run: nothing but this.
            batches = _Batches(fetch, indices)
            batches.plan = self._index_sampler
            return batches
        return self._iterate_stream(fetch, indices, self._told_length)

    def _iterate_stream(self, fetch: Callable[[Any], Any], indices: Iterator[Any], told: int | None) -> Iterator[Any]:
        for number, index in enumerate(indices, 1):
            try:
                batch = fetch(index)
            except StopIteration:
                return
            self._count_samples(number, told)
            yield batch

    def _index_iterator(self) -> Iterator[Any]:
        """What each batch is to be made of: a list of numbers, or a range or a tensor where the fetcher takes these."""
        plan, source = self._index_sampler, self._source()
        if type(plan) is not BatchSampler or not source.takes_tensors:
            return iter(plan)
        sampler: Any = plan.sampler
        if type(sampler) is SequentialSampler and source.takes_ranges:
            return _ranges(len(sampler), plan.batch_size, plan.drop_last)
        if type(sampler) is RandomSampler:
            return _parts(sampler, plan.batch_size, plan.drop_last)
        return iter(plan)

    def _count_samples(self, yielded: int, told: int | None) -> None:
        """Warn of more samples than the length that was told before the pass."""
        if told is not None and yielded > told:
            message = (
                f"Length of IterableDataset {self.dataset} was reported to be {told}(when accessing len(dataloader)), "
                f"but {yielded} samples have been fetched. "
            )
            if self.num_workers > 0:
                message += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker."
                )
            warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)  # type: ignore[arg-type]
            self._told_length = n
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._index_sampler)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than this process may use processors."""
        if not self.num_workers:
            return
        has_affinity = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
        if most is not None and self.num_workers <= most:
            return
        hint = "" if has_affinity else " (`cpuset` is not taken into account)"
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
            f"worker in current system is {most}{hint}, which is smaller than what this DataLoader is going to create. "
            "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
            "the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _ranges(total: int, size: int, drop_last: bool) -> Iterator[range]:
    for start in range(0, total - total % size if drop_last else total, size):
        yield range(start, min(start + size, total))


def _parts(sampler: RandomSampler, size: int, drop_last: bool) -> Iterator[Any]:
    left = None
    for part in sampler._parts():
        if left is not None:
            part = _core.cat([left, part])
        whole = len(part) // size * size
        for start in range(0, whole, size):
            yield part[start : start + size]
        left = part[whole:] if whole < len(part) else None
    if left is not None and not drop_last:
        yield left


# PyTorch's private names of iterators; those in this process are generators.
_BaseDataLoaderIter = _MultiProcessingDataLoaderIter = ParallelIterator
