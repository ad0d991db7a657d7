"""Datasets, samplers, collation and loaders with workers beside PyTorch's."""

from __future__ import annotations

import inspect
from collections import OrderedDict, UserDict, UserList, defaultdict, namedtuple
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

Point = namedtuple("Point", "a b")


def shown(T: Any, value: Any) -> Any:
    if isinstance(value, T.Tensor):
        return "tensor", str(value.dtype).rpartition(".")[2], value.tolist()
    if hasattr(value, "items"):
        return type(value).__name__, [(k, shown(T, v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, UserList)):
        return type(value).__name__, [shown(T, v) for v in value]
    return type(value).__name__, str(value)


STRUCTURES = {
    "named": lambda T: Point(T.ones(2), 3),
    "ordered": lambda T: OrderedDict(a=1, b=2.5),
    "default": lambda T: defaultdict(list, a=1),
    "user dict": lambda T: UserDict(a=1),
    "proxy": lambda T: MappingProxyType({"a": np.int32(3)}),
    "user list": lambda T: UserList([1, 2]),
    "range": lambda T: range(3),
    "strings": lambda T: ("a", b"b", ["c"]),
    "numpy": lambda T: {"x": np.ones((2, 3), np.float32), "y": np.float64(2), "z": np.bool_(True)},
    "bool": lambda T: [True, 1, 1.0],
    "deep": lambda T: {"a": [({"b": (1, T.zeros(1))},)]},
    "empty": lambda T: [],
    "object array": lambda T: np.array([None]),
    "string array": lambda T: np.array(["a"]),
    "none": lambda T: None,
    "complex": lambda T: object(),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_collation_and_conversion_are_alike(name: str) -> None:
    def results(T: Any) -> Any:
        samples = [STRUCTURES[name](T) for _ in range(2)]
        joined = attempt(lambda: shown(T, T.utils.data.default_collate(samples)))
        converted = attempt(lambda: shown(T, T.utils.data.default_convert(samples[0])))
        return [(a.error, a.value if a.error is None else "numpy" in name) for a in (joined, converted)]

    if name in ("none", "complex"):
        # The text of an object differs.
        assert [r[0] for r in results(rgrad)] == [r[0] for r in results(torch)]
    else:
        assert results(rgrad) == results(torch)


def data_of(T: Any, wrong: int = -1) -> Any:
    class Data(T.utils.data.Dataset):
        def __len__(self) -> int:
            return 10

        def __getitem__(self, i: int) -> Any:
            if i == wrong:
                raise KeyError(f"no {i}")
            return {"x": T.full((2,), float(i)), "y": i, "n": f"s{i}"}

    return Data()


def stream_of(T: Any) -> Any:
    class Data(T.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = T.utils.data.get_worker_info()
            return iter(range(7)) if info is None else iter(range(info.id, 7, info.num_workers))

    return Data()


OPTIONS = [
    {"batch_size": 4},
    {"batch_size": 4, "num_workers": 2},
    {"batch_size": 4, "num_workers": 2, "drop_last": True, "persistent_workers": True},
    {"batch_size": None, "num_workers": 1},
    {"batch_size": 3, "sampler": [5, 1, 9, 2], "num_workers": 2, "prefetch_factor": 1},
    {"batch_sampler": [[1, 2], [3], [4, 0, 9]], "num_workers": 2},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_batches_are_alike(options: dict[str, Any]) -> None:
    def batches(T: Any) -> Any:
        loader = T.utils.data.DataLoader(data_of(T), **options)
        return [[shown(T, b) for b in loader] for _ in range(2)], len(loader)

    assert batches(rgrad) == batches(torch)


@pytest.mark.parametrize(
    "options", [{"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}, {"batch_size": 20}]
)
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_streams_are_alike(workers: int, options: dict[str, Any]) -> None:
    def batches(T: Any) -> Any:
        return [shown(T, b) for b in T.utils.data.DataLoader(stream_of(T), num_workers=workers, **options)]

    assert batches(rgrad) == batches(torch)


def test_errors_of_workers_are_alike() -> None:
    texts = []
    for T in (rgrad, torch):
        with pytest.raises(KeyError) as caught:
            list(T.utils.data.DataLoader(data_of(T, wrong=3), num_workers=1))
        lines = str(caught.value).splitlines()
        texts.append((lines[:2], lines[-1]))
    assert texts[0] == texts[1]


def loader(T: Any, data: Any = range(3), **options: Any) -> Any:
    return T.utils.data.DataLoader(data, **options)


MISTAKES = {
    "prefetch": lambda T: loader(T, prefetch_factor=2),
    "negative prefetch": lambda T: loader(T, prefetch_factor=-1, num_workers=1),
    "persistent": lambda T: loader(T, persistent_workers=True),
    "context": lambda T: loader(T, multiprocessing_context="fork"),
    "context name": lambda T: loader(T, multiprocessing_context="x", num_workers=1),
    "context type": lambda T: loader(T, multiprocessing_context=3, num_workers=1),
    "set": lambda T: setattr(loader(T), "batch_size", 3),
    "workers": lambda T: loader(T, num_workers=-1),
    "timeout": lambda T: loader(T, timeout=-1),
    "timeout alone": lambda T: iter(loader(T, timeout=1)),
    "shuffled stream": lambda T: loader(T, stream_of(T), shuffle=True),
    "sampled stream": lambda T: loader(T, stream_of(T), sampler=[1]),
    "length of a stream": lambda T: len(loader(T, stream_of(T))),
    "many": lambda T: loader(T, num_workers=1000),
    "stack": lambda T: T.utils.data.StackDataset(),
    "stack both": lambda T: T.utils.data.StackDataset([1], a=[1]),
    "chain": lambda T: list(T.utils.data.ChainDataset([[1]])),
    "concat": lambda T: T.utils.data.ConcatDataset([]),
    "distributed": lambda T: T.utils.data.DistributedSampler(range(3), 2, 2),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned
    # PyTorch's text of "stack both" lacks a space.
    if name not in ("length of a stream", "stack both"):
        assert ours.message == theirs.message


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [3, 10, 12])
def test_distributed_samplers_are_alike(n: int, drop_last: bool) -> None:
    def shares(T: Any) -> Any:
        make = T.utils.data.DistributedSampler
        return [list(make(range(n), 5, rank, shuffle=False, drop_last=drop_last)) for rank in range(5)]

    assert shares(rgrad) == shares(torch)


def test_workers_of_one_seed_have_numpys_numbers_in_common() -> None:
    from torch.utils.data._utils.worker import _generate_state

    from rgrad.utils.data import _worker

    for base, worker in ((0, 0), (5, 3), (2**62 + 12345, 7)):
        _worker.seed_everything(base, worker)
        ours = np.random.rand(3)
        np.random.seed(_generate_state(base, worker))
        assert ours.tolist() == np.random.rand(3).tolist()


def test_signatures_are_alike() -> None:
    for name in ("DataLoader", "StackDataset", "ChainDataset", "Subset", "DistributedSampler", "BatchSampler"):
        ours, theirs = (inspect.signature(getattr(T.utils.data, name).__init__).parameters for T in (rgrad, torch))
        assert list(ours) == list(theirs), name
        assert [p.default for p in ours.values()] == [p.default for p in theirs.values()], name
