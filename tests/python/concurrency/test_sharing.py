"""Tensors in memory that processes share: forked, spawned, and sent through queues."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rgrad import nn, optim
from rgrad._files import sharing

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files of memory")

PROGRAM = """
import sys
import rgrad
import rgrad.multiprocessing as mp


def work(model, extra, queue, end):
    with rgrad.no_grad():
        for p in model.parameters():
            p.add_(1)
        model.running_mean.fill_(5)
    assert type(model.weight) is rgrad.nn.Parameter and model.weight.requires_grad
    assert extra.is_shared() and extra.stride() == (1, 3)
    assert not rgrad.ones(1).is_shared()
    queue.put(model.weight.detach())
    queue.put(rgrad.ones(3))
    end.wait(60)


def main():
    context = mp.get_context(sys.argv[1])
    model = rgrad.nn.BatchNorm1d(4)
    assert model.share_memory() is model
    extra = rgrad.arange(6.0).view(2, 3).T.share_memory_()
    answers, end = context.Queue(), context.Event()
    process = context.Process(target=work, args=(model, extra, answers, end))
    process.start()
    weight, plain = answers.get(timeout=60), answers.get(timeout=60)
    # What the other process wrote is here, and what is written here is seen through the tensor that came back.
    assert model.weight.tolist() == [2] * 4 and model.bias.tolist() == [1] * 4
    assert model.running_mean.tolist() == [5] * 4
    assert weight.is_shared() and not plain.is_shared() and plain.tolist() == [1, 1, 1]
    with rgrad.no_grad():
        model.weight.fill_(7)
    assert weight.tolist() == [7] * 4
    end.set()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    print("done")


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_write_to_the_same_memory(method: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(file), method], capture_output=True, text=True, timeout=240, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_values_and_layout_stay(dtype: str) -> None:
    x = rgrad.arange(12).remainder(2).to(getattr(rgrad, dtype)).view(3, 4)[1:, ::2].T
    before = x.clone()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x[1:].is_shared()
    assert rgrad.equal(x, before)
    assert (x.stride(), x.dtype) == ((2, 4), before.dtype)
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


def test_scalars_and_nothing() -> None:
    assert rgrad.tensor(3.0).share_memory_().item() == 3
    empty = rgrad.empty(0, 2).share_memory_()
    assert empty.is_shared()
    assert empty.shape == (0, 2)


def test_leaves_stay_leaves_and_train() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[1].weight.data = model[0].weight.data.view(1, 6)[:, :3]
    model(rgrad.ones(1, 2)).sum().backward()
    parameters = list(model.parameters())
    model.share_memory()
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert all(p.is_shared() and p.is_leaf and p.requires_grad and p.grad.is_shared() for p in parameters)
    # What shared memory among the parameters still does.
    with rgrad.no_grad():
        model[1].weight.zero_()
    assert model[0].weight.flatten()[:3].tolist() == [0, 0, 0]
    before = model[0].bias.detach().clone()
    optim.SGD(parameters, lr=1.0).step()
    assert not rgrad.equal(before, model[0].bias)
    assert model[0].bias.is_shared()


def test_states_of_adagrad() -> None:
    p = rgrad.ones(3, requires_grad=True)
    optimizer = optim.Adagrad([p])
    optimizer.share_memory()
    assert optimizer.state[p]["sum"].is_shared()
    assert optimizer.state[p]["step"].is_shared()
    p.grad = rgrad.ones(3)
    optimizer.step()
    assert optimizer.state[p]["sum"].tolist() == [1, 1, 1]
    assert optimizer.state[p]["step"].is_shared()


def test_copies_have_their_own_memory() -> None:
    x = rgrad.ones(3).share_memory_()
    for other in (x.clone(), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x + 1):
        assert not other.is_shared()


def test_files_are_closed_with_their_last_tensor() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    x = rgrad.ones(3).share_memory_()
    view = x[1:]
    assert len(os.listdir("/proc/self/fd")) > before
    del x
    assert view.is_shared()
    assert view.tolist() == [1, 1]
    del view
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_shared() -> None:
    with pytest.raises(RuntimeError, match="only memory of the CPU"):
        rgrad.ones(1, device="meta").share_memory_()
    with pytest.raises(RuntimeError, match="uninitialized parameter"):
        nn.LazyLinear(2).share_memory()
    assert not rgrad.ones(1, device="meta").is_shared()


@pytest.mark.parametrize("dtype", [rgrad.bfloat16, rgrad.complex32, rgrad.complex64, rgrad.complex128], ids=str)
def test_dtypes_that_numpy_has_not_are_shared_too(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = rgrad.tensor([1, -2, 3]).to(dtype)
    view = x[1:]
    x.share_memory_()
    view.share_memory_()
    assert x.is_shared()
    assert x.dtype == dtype
    assert (x.tolist(), view.tolist()) == ([1, -2, 3], [-2, 3])
    x[1] = 5
    assert x.tolist() == [1, 5, 3]


def test_files_of_memory_keep_their_size() -> None:
    """Could one process shorten them, the next access of another would end it."""
    from rgrad._files import sharing
    from rgrad.utils.data import _transport

    shared = rgrad.zeros(5000).share_memory_()
    fd, size = sharing._files[shared.data_ptr()]
    batch = _transport._Shared([memoryview(bytes(5000))]).write()
    try:
        for file, held in ((fd, size), (batch, os.fstat(batch).st_size)):
            for other in (0, held - 1, held + 1):
                with pytest.raises(PermissionError):
                    os.ftruncate(file, other)
            assert os.fstat(file).st_size == held
    finally:
        os.close(batch)
    shared.fill_(2.0)
    assert shared.sum().item() == 10_000


def test_tensors_of_two_dtypes_over_one_memory_stay_together() -> None:
    z = rgrad.tensor([1 + 2j, 3 + 4j])
    both: list[Any] = [z, z.real, z.imag]
    copied = copy.deepcopy(both)
    sharing.move(both)
    assert all(t.is_shared() for t in both)
    for whole, real, imaginary in (both, copied):
        real[0], imaginary[1] = 9, 7
        assert whole.tolist() == [9 + 2j, 3 + 7j]
    # A view with elements wider than what is left at the end.
    narrow = rgrad.arange(3.0)
    wide = narrow[:2].view(rgrad.float64)
    sharing.move([wide, narrow])
    assert narrow.tolist() == [0, 1, 2]
    narrow[1] = 0
    assert wide.item() == 0
    received, part = ForkingPickler.loads(ForkingPickler.dumps([z, z.real]))
    part[0] = 5
    assert z[0].item() == received[0].item() == 5 + 2j
