"""Python's own threads: they run while kernels run, and they may share tensors."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

import rgrad

N = 1 << 21


def ticks_during(work: Callable[[], object]) -> int:
    """How often another thread got to run while `work` ran once."""
    count, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(1e-4)

    interval, threads = sys.getswitchinterval(), rgrad.get_num_threads()
    # One core for the kernel, so that the other thread finds one too.
    rgrad.set_num_threads(1)
    # Nobody is made to give the lock away: the other thread runs only if the work itself lets go of it.
    sys.setswitchinterval(1000.0)
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        time.sleep(0.01)
        before = count[0]
        work()
        return count[0] - before
    finally:
        sys.setswitchinterval(interval)
        rgrad.set_num_threads(threads)
        stop.set()
        thread.join()


def vector() -> rgrad.Tensor:
    return rgrad.linspace(-1.0, 1.0, N, dtype=rgrad.float64)


def forward_and_backward(x: rgrad.Tensor) -> None:
    x.grad = None
    x.exp().sum().backward()
    assert x.grad is not None
    x.grad[0].item()


def chain(x: rgrad.Tensor) -> rgrad.Tensor:
    return x.exp().sin().tanh()


def sum_of_exp(x: rgrad.Tensor) -> rgrad.Tensor:
    return x.exp().sum()


def looked_at(work: Callable[[], rgrad.Tensor]) -> Callable[[], object]:
    """The work and a look at its result, which may be pending until then."""
    return lambda: work().flatten()[0].item()


LONG: dict[str, Callable[[], Callable[[], object]]] = {
    "exp": lambda: looked_at(vector().exp),
    "one after the other": lambda: looked_at(partial(chain, vector())),
    "sum of pending": lambda: looked_at(partial(sum_of_exp, vector())),
    "sum of double rows": lambda: rgrad.ones(N, 8).sum,
    "matmul": lambda: looked_at(partial((m := rgrad.ones(700, 700)).matmul, m)),
    "broadcast": lambda: looked_at(partial(rgrad.mul, rgrad.ones(2000, 1), rgrad.ones(2000))),
    "in place": lambda: looked_at(vector().tanh_),
    "sort": lambda: vector().sort,
    "argmax": lambda: partial(rgrad.ones(N, 4).argmax, 0),
    "nonzero": lambda: vector().nonzero,
    "all": lambda: partial(rgrad.ones(N, 4).all, 1),
    "gather rows": lambda: partial(rgrad.ones(64, 100).index_select, 0, rgrad.zeros(50_000, dtype=rgrad.int64)),
    "repeat": lambda: partial(rgrad.ones(1).repeat, N, 4),
    "full": lambda: partial(rgrad.full, (4 * N,), 2.0),
    "arange": lambda: partial(rgrad.arange, 4 * N),
    "randn": lambda: partial(rgrad.randn, N),
    "randperm": lambda: partial(rgrad.randperm, N),
    "copy": lambda: rgrad.ones(2000, 2000).t().contiguous,
    "backward": lambda: partial(forward_and_backward, vector().requires_grad_()),
}


@pytest.mark.parametrize("name", LONG)
def test_python_runs_while_a_kernel_runs(name: str) -> None:
    work = LONG[name]()
    # A machine may be too busy for the other thread; with the lock held it would get nothing in any number of tries.
    assert any(ticks_during(work) >= 2 for _ in range(100))


def test_the_lock_is_kept_where_there_is_little_to_do() -> None:
    # What the test above rests on: without the release the other thread stands still.
    x = rgrad.ones(4, 4)

    def work() -> None:
        for _ in range(20_000):
            x + x

    assert ticks_during(work) <= 1


def test_an_error_of_large_work_comes_out_as_itself() -> None:
    x = rgrad.ones(1000, 100)
    index = rgrad.full((N,), 5)
    index[-1] = 1000
    with pytest.raises(IndexError, match="1000"):
        x[index]
    with pytest.raises(RuntimeError, match=r"\(300\) must match the size of tensor b \(400\)"):
        rgrad.ones(300, 300) + rgrad.ones(400, 400)[:, :300]


def test_a_function_of_python_in_the_middle_of_backward() -> None:
    class Twice(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = vector().requires_grad_()
    threads = [threading.Thread(target=lambda: Twice.apply(x).exp().sum().backward()) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = 3 * 2 * (2 * x.detach()).exp()
    assert rgrad.allclose(x.grad, want)


def in_a_process(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


SHARED = """
    import random, threading
    import rgrad

    n = 1 << 17
    leaf = rgrad.ones(n, requires_grad=True)
    x = rgrad.zeros(n)
    index = rgrad.zeros(n, dtype=rgrad.int64)
    failed = []

    def write():
        x.add_(1.0)
        x[: n // 2] *= 0.5
        index.fill_(random.randrange(8))
        x.data = x.data.clone()

    def read():
        (x + x.flip(0)).sum().item()
        (x * leaf).exp().mean().item()
        x[:8][index]
        x.sort(), x.cumsum(0), x.max()

    def flags():
        for t in (x, leaf):
            t.requires_grad_(t is leaf)
            t.grad = None
            t.detach().numpy()[0], t.shape, repr(t[:3])

    def learn():
        try:
            (leaf * 2).tanh().sum().backward()
            with rgrad.no_grad():
                leaf.sub_(leaf.detach() * 1e-3)
        except RuntimeError as error:
            # Another thread wrote to the leaf in between: the one answer that is allowed.
            assert "modified by an inplace operation" in str(error), error

    def loop(f):
        try:
            for _ in range(60):
                f()
        except BaseException as error:
            failed.append((f.__name__, error))

    threads = [threading.Thread(target=loop, args=(f,)) for f in (write, read, flags, learn) * 2]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not failed, failed
    print("ended")
"""


def test_threads_that_share_tensors_do_not_wait_for_each_other() -> None:
    run = in_a_process(SHARED)
    assert (run.returncode, run.stdout.strip()) == (0, "ended"), run.stderr[-2000:]


ABANDONED = """
    import threading, time
    import rgrad

    a = rgrad.ones(500, 500)

    def loop():
        while True:
            a @ a

    for _ in range(3):
        threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.1)
"""


def test_a_program_ends_while_threads_still_compute() -> None:
    run = in_a_process(ABANDONED)
    assert (run.returncode, run.stderr) == (0, "")
