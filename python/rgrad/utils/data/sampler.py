"""Samplers: in which order the numbers of samples come."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from ... import _core
from ..._core import Tensor

T = TypeVar("T", covariant=True)

# Up to so many numbers are drawn when an iteration begins. More are drawn in parts, when it gets to them: there may be
# more than memory holds.
_AT_ONCE = 1 << 20


def _own(generator: Any) -> Any:
    """A generator for what is drawn little by little, while the program draws other numbers."""
    if generator is not None:
        return generator
    return _core.Generator().manual_seed(int(_core.randint(0, 2**63 - 1, (), device="cpu").item()))


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

    def _parts(self) -> Iterator[Tensor]:
        """The numbers of one iteration, as int64 tensors one after the other.

        Raises:
            ValueError: There is nothing to draw from.
        """
        n, count = len(self.data_source), self.num_samples
        if n == 0 and count > 0:
            raise ValueError("RandomSampler: cannot draw from an empty data source")
        if count <= (_AT_ONCE if self.replacement else max(n, _AT_ONCE)):
            return iter([self._drawn(n, count, self.generator)])
        generator = _own(self.generator)
        # Without replacement a part has every number as often as another one.
        size = _AT_ONCE if self.replacement else n * max(1, _AT_ONCE // n)
        return (self._drawn(n, min(size, count - start), generator) for start in range(0, count, size))

    def _drawn(self, n: int, count: int, generator: Any) -> Tensor:
        if self.replacement:
            return _core.randint(0, max(n, 1), (count,), generator=generator, device="cpu")
        rounds = [_core.randperm(n, generator=generator, device="cpu") for _ in range(max(1, -(-count // max(n, 1))))]
        order = rounds[0] if len(rounds) == 1 else _core.cat(rounds)
        return order if len(order) == count else order[:count]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(part.tolist() for part in self._parts())

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
        count = self.num_samples
        if not self.replacement or count <= _AT_ONCE:
            return iter(self._drawn(count, self.generator).tolist())
        generator = _own(self.generator)
        # What is wrong with the weights is an error now.
        first = self._drawn(_AT_ONCE, generator)
        rest = (self._drawn(min(_AT_ONCE, count - n), generator) for n in range(_AT_ONCE, count, _AT_ONCE))
        return chain.from_iterable(part.tolist() for part in chain([first], rest))

    def _drawn(self, count: int, generator: Any) -> Tensor:
        return _core.multinomial(self.weights, count, self.replacement, generator=generator)

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
