"""Positions, counts and masks that another thread changes while kernels read them.

Nothing orders the two threads, so a call may succeed or be refused. What it may not do is read or write outside of its
operands, whatever it reads: results hold elements of the operand (or 0), and memory around the target stays as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor
from rgrad.nn import functional as F

# Large enough that kernels run without the interpreter's lock.
N = 1 << 17
SIZE = 1000
SECONDS = 0.2
WILD = (2**62, -(2**62), 2**31, -(2**31), SIZE, -SIZE - 1, 2**40, -1)
REFUSALS = (IndexError, RuntimeError, MemoryError)
SEVEN = 7.0


@contextmanager
def flipping(memory: np.ndarray[Any, Any], good: np.ndarray[Any, Any], bad: tuple[Any, ...]) -> Iterator[None]:
    """Another thread writes `bad` values into `memory`, and the good ones back, until the block ends."""
    stop, failures = threading.Event(), []

    def run() -> None:
        try:
            rng = np.random.default_rng(5)
            while not stop.is_set():
                # One place, a few, then all of it: NumPy lets go of the interpreter's lock for long writes.
                value = bad[rng.integers(len(bad))]
                memory[rng.integers(len(memory))] = value
                memory[:: rng.integers(1, 50)] = value
                memory[:] = good
                time.sleep(float(rng.integers(3)) * 1e-4)
        except BaseException as e:
            failures.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        memory[:] = good
    assert not failures


def source(*shape: int) -> Tensor:
    return rgrad.full(shape, SEVEN)


def rounds(call: Callable[[], Any], *, check: Callable[[Any], None] | None = None) -> tuple[int, int]:
    """Calls again and again; how often it worked and how often it was refused."""
    worked = refused = 0
    end = time.monotonic() + SECONDS
    while worked + refused < 3 or time.monotonic() < end:
        try:
            made = call()
        except REFUSALS as e:
            if isinstance(e, rgrad.InternalError):
                raise
            refused += 1
        else:
            worked += 1
            if check is not None:
                check(made)
    return worked, refused


def of_the_source(made: Any) -> None:
    for t in made if isinstance(made, tuple) else (made,):
        a = t.detach().numpy()
        assert ((a == 0) | (a == SEVEN)).all(), np.unique(a)


class Guarded:
    """A target between two pieces of memory that nobody may write."""

    def __init__(self, *shape: int) -> None:
        n = int(np.prod(shape))
        self.memory = np.full(n + 2 * 4096, 5.0, np.float32)
        self.tensor = rgrad.from_numpy(self.memory)[4096 : 4096 + n].view(*shape)

    def check(self, _: Any = None) -> None:
        n = self.tensor.numel()
        assert (self.memory[:4096] == 5).all()
        assert (self.memory[4096 + n :] == 5).all()


class Case:
    """What the operations share: an index of many shapes over one NumPy array, and operands."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.good = rng.integers(0, SIZE, N)
        self.memory = self.good.copy()
        self.index = rgrad.from_numpy(self.memory)
        self.x = source(SIZE)
        self.rows = source(SIZE, 4)
        self.wide = source(SIZE, N)
        self.values = source(N)
        self.target = Guarded(SIZE)
        self.table = Guarded(SIZE, 3)


READS: dict[str, Callable[[Case], Any]] = {
    "index": lambda c: c.x[c.index],
    "index of two": lambda c: c.rows[c.index, rgrad.zeros(N, dtype=rgrad.int64)],
    "index of two, both": lambda c: source(SIZE, SIZE)[c.index, c.index],
    "index behind": lambda c: source(2, SIZE)[:, c.index],
    "index of rows": lambda c: c.rows[c.index],
    "index_select": lambda c: rgrad.index_select(c.x, 0, c.index),
    "index_select of rows": lambda c: rgrad.index_select(c.rows, 0, c.index),
    "take": lambda c: rgrad.take(c.x, c.index),
    "gather": lambda c: rgrad.gather(c.x, 0, c.index),
    "gather of columns": lambda c: rgrad.gather(c.rows, 0, c.index.view(-1, 4)),
    "gather across": lambda c: rgrad.gather(source(4, SIZE), 1, c.index.view(-1, 4).t()),
    "take_along_dim": lambda c: rgrad.take_along_dim(c.x, c.index, 0),
    "int32 index": lambda c: c.x[c.index.to(rgrad.int32)],
}


