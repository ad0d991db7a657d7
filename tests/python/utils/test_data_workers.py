"""Loaders with worker processes: order, seeds, streams, errors, deaths, interrupts, and that nothing is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import namedtuple

import numpy as np
import pytest

import rgrad
from rgrad.utils.data import (
    BatchSampler,
    ChainDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)

Pair = namedtuple("Pair", "x y")


class Squares(Dataset):
    def __init__(self, n: int, wrong: int = -1, error: type[BaseException] = ValueError) -> None:
        self.n, self.wrong, self.error = n, wrong, error

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i):
        if i == self.wrong:
            raise self.error(f"sample {i} is bad")
        return Pair(rgrad.full((3,), float(i)), {"square": i * i, "name": f"n{i}"})


class Stream(IterableDataset):
    """The numbers below n, shared among the workers."""

    def __init__(self, n: int, told: int | None = None) -> None:
        self.n, self.told = n, told

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))

    def __len__(self) -> int:
        return self.n if self.told is None else self.told


class Draws(Dataset):
    """Random numbers of the worker that makes them."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.seed, random.random(), float(np.random.rand()), rgrad.rand(()).item(), info.num_workers


class Dies(Dataset):
    def __init__(self, how: str) -> None:
        self.how = how

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i):
        if i == 3:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "exit":
                os._exit(7)
            time.sleep(60)
        return i


class Big(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i):
        return rgrad.full((200, 1000), float(i)), np.full((3,), i), rgrad.full((300,), i, dtype=rgrad.bfloat16)


class TwoArguments(Exception):
    def __init__(self, a, b) -> None:
        super().__init__(a, b)


def children() -> list:
    # An exception's traceback holds the iterator of its frame until the collector runs.
    gc.collect()
    return multiprocessing.active_children()


def numbers(loader) -> list:
    return [batch.x[:, 0].tolist() for batch in loader]


METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
def test_batches_are_those_of_one_process(method: str) -> None:
    data = Squares(11)
    alone = list(DataLoader(data, batch_size=4))
    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=method)
    for _ in range(2):
        found = list(loader)
        assert len(found) == len(alone) == len(loader)
        for ours, theirs in zip(found, alone, strict=True):
            assert type(ours) is Pair
            assert rgrad.equal(ours.x, theirs.x)
            assert rgrad.equal(ours.y["square"], theirs.y["square"])
            assert ours.y["name"] == theirs.y["name"]
    assert not children()


def test_tensors_of_batches_are_the_loaders_own() -> None:
    for x, a, h in DataLoader(Big(), batch_size=2, num_workers=2):
        i = x[0, 0, 0].item()
        assert (x.shape, a.shape, h.shape) == ((2, 200, 1000), (2, 3), (2, 300))
        assert x[1].sum().item() == (i + 1) * 200_000
        assert h.dtype == rgrad.bfloat16
        assert a.tolist() == [[i] * 3, [i + 1] * 3]
        x += 1
        assert (x * 2)[0, 0, 0].item() == 2 * (i + 1)
        assert h[1, 7].item() == i + 1


def test_whole_tensors_subsets_and_samples_one_by_one() -> None:
    data = TensorDataset(rgrad.arange(20).reshape(10, 2), rgrad.arange(10))
    for source in (data, Subset(data, [3, 1, 9, 0, 5])):
        alone = [[t.tolist() for t in batch] for batch in DataLoader(source, batch_size=3)]
        found = [[t.tolist() for t in batch] for batch in DataLoader(source, batch_size=3, num_workers=2)]
        assert alone == found
    assert [y.item() for _, y in DataLoader(data, batch_size=None, num_workers=2)] == list(range(10))
    plan = BatchSampler([5, 2, 7], 2, False)
    assert [y.tolist() for _, y in DataLoader(data, batch_sampler=plan, num_workers=1)] == [[5, 2], [7]]
    shuffled = DataLoader(data, batch_size=3, shuffle=True, num_workers=2)
    assert sorted(i for _, y in shuffled for i in y.tolist()) == list(range(10))


