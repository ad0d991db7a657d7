"""Taking batches out of a dataset: what the loader does in its own process, and a worker in another one."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from .collate import default_collate
from .dataset import IterableDataset, Subset, TensorDataset


class Source(NamedTuple):
    """A dataset and how its samples become batches."""

    dataset: Any
    #: Whether samples are joined; otherwise each goes through ``collate_fn`` alone.
    batches: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    @property
    def is_stream(self) -> bool:
        """Whether samples only come in the order of the dataset."""
        return isinstance(self.dataset, IterableDataset)

    def fetcher(self) -> Callable[[Any], Any]:
        """A function that gives the batch of an index, of a list of indices, or the next ones of a stream.

        That of a stream raises StopIteration at its end.
        """
        if self.is_stream:
            return _stream_fetcher(self)
        tensors = self._tensors()
        if tensors is not None:
            return tensors
        dataset, join = self.dataset, self.collate_fn
        if not self.batches:
            return lambda index: join(dataset[index])
        many = getattr(dataset, "__getitems__", None)
        if many is not None:
            return lambda indices: join(many(indices))
        return lambda indices: join([dataset[i] for i in indices])

    def _tensors(self) -> Callable[[Any], Any] | None:
        """Whole batches at once, where collating samples would give the same."""
        if not self.batches or self.collate_fn is not default_collate:
            return None
        data, indices = self.dataset, None
        if type(data) is Subset:
            data, indices = data.dataset, data.indices
        if type(data) is not TensorDataset or not (indices is None or type(indices) is list):
            return None
        tensors: tuple[Tensor, ...] = data.tensors
        table = None if indices is None else _core.tensor(indices, dtype=_core.int64, device="cpu")

        def fetch(chosen: Any) -> list[Tensor]:
            if isinstance(chosen, range):
                return [_copied(tensor[chosen.start : chosen.stop]) for tensor in tensors]
            wanted = _core.as_tensor(chosen, dtype=_core.int64, device="cpu")
            # Not index_select: samplers and subsets of users may count from the end.
            rows = wanted if table is None else table[wanted]
            return [tensor[rows.to(tensor.device)] for tensor in tensors]

        return fetch

    @property
    def takes_tensors(self) -> bool:
        """Whether indices may come as a range or a tensor."""
        return not self.is_stream and self._tensors() is not None

    @property
    def takes_ranges(self) -> bool:
        """Whether indices may come as a range."""
        return self.takes_tensors and type(self.dataset) is TensorDataset


def _copied(view: Tensor) -> Tensor:
    return view.clone() if view.is_contiguous() else view.contiguous()


def _stream_fetcher(source: Source) -> Callable[[Any], Any]:
    samples: Iterator[Any] = iter(source.dataset)
    ended = False

    def one(_: Any) -> Any:
        return source.collate_fn(next(samples))

    def batch(indices: Any) -> Any:
        nonlocal ended
        found: list[Any] = []
        if not ended:
            for _ in indices:
                try:
                    found.append(next(samples))
                except StopIteration:
                    ended = True
                    break
        if not found or (source.drop_last and len(found) < len(indices)):
            raise StopIteration
        return source.collate_fn(found)

    return batch if source.batches else one