@pytest.mark.parametrize("name", READS)
def test_what_is_read_is_the_operands(name: str) -> None:
    case = Case()
    of_the_source(READS[name](case))
    with flipping(case.memory, case.good, WILD):
        rounds(lambda: READS[name](case), check=of_the_source)
    of_the_source(READS[name](case))


WRITES: dict[str, Callable[[Case], Any]] = {
    "index put": lambda c: c.target.tensor.index_put_((c.index,), c.values),
    "index put, added": lambda c: c.target.tensor.index_put_((c.index,), c.values, accumulate=True),
    "index assignment": lambda c: c.target.tensor.__setitem__(c.index, 1.0),
    "index_add": lambda c: c.target.tensor.index_add_(0, c.index, c.values),
    "index_add of rows": lambda c: c.table.tensor.index_add_(0, c.index, source(N, 3)),
    "index_copy": lambda c: c.target.tensor.index_copy_(0, c.index, c.values),
    "index_fill": lambda c: c.target.tensor.index_fill_(0, c.index, 2.0),
    "scatter": lambda c: c.target.tensor.scatter_(0, c.index, c.values),
    "scatter of a number": lambda c: c.target.tensor.scatter_(0, c.index, 3.0),
    "scatter_add": lambda c: c.target.tensor.scatter_add_(0, c.index, c.values),
    "scatter, multiplied": lambda c: c.target.tensor.scatter_(0, c.index, c.values, reduce="multiply"),
    "scatter across": lambda c: c.table.tensor.scatter_(0, c.index[: N // 3 * 3].view(-1, 3), source(N // 3, 3)),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_is_the_target(name: str) -> None:
    case = Case()
    WRITES[name](case)
    with flipping(case.memory, case.good, WILD):
        rounds(lambda: WRITES[name](case), check=case.target.check)
    case.target.check()
    case.table.check()
    WRITES[name](case)


BACKWARD: dict[str, Callable[[Case, Tensor], Tensor]] = {
    "index": lambda c, x: x[c.index],
    "index_select": lambda c, x: rgrad.index_select(x, 0, c.index),
    "gather": lambda c, x: rgrad.gather(x, 0, c.index),
    "take": lambda c, x: rgrad.take(x, c.index),
    "scatter_add": lambda c, x: rgrad.scatter_add(
        rgrad.zeros(SIZE), 0, c.index, x.expand(N // SIZE + 1, SIZE).reshape(-1)[:N]
    ),
    "scatter": lambda c, x: rgrad.scatter(x, 0, c.index, c.values),
    "index_put": lambda c, x: rgrad.index_put(x, (c.index,), c.values),
    "index_fill": lambda c, x: rgrad.index_fill(x, 0, c.index, 1.0),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_saved_positions_may_change_before_and_in_backward(name: str) -> None:
    case = Case()
    x = source(SIZE).requires_grad_()
    # The graph is made of what is valid; only backward meets the other thread.
    outs = [BACKWARD[name](case, x) for _ in range(12)]
    backwards = iter(outs)

    def call() -> Any:
        out = next(backwards, None) or BACKWARD[name](case, x)
        return rgrad.autograd.grad(out, x, rgrad.ones_like(out))[0]

    def check(g: Tensor) -> None:
        a = g.numpy()
        assert ((a >= 0) & (a <= N) & (a == np.round(a))).all()

    with flipping(case.memory, case.good, WILD):
        rounds(call, check=check)


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "none": lambda x, t, w: F.nll_loss(x, t, reduction="none"),
    "mean": lambda x, t, w: F.nll_loss(x, t),
    "weighted sum": lambda x, t, w: F.nll_loss(x, t, weight=w, reduction="sum"),
    "of what is pending": lambda x, t, w: F.nll_loss((x * 2).exp() - 3, t, weight=w),
    "cross entropy": lambda x, t, w: F.cross_entropy(x, t, weight=w),
    "cross entropy of what is pending": lambda x, t, w: F.cross_entropy((x * 2).tanh(), t),
}


@pytest.mark.parametrize("name", LOSSES)
def test_targets_of_losses(name: str) -> None:
    good = np.random.default_rng(3).integers(0, 8, N)
    memory = good.copy()
    # Memory of NumPy's, and the tensor's own that NumPy knows.
    lent, own = rgrad.from_numpy(memory), rgrad.tensor(good)
    x, w = source(N, 8).requires_grad_(), rgrad.ones(8)

    def call(target: Tensor) -> Tensor:
        loss = LOSSES[name](x, target, w)
        (g,) = rgrad.autograd.grad(loss, x, rgrad.ones_like(loss))
        g[0, 0].item()
        return loss

    for target, alias in ((lent, memory), (own, own.numpy())):
        with flipping(alias, good, (2**62, -(2**62), 8, -1, 2**33, -100)):
            rounds(lambda target=target: call(target))  # type: ignore[misc]
        assert np.isfinite(call(target).detach().numpy()).all()


def of_bytes(good: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Tensor]:
    """A mask, and the bytes that it lies in."""
    memory = good.astype(np.uint8)
    return memory, rgrad.from_numpy(memory.view(np.bool_))


MASKS: dict[str, Callable[[Tensor, Tensor, Guarded], Any]] = {
    "index": lambda m, x, t: x[m],
    "masked_select": lambda m, x, t: rgrad.masked_select(x, m),
    "where": lambda m, x, t: rgrad.where(m, x, rgrad.zeros(N)),
    "masked_fill": lambda m, x, t: rgrad.masked_fill(x, m, 0.0),
    "nonzero": lambda m, x, t: x[rgrad.nonzero(m)[:, 0]],
    "nonzero of a matrix": lambda m, x, t: x.view(-1, 64)[m.view(-1, 64).nonzero(as_tuple=True)],
    "assignment": lambda m, x, t: t.tensor.__setitem__(m, 1.0),
    "masked_scatter": lambda m, x, t: t.tensor.masked_scatter_(m, x) and None,
    "index_put": lambda m, x, t: t.tensor.index_put_((m,), rgrad.tensor(2.0)) and None,
    "sum": lambda m, x, t: rgrad.zeros(int(m.to(rgrad.int64).sum()) % 7),
    "any and all": lambda m, x, t: source(int(m.any()) + int(m.all())),
    "argmax": lambda m, x, t: x[m.to(rgrad.uint8).argmax()],
    "python": lambda m, x, t: x[: 1 + sum(m[:10].tolist())],
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_and_bytes_that_are_no_truth_value(name: str) -> None:
    good = np.random.default_rng(4).random(N) < 0.3
    memory, mask = of_bytes(good)
    x, target = source(N), Guarded(N)

    def call() -> Any:
        made = MASKS[name](mask, x, target)
        return rgrad.zeros(1) if made is None or isinstance(made, bool) else made

    with flipping(memory, good.astype(np.uint8), (0, 1, 2, 255, 128)):
        rounds(call, check=of_the_source)
    target.check()


def test_every_byte_but_0_is_true() -> None:
    memory = np.array([0, 1, 2, 127, 128, 255, 0], np.uint8)
    mask = rgrad.from_numpy(memory.view(np.bool_))
    want = memory != 0
    for dtype in (rgrad.uint8, rgrad.int32, rgrad.int64, rgrad.float32, rgrad.float64):
        assert mask.to(dtype).tolist() == want.astype(int).tolist()
    assert mask.tolist() == want.tolist()
    assert [m.item() for m in mask] == want.tolist()
    assert mask.nonzero().flatten().tolist() == np.flatnonzero(want).tolist()
    assert rgrad.arange(7)[mask].tolist() == np.flatnonzero(want).tolist()
    assert (~mask).tolist() == (~want).tolist()
    assert (mask & rgrad.ones(7, dtype=rgrad.bool)).tolist() == want.tolist()
    assert (mask ^ rgrad.ones(7, dtype=rgrad.bool)).tolist() == (~want).tolist()
    assert (mask == rgrad.ones(7, dtype=rgrad.bool)).tolist() == want.tolist()
    assert rgrad.where(mask, 1, 0).tolist() == want.astype(int).tolist()
    assert rgrad.count_nonzero(mask).item() == want.sum()


def counts(c: np.ndarray[Any, Any]) -> Tensor:
    return rgrad.from_numpy(c)


OTHERS: dict[str, Callable[[Tensor], Any]] = {
    "repeat_interleave": lambda t: rgrad.repeat_interleave(
        source(N), t.clamp(-1, 2) if t.dtype.is_floating_point else t
    ),
    "bincount": lambda t: rgrad.bincount(t),
    "bincount with weights": lambda t: rgrad.bincount(t, weights=source(N)),
    "unique": lambda t: rgrad.unique(t, return_inverse=True, return_counts=True),
    "unique_consecutive": lambda t: rgrad.unique_consecutive(t, return_inverse=True, return_counts=True),
    "sort": lambda t: source(N)[rgrad.sort(t)[1]],
    "sort of columns": lambda t: rgrad.sort(t.view(-1, 8), 0),
    "topk": lambda t: source(N)[rgrad.topk(t, 1000)[1]],
    "kthvalue": lambda t: source(N)[rgrad.kthvalue(t, 77)[1]],
    "median": lambda t: source(N)[rgrad.median(t, 0)[1]],
    "mode": lambda t: source(N)[rgrad.mode(t, 0)[1]],
    "argmax": lambda t: source(N)[rgrad.argmax(t)],
    "argmin of columns": lambda t: rgrad.gather(source(N // 32, 32), 0, rgrad.argmin(t.view(-1, 32), 0, keepdim=True)),
    "max": lambda t: source(N)[rgrad.max(t, 0)[1]],
    "cummax": lambda t: source(N)[rgrad.cummax(t, 0)[1]],
    "floor division": lambda t: rgrad.arange(N) // t,
    "remainder": lambda t: rgrad.arange(N) % t,
    "shift": lambda t: rgrad.arange(N) << t,
    "power": lambda t: rgrad.arange(N) ** t,
    "tensor_split": lambda t: rgrad.tensor_split(source(SIZE), t[:5]),
    "integer indexing": lambda t: source(4)[int(t[0]) % 4],
    "matmul": lambda t: t.view(-1, 256)[:64] @ t.view(256, -1)[:, :64],
}


@pytest.mark.parametrize("name", OTHERS)
def test_counts_divisors_and_keys(name: str) -> None:
    good = np.random.default_rng(6).integers(1, 4, N)
    memory = good.copy()
    t = counts(memory)
    OTHERS[name](t)
    with flipping(memory, good, (0, 2**62, -(2**62), -1, 2**40, -(2**63))):
        rounds(lambda: OTHERS[name](t))
    OTHERS[name](t)


FLOATS: dict[str, Callable[[Tensor], Any]] = {
    "sort": lambda t: source(N)[rgrad.sort(t)[1]],
    "topk": lambda t: source(N)[rgrad.topk(t, 1000)[1]],
    "median": lambda t: source(N)[rgrad.nanmedian(t, 0)[1]],
    "mode": lambda t: source(N)[rgrad.mode(t, 0)[1]],
    "argmax": lambda t: source(N)[rgrad.argmax(t)],
    "argmax of columns": lambda t: source(N // 32)[rgrad.argmax(t.view(-1, 32), 0)],
    "cummin": lambda t: source(N)[rgrad.cummin(t, 0)[1]],
    "quantile": lambda t: rgrad.quantile(t[: N // 2], t[-4:].clamp(0, 1)) * 0,
    "multinomial": lambda t: source(SIZE)[rgrad.multinomial(t[:SIZE], 50)],
    "multinomial, given back": lambda t: source(SIZE)[rgrad.multinomial(t[:SIZE], 500, replacement=True)],
    "bernoulli": lambda t: rgrad.bernoulli(t) * SEVEN,
    "unique": lambda t: rgrad.unique(t, return_inverse=True)[1] * 0,
    "to integers": lambda t: source(SIZE)[t.to(rgrad.int64)],
}


@pytest.mark.parametrize("name", FLOATS)
def test_keys_that_become_nan(name: str) -> None:
    good = np.random.default_rng(7).random(N, dtype=np.float64) * 0.9 + 0.05
    memory = good.copy()
    t = counts(memory)

    def check(made: Any) -> None:
        a = made.numpy()
        assert ((a == 0) | (a == SEVEN) | np.isnan(a)).all()

    with flipping(memory, good, (np.nan, np.inf, -np.inf, 1e300, -1.0)):
        rounds(lambda: FLOATS[name](t), check=check)


def test_the_other_thread_is_met() -> None:
    """Positions are seen good and bad: without that the tests above would show nothing."""
    case = Case()
    with flipping(case.memory, case.good, WILD):
        seen = [rounds(lambda: rgrad.index_select(case.x, 0, case.index)) for _ in range(5)]
    assert sum(worked for worked, _ in seen) > 0
    assert sum(refused for _, refused in seen) > 0