def test_persistent_workers_stay() -> None:
    loader = DataLoader(Squares(10), batch_size=2, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    pids = {worker.process.pid for worker in iterator._pool.workers}
    assert len(list(iterator)) == 5
    assert {p.pid for p in children()} >= pids
    # A pass that is left in the middle: its answers do not come in the next one.
    for batch in loader:
        assert batch.x[0, 0].item() == 0
        break
    assert numbers(loader) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert {worker.process.pid for worker in loader._iterator._pool.workers} == pids
    streams = DataLoader(Stream(7), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert sorted(i for batch in streams for i in batch.tolist()) == list(range(7))
    del loader, iterator, streams
    gc.collect()
    assert not children()


@pytest.mark.parametrize("drop_last", [False, True])
def test_streams_are_shared_among_workers(drop_last: bool) -> None:
    batches = [b.tolist() for b in DataLoader(Stream(11), batch_size=2, num_workers=2, drop_last=drop_last)]
    wanted = [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert batches == (wanted[:-1] if drop_last else wanted)
    assert list(DataLoader(Stream(3), batch_size=None, num_workers=2)) == [0, 1, 2]
    assert sorted(DataLoader(ChainDataset([Stream(2), Stream(3)]), batch_size=None)) == [0, 0, 1, 1, 2]
    assert len(Stream(2) + Stream(3)) == 5
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([[1]]))
    loader = DataLoader(Stream(5, told=2), batch_size=None, num_workers=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)


def test_seeds_and_worker_info() -> None:
    assert get_worker_info() is None

    def drawn(seed: int) -> list:
        generator = rgrad.Generator().manual_seed(seed)
        return [tuple(t.item() for t in row) for row in DataLoader(Draws(), num_workers=2, generator=generator)]

    first, again, other = drawn(1), drawn(1), drawn(2)
    assert first == again
    assert {row[2:5] for row in first}.isdisjoint({row[2:5] for row in other})
    assert [row[0] for row in first] == [0, 1, 0, 1]
    assert first[1][1] == first[0][1] + 1
    assert first[0][5] == 2
    assert len({row[2] for row in first}) == len({row[4] for row in first}) == 4


def begin(worker: int) -> None:
    os.environ["RGRAD_TEST_WORKER"] = str(worker)


class FromInit(Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, i):
        return int(os.environ["RGRAD_TEST_WORKER"]), rgrad.get_num_threads()


def fail(worker: int) -> None:
    raise OSError(f"worker {worker} does not begin")


def test_worker_init_fn() -> None:
    rows = [[t.item() for t in row] for row in DataLoader(FromInit(), num_workers=2, worker_init_fn=begin)]
    assert rows == [[0, 1], [1, 1]]
    with pytest.raises(OSError, match=r"Caught OSError in DataLoader worker process 0(.|\n)*does not begin"):
        list(DataLoader(FromInit(), num_workers=1, worker_init_fn=fail))


@pytest.mark.wgpu
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_make_tensors_on_the_cpu(method: str) -> None:
    """Whatever the loader's default device is, since a device cannot be used behind a fork."""
    rgrad.ones(1, device="wgpu")
    rgrad.set_default_device("wgpu")
    try:
        batches = list(DataLoader(list(range(6)), 3, num_workers=2, multiprocessing_context=method))
        here = list(DataLoader(list(range(6)), 3))
    finally:
        rgrad.set_default_device("cpu")
    assert [b.device.type for b in batches] == ["cpu", "cpu"]
    assert [b.device.type for b in here] == ["wgpu", "wgpu"]
    assert [b.tolist() for b in batches] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("error", [ValueError, KeyError, IndexError, StopIteration])
def test_errors_carry_the_workers_traceback(error) -> None:
    loader = DataLoader(Squares(8, wrong=5, error=error), batch_size=2, num_workers=2)
    iterator = iter(loader)
    found = [next(iterator).x[0, 0].item() for _ in range(2)]
    assert found == [0, 2]
    with pytest.raises(error) as caught:
        next(iterator)
    text = str(caught.value)
    assert f"Caught {error.__name__} in DataLoader worker process 0.\nOriginal Traceback" in text
    assert "in __getitem__" in text
    assert "sample 5 is bad" in text
    # The other batches still come.
    assert [b.x[0, 0].item() for b in iterator] == [6]


def test_errors_that_cannot_be_made_again_are_runtime_errors() -> None:
    class Bad(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            raise TwoArguments(1, 2)

    with pytest.raises(RuntimeError, match="Caught TwoArguments in DataLoader worker process 0"):
        list(DataLoader(Bad(), num_workers=1))

    class Local(Exception):
        pass

    class Worse(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            raise Local("here")

    with pytest.raises(RuntimeError, match="Caught Local in DataLoader worker process 0"):
        list(DataLoader(Worse(), num_workers=1))

    class Unpicklable(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            return lambda: 3

    with pytest.raises((AttributeError, RuntimeError, TypeError), match="in DataLoader worker process 0"):
        list(DataLoader(Unpicklable(), num_workers=1, batch_size=None))


@pytest.mark.parametrize("how", ["kill", "exit"])
def test_workers_that_die_are_reported(how: str) -> None:
    loader = DataLoader(Dies(how), num_workers=2)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        list(loader)
    assert ("is killed by signal: Killed" in str(caught.value.__cause__)) == (how == "kill")
    assert not children()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)


def test_timeouts() -> None:
    began = time.monotonic()
    iterator = iter(DataLoader(Dies("sleep"), num_workers=1, timeout=3))
    assert [next(iterator).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 3 seconds"):
        next(iterator)
    assert time.monotonic() - began < 60
    assert not children()


class Slow(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i):
        if i == 0:
            time.sleep(1.0)
        return i


def test_batches_out_of_order() -> None:
    found = [b.item() for b in DataLoader(Slow(), num_workers=2, in_order=False)]
    assert sorted(found) == list(range(6))
    assert found[0] != 0
    assert [b.item() for b in DataLoader(Slow(), num_workers=2)] == list(range(6))


def test_an_abandoned_iterator_ends_its_workers() -> None:
    iterator = iter(DataLoader(Big(), num_workers=2))
    next(iterator)
    processes = [worker.process for worker in iterator._pool.workers]
    del iterator
    gc.collect()
    assert all(not process.is_alive() for process in processes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_leaves_the_workers_alone() -> None:
    iterator = iter(DataLoader(Squares(12), batch_size=2, num_workers=2))
    assert next(iterator).x[0, 0].item() == 0
    pid = os.fork()
    if pid == 0:
        try:
            del iterator
            gc.collect()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert [b.x[0, 0].item() for b in iterator] == [2, 4, 6, 8, 10]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
def test_no_descriptors_and_no_memory_are_left() -> None:
    list(DataLoader(Big(), num_workers=2))
    gc.collect()
    before = descriptors()
    for _ in range(3):
        list(DataLoader(Big(), num_workers=2))
    gc.collect()
    assert descriptors() <= before


PROGRAM = """
import os, signal, sys, time
import rgrad
from rgrad.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.05)
        return i

if __name__ == "__main__":
    loader = DataLoader(Data(), num_workers=2)
    iterator = iter(loader)
    next(iterator)
    print(*(w.process.pid for w in iterator._pool.workers), flush=True)
    %s
    for _ in iterator:
        pass
"""


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_killed_program_leave_no_workers(sent, tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM % "pass"))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    if sent == signal.SIGINT:
        # As a terminal does: to the whole group.
        os.killpg(process.pid, sent)
    else:
        process.kill()
    _, errors = process.communicate(timeout=30)
    assert gone(pids)
    if sent == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1, errors
        assert "Process" not in errors


def test_the_loader_refuses() -> None:
    data = Squares(4)
    for options, message in (
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"prefetch_factor": -1, "num_workers": 1}, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
        ({"multiprocessing_context": "thread", "num_workers": 1}, "should specify a valid start method"),
    ):
        with pytest.raises(ValueError, match=message):
            DataLoader(data, **options)
    with pytest.raises(TypeError, match="should be a valid context object"):
        DataLoader(data, num_workers=1, multiprocessing_context=3)
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(DataLoader(data, num_workers=1, prefetch_factor=0))
    loader = DataLoader(data)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, 2)
    loader.num_workers = 0
    with pytest.warns(UserWarning, match="This DataLoader will create 4096 worker processes in total"):
        DataLoader(data, num_workers=4096)


def test_stacked_datasets_fetch_whole_batches() -> None:
    class Whole(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            raise AssertionError("one by one")

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    stacked = StackDataset(Whole(), range(4))
    assert [[t.tolist() for t in b] for b in DataLoader(stacked, batch_size=2)] == [
        [[0, 10], [0, 1]],
        [[20, 30], [2, 3]],
    ]
    assert StackDataset(a=Whole(), b=range(4)).__getitems__([1, 2]) == [{"a": 10, "b": 1}, {"a": 20, "b": 2}]

    class Short(Whole):
        def __getitems__(self, indices):
            return []

    with pytest.raises(ValueError, match="output size mismatch. Expected 2, got 0"):
        StackDataset(Short()).__getitems__([0, 1])

    class Changed(Subset):
        def __getitem__(self, i):
            return i

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Changed(range(3), [1])


@pytest.mark.parametrize(("n", "replicas", "drop_last"), [(10, 3, False), (10, 3, True), (2, 5, False), (9, 3, False)])
def test_distributed_samplers_share_an_order(n: int, replicas: int, drop_last: bool) -> None:
    def shares(epoch: int) -> list[list[int]]:
        found = []
        for rank in range(replicas):
            sampler = DistributedSampler(range(n), replicas, rank, drop_last=drop_last, seed=3)
            sampler.set_epoch(epoch)
            found.append(list(sampler))
            assert len(found[-1]) == len(sampler)
        return found

    assert len({len(share) for share in shares(0)}) == 1
    assert shares(0) == shares(0)
    if n > 5:
        assert shares(0) != shares(1)
    seen = {i for share in shares(0) for i in share}
    assert len(seen) == (n - n % replicas if drop_last else n)
    assert list(DistributedSampler(range(5), 2, 1, shuffle=False)) == [1, 3, 0]
    with pytest.raises(ValueError, match="Invalid rank 3"):
        DistributedSampler(range(5), 2, 3)
    with pytest.raises(RuntimeError, match="Requires distributed package"):
        DistributedSampler(range(5))


def test_collation_keeps_classes_and_takes_more_types() -> None:
    from rgrad.utils.data._utils.collate import collate, default_collate_fn_map

    class Record(dict):
        pass

    class Row(list):
        pass

    record = default_collate([Record(a=1, b="x"), Record(a=2, b="y")])
    assert type(record) is Record
    assert (record["a"].tolist(), record["b"]) == ([1, 2], ["x", "y"])
    row = default_collate([Row([1, 2.5]), Row([3, 4.5])])
    assert type(row) is Row
    assert [t.tolist() for t in row] == [[1, 3], [2.5, 4.5]]
    assert type(default_convert(Record(a=np.ones(2)))["a"]) is rgrad.Tensor
    assert type(default_convert((np.float32(1), "x"))[0]) is rgrad.Tensor
    assert default_collate([np.float64(1), np.float64(2)]).dtype == rgrad.float64
    for wrong in (np.array(["a"]), np.array([object()])):
        with pytest.raises(TypeError, match="default_collate: batch must contain"):
            default_collate([wrong])
        assert default_convert(wrong) is wrong

    class Own:
        pass

    joined = collate([[Own(), 1], [Own(), 2]], collate_fn_map={**default_collate_fn_map, Own: lambda b, **_: len(b)})
    assert joined[0] == 2


def test_multiprocessing_under_pytorchs_name() -> None:
    mp = rgrad.multiprocessing
    assert mp.get_context("spawn").get_start_method() == "spawn"
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("x")
    queue = mp.get_context("fork").SimpleQueue()
    queue.put(rgrad.ones(3))
    assert queue.get().tolist() == [1, 1, 1]
