"""Very deep graphs on small stacks, many threads, fork, reentrant backward, garbage collection under load."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from graphs import leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")

SMALL_STACK = 256 * 1024


def on_small_stack(work: Callable[[], Any]) -> Any:
    """Runs `work` on a thread with a 256 KB stack and hands on what it returns or raises."""
    out: list[Any] = []

    def target() -> None:
        try:
            out.append((True, work()))
        except BaseException as error:
            out.append((False, error))

    old = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=target)
        thread.start()
    finally:
        threading.stack_size(old)
    thread.join()
    ok, value = out[0]
    if not ok:
        raise value
    return value


def test_a_million_operations() -> None:
    def work() -> float:
        x = leaf(1.0)
        y = x
        for _ in range(1_000_000):
            y = y + x
        y.backward()
        got = x.grad.item()
        del y
        return got

    assert on_small_stack(work) == 1_000_001.0


def test_a_million_operations_dropped_without_backward() -> None:
    def work() -> bool:
        x = leaf(1.0)
        y = x
        for _ in range(1_000_000):
            y = y * 1.0
        r = weakref.ref(y)
        del y
        return r() is None

    assert on_small_stack(work)


class Step(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (_,) = ctx.saved_tensors
        return g


def test_a_hundred_thousand_functions() -> None:
    def work() -> float:
        x = leaf(1.0)
        y = x
        for _ in range(100_000):
            y = Step.apply(y)
        y.backward()
        got = x.grad.item()
        del y
        gc.collect()
        return got

    assert on_small_stack(work) == 1.0


def test_a_hundred_thousand_functions_dropped_without_backward() -> None:
    def work() -> bool:
        y = leaf(1.0)
        for _ in range(100_000):
            y = Step.apply(y)
        gc.collect()
        r = weakref.ref(y)
        del y
        gc.collect()
        return r() is None

    assert on_small_stack(work)


def test_create_graph_of_a_long_chain() -> None:
    def work() -> tuple[float, float]:
        x = leaf(1.0)
        y = x
        for _ in range(20_000):
            y = (y * x).clamp(max=2.0)
        (g,) = rgrad.autograd.grad(y, x, create_graph=True)
        (h,) = rgrad.autograd.grad(g, x)
        return g.item(), h.item()

    n = 20_001.0
    assert on_small_stack(work) == (n, n * (n - 1))


def test_deep_chain_of_views_and_in_place() -> None:
    def work() -> float:
        x = leaf(1.0, 2.0)
        y = x * 1
        for _ in range(20_000):
            y[:1].mul_(1.0)
        y.sum().backward()
        del y
        return x.grad.sum().item()

    assert on_small_stack(work) == 2.0


def test_printing_the_head_of_a_deep_graph() -> None:
    def work() -> str:
        y = leaf(1.0)
        for _ in range(100_000):
            y = y + 1
        return repr(y) + repr(y.grad_fn)

    assert "AddBackward0" in on_small_stack(work)


def test_wide_graph() -> None:
    x = leaf(1.0)
    wide = 4_000 if x.is_wgpu else 20_000
    rgrad.stack([x * (k % 100) for k in range(wide)]).sum().backward()
    assert x.grad.item() == sum(k % 100 for k in range(wide))


# --- backward inside backward ----------------------------------------------------------------------------


def test_nested_backward_goes_deep() -> None:
    class Nest(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.depth:
                z = leaf(1.0)
                with rgrad.enable_grad():
                    Nest.apply(z, ctx.depth - 1).backward()
                assert z.grad.item() == 2.0
            return g * 2, None

    x = leaf(1.0)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        Nest.apply(x, 150).backward()
    finally:
        sys.setrecursionlimit(limit)
    assert x.grad.item() == 2.0


def test_nested_backward_into_the_same_leaf() -> None:
    w = leaf(3.0)

    class Inner(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with rgrad.enable_grad():
                (w * 10).backward()
            return g

    Inner.apply(w * 2).backward()
    assert w.grad.item() == 12.0


# --- threads ---------------------------------------------------------------------------------------------


def test_backward_in_a_thread_with_the_main_thread_busy() -> None:
    """The lock of the interpreter is given up: a hook of the one runs while the other waits in a kernel."""
    big = rgrad.ones(400, 400, requires_grad=True)
    done = threading.Event()

    def other() -> None:
        x = leaf(1.0)
        x.register_hook(lambda g: done.set())
        (x * 2).backward()

    y = big
    for _ in range(5):
        y = y @ big
    thread = threading.Thread(target=other)
    y.register_hook(lambda g: thread.start())
    y.sum().backward()
    thread.join(30)
    assert done.is_set()


# --- fork ------------------------------------------------------------------------------------------------

FORK = """
    import os, sys, threading
    import rgrad
    x = rgrad.ones(300, 300, requires_grad=True)
    y = (x @ x).exp().mul(1e-9).sum()      # the pool of threads is running
    y.backward(retain_graph=True)
    want = x.grad.clone()
    pid = os.fork()
    if pid == 0:
        x.grad = None
        y.backward()
        z = (x @ x).sum()
        z.backward()
        big = rgrad.ones(2_000_000).exp().sum().item()
        os._exit(0 if big > 5e6 and x.grad is not None else 3)
    (_, status) = os.waitpid(pid, 0)
    y.backward()
    assert rgrad.allclose(x.grad, 2 * want)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_in_the_middle_of_a_program() -> None:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(FORK)]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_while_another_thread_computes() -> None:
    program = """
        import os, sys, threading, time
        import rgrad
        stop = threading.Event()
        def busy():
            a = rgrad.ones(500, 500)
            while not stop.is_set():
                (a @ a).exp_().sum()
        thread = threading.Thread(target=busy)
        thread.start()
        time.sleep(0.2)
        codes = []
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                x = rgrad.ones(200, 200, requires_grad=True)
                (x @ x).tanh().sum().backward()
                os._exit(0 if tuple(x.grad.shape) == (200, 200) else 3)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop.set()
        thread.join()
        sys.exit(max(codes, key=abs))
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_while_others_add_to_a_leaf() -> None:
    """The child finds no leaf in the hands of a thread that it does not have."""
    program = """
        import os, sys, threading
        import rgrad
        leaves = [rgrad.ones(1, requires_grad=True) for _ in range(100)]
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                rgrad.stack(leaves).sum().backward()
        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(50):
            pid = os.fork()
            if pid == 0:
                for leaf in leaves:
                    leaf.grad = None
                rgrad.stack(leaves).sum().backward()
                os._exit(0 if all(leaf.grad.item() == 1 for leaf in leaves) else 3)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop.set()
        for thread in threads:
            thread.join()
        sys.exit(max(codes, key=abs))
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_interrupt_comes_through_backward() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: signal.raise_signal(signal.SIGINT))
    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            y.backward()
    finally:
        signal.signal(signal.SIGINT, before)
    (x * 2).backward()
    assert x.grad.item() == 2.0


# --- garbage ---------------------------------------------------------------------------------------------


def test_collection_in_the_middle_of_backward() -> None:
    def collect(_: Any) -> None:
        gc.collect()

    x = leaf(1.0)
    y = x
    for _ in range(5):
        y = Step.apply(y)
        y.register_hook(collect)
    y.backward()
    assert x.grad.item() == 1.0


def test_graphs_with_cycles_do_not_pile_up() -> None:
    def make() -> Any:
        x = leaf(1.0)
        y = Step.apply(x)
        y.register_hook(lambda g: g * y.detach())
        return weakref.ref(y)

    gc.collect()
    refs = [make() for _ in range(100)]
    gc.collect()
    assert [r() for r in refs if r() is not None] == []


def test_memory_does_not_grow_over_iterations() -> None:
    x = rgrad.ones(1000, requires_grad=True)

    def iteration() -> None:
        y = Step.apply((x * 2).exp())
        y.sum().backward()
        x.grad = None

    iteration()
    gc.collect()
    before = rgrad.memory_allocated()
    for _ in range(50):
        iteration()
    assert rgrad.memory_allocated() == before
