"""Graphs, hooks and leaves in the hands of several threads that the interpreter switches between all the time.

Each test does thousands of passes in all, with the smallest switch interval.
"""

from __future__ import annotations

import gc
import math
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import in_threads, leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


class Doubled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 + x.detach() * 0


@pytest.fixture
def tiny_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


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

    in_threads(4, work)
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

    in_threads(4, work)
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

    in_threads(4, work)
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

    in_threads(4, work)
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

    in_threads(4, work)
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

    in_threads(8, work)
    assert len(got) == 24_000
    total = sum(got) / 3000
    assert rgrad.allclose(total, want, rtol=1e-4)


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_independent_graphs_in_threads() -> None:
    def work(n: int) -> None:
        for k in range(2000):
            x = leaf(float(n), float(k))
            y = (x * x).neg().exp().sum()
            y.backward()
            assert x.grad.tolist() == pytest.approx([-2.0 * v * math.exp(-v * v) for v in (n, k)])

    in_threads(4, work)


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_threads_share_a_leaf() -> None:
    """Accumulation from several threads loses no gradient."""
    w = leaf(1.0)

    def work(_: int) -> None:
        for _ in range(3000):
            (w * 2).backward()

    in_threads(4, work)
    assert w.grad.item() == 24_000.0


@pytest.mark.cpu_only
@pytest.mark.usefixtures("tiny_switches")
def test_python_functions_in_threads() -> None:
    def work(n: int) -> None:
        for _ in range(500):
            x = leaf(float(n))
            y = x
            for _ in range(10):
                y = Doubled.apply(y)
            y.backward()
            assert x.grad.item() == 1024.0

    in_threads(4, work)
