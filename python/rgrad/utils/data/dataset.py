"""Datasets: what has a length and items by number."""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ... import _core
from ..._core import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Base class: subclasses define ``__getitem__`` and mostly ``__len__``.

    ``__getitems__(indices)``, if defined, fetches a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(
            f"Subclasses of Dataset should implement __getitem__ ({type(self).__name__} does not)."
        )

    def __add__(self, other: "Dataset[Any]") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Base class of datasets that are only iterated: subclasses define ``__iter__``.

    Raises:
        TypeError: A class without ``__iter__`` is called.
    """

    def __add__(self, other: Dataset[Any]) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self._streams()))


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples along dimension 0 of tensors of equal length.

    A :class:`DataLoader` with the default collation takes whole batches from it by index, without touching samples one
    by one.

    Raises:
        AssertionError: The lengths differ.
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"TensorDataset: argument {i} is {type(tensor).__name__}, expected Tensor")
        if not tensors:
            raise ValueError("TensorDataset: got no tensors, expected one or more")
        if any(tensor.dim() == 0 or tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError(f"Size mismatch between tensors: got shapes {[tuple(t.shape) for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Samples of several datasets side by side: tuples, or dicts if they are given by keyword."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        sizes = {len(dataset) for dataset in (kwargs.values() if kwargs else args)}
        if len(sizes) != 1:
            raise ValueError(f"Size mismatch between datasets: got lengths {sorted(sizes)}")
        self._length = sizes.pop()

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A batch, through each dataset's own ``__getitems__`` if it has one.

        Raises:
            ValueError: A dataset gives another number of samples.
        """
        columns = []
        for dataset in self.datasets.values() if isinstance(self.datasets, dict) else self.datasets:
            fetch = getattr(dataset, "__getitems__", None)
            items = [dataset[i] for i in indices] if fetch is None else fetch(indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        rows = zip(*columns, strict=True)
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < -len(self):
            raise ValueError(f"absolute value of index should not exceed dataset length: got {index} for {len(self)}")
        if index >= len(self):
            # IndexError, for this is what ends a loop over an object without __iter__.
            raise IndexError(f"ConcatDataset index {index} is out of range for {len(self)} samples")
        index %= len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class Subset(Dataset[Any]):
    """Those samples of a dataset whose numbers are given."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and "
                "overriding __getitem__, you must also override __getitems__ to ensure DataLoader works correctly with "
                "your custom logic."
            )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A batch, through the dataset's own ``__getitems__`` if it has one."""
        own = [self.indices[i] for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        batch: list[Any] = [self.dataset[i] for i in own] if fetch is None else fetch(own)
        return batch

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Split at random into parts of the given lengths, or of given fractions of the whole that sum to 1.

    What rounding of fractions leaves over goes to the parts in turn.

    Raises:
        ValueError: The lengths do not sum to the dataset's, or a fraction is outside [0, 1].
    """
    total = len(dataset)
    sizes = list(lengths)
    if abs(sum(sizes) - 1) < 1e-9 and sum(sizes) <= 1 + 1e-9 and any(isinstance(size, float) for size in sizes):
        for i, part in enumerate(sizes):
            if not 0 <= part <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts = [int(total * part) for part in sizes]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    else:
        counts = [int(size) for size in sizes]
        if any(count != size for count, size in zip(counts, sizes, strict=True)):
            raise ValueError(
                "Sum of input lengths does not equal the length of the input dataset! "
                f"Got {list(lengths)}, expected whole numbers or fractions of 1"
            )
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order: list[int] = _core.randperm(total, generator=generator, device="cpu").tolist()
    return [
        Subset(dataset, order[end - count : end])
        for count, end in zip(counts, itertools.accumulate(counts), strict=True)
    ]
