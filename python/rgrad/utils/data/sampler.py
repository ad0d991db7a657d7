"""Samplers: in which order the numbers of samples come."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ... import _core
from ..._core import Tensor

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Base class: subclasses define ``__iter__`` and mostly ``__len__``."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A random order, drawn anew by every iteration.

    Args:
        data_source: An object with a length.
        replacement: Draw each number independently, so that some come more than once.
        num_samples: How many to draw; default is the length.
        generator: Source of randomness; default is the global one, set by ``manual_seed``.

    Raises:
        TypeError: ``replacement`` is no bool.
        ValueError: ``num_samples`` is no positive int, or there is nothing to draw from.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        count = self.num_samples
        if isinstance(count, bool) or not isinstance(count, int) or count <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={count}")

    @property
    def num_samples(self) -> int:
        """How many numbers one iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _order(self) -> Tensor:
        """The numbers of one iteration as an int64 tensor."""
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            if n == 0 and count > 0:
                raise ValueError("RandomSampler: cannot draw from an empty data source")
            return _core.randint(0, max(n, 1), (count,), generator=self.generator, device="cpu")
        if count <= n:
            order = _core.randperm(n, generator=self.generator, device="cpu")
            return order if count == n else order[:count]
        if n == 0:
            raise ValueError("RandomSampler: cannot draw from an empty data source")
        rounds = [_core.randperm(n, generator=self.generator, device="cpu") for _ in range(-(-count // n))]
        return _core.cat(rounds)[:count]

    def __iter__(self) -> Iterator[int]:
        return iter(self._order().tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in _core.randperm(len(self.indices), generator=self.generator, device="cpu").tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers drawn with probability in proportion to ``weights`` (not negative, need not sum to 1).

    Raises:
        ValueError: The weights are not one-dimensional, ``num_samples`` is no positive int, or ``replacement`` no bool.
        RuntimeError: When numbers are drawn: weights are negative, not finite or all zero, or there are too few of
            them for ``num_samples`` without replacement.
    """

    def __init__(
        self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        given = _core.as_tensor(weights, dtype=_core.float64, device="cpu")
        if given.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(given.shape)}")
        self.weights = given
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = _core.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` numbers from a sampler; the last may be shorter, or is dropped if ``drop_last``.

    Raises:
        ValueError: An argument has the wrong type or is not positive.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n: int = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
