"""Datasets, samplers, collation and the loader."""

from __future__ import annotations

from collections import Counter, namedtuple

import numpy as np
import pytest

import rgrad
from rgrad.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


class Squares(Dataset):
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i):
        if not -self.n <= i < self.n:
            raise IndexError(i)
        return {"x": rgrad.tensor([float(i)]), "y": i * i, "name": f"n{i}"}


def table(n: int = 10) -> TensorDataset:
    return TensorDataset(rgrad.arange(2 * n).reshape(n, 2).float(), rgrad.arange(n))


# ------------------------------------------------------------------------------------------------------ datasets


def test_tensor_dataset() -> None:
    data = table()
    assert len(data) == 10
    x, y = data[3]
    assert x.tolist() == [6, 7]
    assert y.item() == 3
    assert data[2:4][1].tolist() == [2, 3]
    assert data[-1][1].item() == 9
    for wrong in ((rgrad.ones(2), rgrad.ones(3)), (rgrad.tensor(1.0),)):
        with pytest.raises(AssertionError, match="Size mismatch between tensors"):
            TensorDataset(*wrong)
    with pytest.raises(ValueError, match="got no tensors"):
        TensorDataset()
    with pytest.raises(TypeError, match="argument 0 is list, expected Tensor"):
        TensorDataset([1, 2])


def test_combined_datasets() -> None:
    both = table(3) + table(2)
    assert isinstance(both, ConcatDataset)
    assert [item[1].item() for item in both] == [0, 1, 2, 0, 1]
    assert both[-1][1].item() == 1
    with pytest.raises(ValueError, match="index should not exceed dataset length"):
        both[-6]
    with pytest.raises(IndexError):
        both[5]
    side = StackDataset(a=table(3), b=Squares(3))
    assert side[1]["b"]["y"] == 1
    assert StackDataset(table(3), Squares(3))[2][1]["y"] == 4
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset(table(3), table(2))
    part = Subset(Squares(5), [4, 2])
    assert [item["y"] for item in DataLoader(part, batch_size=None)] == [16, 4]
    with pytest.raises(AssertionError, match="empty iterable"):
        ConcatDataset([])


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [6, 2, 2]), ([1.0, 0.0], [10, 0])]
)
def test_random_split(lengths, sizes) -> None:
    parts = random_split(table(), lengths, generator=rgrad.Generator().manual_seed(1))
    assert [len(part) for part in parts] == sizes
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    again = random_split(table(), lengths, generator=rgrad.Generator().manual_seed(1))
    assert [part.indices for part in again] == [part.indices for part in parts]


def test_random_split_refuses() -> None:
    for wrong in ([5, 4], [0.5, 0.4], [11, -1, 1]):
        with pytest.raises(ValueError, match="Sum of input lengths|whole numbers"):
            random_split(table(), wrong)
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(table(), [1.5, -0.5])


def test_base_classes_say_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError, match="abstract method.*__iter__"):
        iter(IterableDataset())
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


# ------------------------------------------------------------------------------------------------------ samplers


def test_orders() -> None:
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    sampler = RandomSampler(range(50), generator=rgrad.Generator().manual_seed(3))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert list(RandomSampler(range(50), generator=rgrad.Generator().manual_seed(3))) == first
    rgrad.manual_seed(5)
    one = list(RandomSampler(range(50)))
    rgrad.manual_seed(5)
    assert list(RandomSampler(range(50))) == one
    assert Counter(RandomSampler(range(4), num_samples=10)).total() == 10
    assert set(Counter(RandomSampler(range(4), num_samples=8)).values()) == {2}
    repeated = list(RandomSampler(range(3), replacement=True, num_samples=100))
    assert set(repeated) == {0, 1, 2}
    assert sorted(SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    assert len(RandomSampler(range(3), num_samples=7)) == 7
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        RandomSampler([])
    for wrong in ({"replacement": 1}, {"num_samples": -1}, {"num_samples": 1.5}):
        with pytest.raises((TypeError, ValueError), match=r"should be a"):
            RandomSampler(range(3), **wrong)


def test_weighted_orders() -> None:
    rgrad.manual_seed(0)
    counts = Counter(WeightedRandomSampler([1.0, 0.0, 3.0], 8000))
    assert counts[1] == 0
    assert counts[2] / 8000 == pytest.approx(0.75, abs=0.02)
    firsts = Counter(next(iter(WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False))) for _ in range(2000))
    assert firsts[2] / 2000 == pytest.approx(0.75, abs=0.04)
    assert sorted(WeightedRandomSampler(rgrad.tensor([1.0, 0.0, 3.0]), 2, replacement=False)) == [0, 2]
    for weights, count, options in (
        ([1.0, -1.0], 1, {}),
        ([0.0, 0.0], 1, {}),
        ([[1.0]], 1, {}),
        ([1.0], 0, {}),
        ([1.0, 0.0], 2, {"replacement": False}),
        ([float("nan")], 1, {}),
    ):
        with pytest.raises((ValueError, RuntimeError), match=r"should be|multinomial|probability tensor"):
            list(WeightedRandomSampler(weights, count, **options))


