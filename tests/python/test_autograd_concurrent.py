"""Graphs, hooks and leaves in the hands of several threads that the interpreter switches between all the time.

Each test does thousands of passes in all, with the smallest switch interval.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rgrad
from devices import real
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


def leaf(*values: float) -> Any:
    return rgrad.tensor(values, dtype=real(), requires_grad=True)


@pytest.fixture
def tiny_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(n: int, work: Callable[[int], None]) -> list[BaseException]:
    """Runs `work(i)` in `n` threads that begin together; the exceptions that came out."""
    raised: list[BaseException] = []
    start = threading.Barrier(n)

    def run(i: int) -> None:
        start.wait()
        try:
            work(i)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_an_exception_in_one_of_several_threads() -> None:
    x = leaf(1.0, 2.0)
    shared = (x * 3).tanh()

    class Stop(Exception):
        pass

    def work(i: int) -> None:
        for k in range(5000):
            y = (shared * i).sum()
            if i == 0:
                y.grad_fn.register_prehook(stop)
                with pytest.raises(Stop):
                    y.backward(retain_graph=True)
            else:
                (g,) = rgrad.autograd.grad(y, x, retain_graph=True)
                if k % 50 == 0:
                    assert g.shape == (2,)

    def stop(gs: Any) -> None:
        raise Stop

    assert in_threads(4, work) == []
    assert x.grad is None


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_hooks_come_and_go_while_others_run_the_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    out = (y * 3).sum()
    calls: list[int] = []

    def work(i: int) -> None:
        for _ in range(10_000):
            if i % 2:
                handle = y.register_hook(lambda g: calls.append(1))
                node = y.grad_fn.register_prehook(lambda gs: None)
                handle.remove()
                node.remove()
            else:
                (g,) = rgrad.autograd.grad(out, x, retain_graph=True)
                assert g.tolist() == [6.0]

    assert in_threads(4, work) == []
    calls.clear()
    rgrad.autograd.grad(out, x)
    assert calls == []


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_leaves_shared_by_threads_get_every_gradient() -> None:
    x = leaf(0.0)
    lock = threading.Lock()
    counted: list[int] = []

    def count(p: Any) -> None:
        with lock:
            counted.append(1)

    x.register_post_accumulate_grad_hook(count)

    def work(i: int) -> None:
        for _ in range(10_000):
            (g,) = rgrad.autograd.grad((x * 2).sum(), x)
            assert g.tolist() == [2.0]
        for _ in range(1000):
            w = leaf(1.0)
            (w * x.detach()).sum().backward()
            assert w.grad.tolist() == [0.0]
        (x * 2).sum().backward()

    assert in_threads(4, work) == []
    assert len(counted) == 4


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_graphs_end_on_other_threads_than_they_were_built_on() -> None:
    died: list[int] = []

    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.token = Token()
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class Token:
        def __del__(self) -> None:
            died.append(threading.get_ident())

    handed: list[Any] = []
    for k in range(5000):
        y = leaf(1.0)
        y.register_hook(lambda g, k=k: None)
        for _ in range(5):
            y = Marked.apply(y)
        handed.append(y)
    del y

    def work(i: int) -> None:
        while True:
            try:
                y = handed.pop()
            except IndexError:
                return
            if i % 2:
                y.sum().backward()
            del y

    assert in_threads(4, work) == []
    gc.collect()
    assert len(died) == 25_000
    assert threading.get_ident() not in died


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_frozen_memory_and_anomaly_mode_switched_by_many_threads() -> None:
    x = leaf(1.0, 2.0)

    def work(i: int) -> None:
        for k in range(3000):
            with rgrad.autograd.set_detect_anomaly(bool((i + k) % 2), check_nan=bool(k % 3)):
                t = rgrad.ones(2, dtype=real()).freeze_()
                (g,) = rgrad.autograd.grad((x * t).tanh().sum(), x, create_graph=True)
                g.sum().backward(inputs=[leaf(1.0)] if k % 2 else None)
                t.unfreeze_().add_(1)

    assert in_threads(4, work) == []
    rgrad.set_anomaly_enabled(False)


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_threads_over_one_shared_graph() -> None:
    x = leaf(1.0, 2.0)
    shared = (x * 3).tanh()
    outs = [(shared * k).sum() for k in range(1, 9)]
    (want,) = rgrad.autograd.grad(sum(outs), x, retain_graph=True)
    got: list[Any] = []

    def work(i: int) -> None:
        got.extend(rgrad.autograd.grad(outs[i], x, retain_graph=True)[0] for _ in range(3000))

    assert in_threads(8, work) == []
    assert len(got) == 24_000
    total = sum(got) / 3000
    assert rgrad.allclose(total, want, rtol=1e-4)