def test_batch_sampler() -> None:
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]
    for size, drop in ((0, False), (True, False), (2.0, False), (2, 1)):
        with pytest.raises(ValueError, match="should be a"):
            BatchSampler(range(5), size, drop)


# ------------------------------------------------------------------------------------------------------ collation


def test_collation() -> None:
    Point = namedtuple("Point", "a b")
    batch = default_collate([(Point(1, 2.5), {"t": rgrad.ones(2)}, "s", [1, b"x"])] * 2)
    assert isinstance(batch, list)
    assert isinstance(batch[0], Point)
    assert batch[0].a.dtype == rgrad.int64
    assert batch[0].b.dtype == rgrad.float64
    assert tuple(batch[1]["t"].shape) == (2, 2)
    assert batch[2] == ("s", "s")
    assert batch[3][1] == (b"x", b"x")
    assert default_collate([True, False]).dtype == rgrad.bool
    assert tuple(default_collate([np.zeros(3), np.ones(3)]).shape) == (2, 3)
    assert default_collate([np.float32(1), np.float32(2)]).dtype == rgrad.float32
    with pytest.raises(TypeError, match="found .*object"):
        default_collate([object()])
    with pytest.raises(TypeError, match="numpy arrays"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError):
        default_collate([rgrad.ones(1), rgrad.ones(2)])
    assert isinstance(default_convert({"a": (np.ones(2), "s")})["a"][0], rgrad.Tensor)


# ------------------------------------------------------------------------------------------------------ loaders


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("subset", [False, True])
def test_batches_of_tensors_are_those_of_samples(subset: bool, shuffle: bool, drop_last: bool) -> None:
    """The way that takes whole batches gives what joining samples gives."""

    def batches(collate):
        loader = DataLoader(
            Subset(table(20), [3, -1, *range(5, 13)]) if subset else table(),
            batch_size=4,
            shuffle=shuffle,
            drop_last=drop_last,
            collate_fn=collate,
            generator=rgrad.Generator().manual_seed(1),
        )
        assert len(loader) == (2 if drop_last else 3)
        return [[part.tolist() for part in batch] for batch in [*loader, *loader]], type(next(iter(loader)))

    fast, slow = batches(None), batches(lambda samples: default_collate(samples))
    assert fast == slow
    assert fast[1] is list


def test_batches_do_not_share_memory_with_the_dataset() -> None:
    data = table()
    x, _ = next(iter(DataLoader(data, batch_size=10)))
    x.zero_()
    assert data.tensors[0].sum().item() > 0


def test_samplers_of_users() -> None:
    loader = DataLoader(table(), batch_sampler=[[0, -1], [2]])
    assert [batch[1].tolist() for batch in loader] == [[0, 9], [2]]
    assert len(loader) == 2
    loader = DataLoader(table(), batch_size=2, sampler=[3, 1, -1])
    assert [batch[1].tolist() for batch in loader] == [[3, 1], [9]]


def test_map_style_datasets() -> None:
    batches = list(DataLoader(Squares(5), batch_size=2))
    assert batches[1]["y"].tolist() == [4, 9]
    assert batches[1]["name"] == ["n2", "n3"]
    assert tuple(batches[0]["x"].shape) == (2, 1)
    assert [item["y"] for item in DataLoader(Squares(3), batch_size=None)] == [0, 1, 4]
    assert list(DataLoader([1, 2, 3], batch_size=2, collate_fn=list)) == [[1, 2], [3]]

    class Whole(Squares):
        def __getitems__(self, indices):
            return [{"y": -i} for i in indices]

    assert [b["y"].tolist() for b in DataLoader(Whole(3), batch_size=2)] == [[0, -1], [-2]]


def test_streams() -> None:
    class Stream(IterableDataset):
        def __iter__(self):
            yield from range(5)

    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    for wrong in ({"shuffle": True}, {"sampler": [1]}):
        with pytest.raises(ValueError, match="IterableDataset"):
            DataLoader(Stream(), **wrong)


def test_seeded_epochs_differ_and_repeat() -> None:
    def epochs() -> list[list[int]]:
        rgrad.manual_seed(11)
        loader = DataLoader(table(50), batch_size=50, shuffle=True)
        return [next(iter(loader))[1].tolist() for _ in range(2)]

    first, second = epochs()
    assert first != second
    assert epochs() == [first, second]


def test_loader_refuses() -> None:
    data = table()
    for wrong, said in (
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
    ):
        with pytest.raises(ValueError, match=said):
            DataLoader(data, **wrong)


def test_a_pass_has_the_length_of_its_loader() -> None:
    batches = iter(DataLoader(range(10), batch_size=3))
    assert len(batches) == 4
    assert next(batches).tolist() == [0, 1, 2]
    assert len(list(batches)) == 3


def test_only_a_length_told_before_the_pass_is_compared() -> None:
    class Short(IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self) -> int:
            return 3

    # `list` asks for the length when it has begun the pass.
    loader = DataLoader(Short(), batch_size=2)
    assert len(list(loader)) == 4
    with pytest.warns(UserWarning, match="reported to be 3.*but 4 samples"):
        assert len(list(loader)) == 4
