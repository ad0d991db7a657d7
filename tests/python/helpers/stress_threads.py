"""Threads that do everything at once on shared tensors: `python stress_threads.py SECONDS DEVICE...`.

Each kind of work checks its own results. A thread that ends no turn for `STALL` seconds fails the run if the process
stood still as well, or has had much of the processor meanwhile: on a busy machine a turn may take long. Then every
thread's stack is on stderr, and so it is where the process hangs as a whole.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np  # before the threads, as everything else: among them an import takes a minute of a loaded machine

import rgrad
import rgrad.optim
from rgrad import Tensor
from rgrad.autograd import Function

N = 1 << 16  # as many as stay pending
STALL = 60.0
IDLE = 1.0  # seconds of the processor in that time, below which the process stands still
ENOUGH = 120.0  # seconds of the processor after which a turn must have ended

Work = Callable[[], None]


class Scaled(Function):
    """3 x, with a context that is part of a cycle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.me = ctx
        return x * 3.0

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        assert repr(x[:2]).startswith("tensor(")
        return g * 3.0


class Shared:
    """What the threads of one device share."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.x = rgrad.full((N,), 0.5, device=device)
        self.small = rgrad.full((4,), 2.0, device=device, requires_grad=True)
        # Passes add ones to the first and count themselves; the gradient of the second is taken away at any time.
        self.counted = rgrad.zeros(N, device=device, requires_grad=True)
        self.cleared = rgrad.zeros(N, device=device, requires_grad=True)
        self.passes = 0
        self.lock = threading.Lock()
        self.board: list[Tensor | None] = [None] * 8
        a = rgrad.full((1,), 0.25, device=device, requires_grad=True)
        y = chain(a, rgrad.full((1,), 0.5, device=device))
        y.backward()
        assert a.grad is not None
        self.want_y, self.want_grad = y.item() * N, a.grad.item()

    def pending(self) -> Tensor:
        """Elements that are 3, not computed yet."""
        return (self.x * 2.0 + 1.0) * 1.5


def chain(a: Tensor, x: Tensor) -> Tensor:
    return ((a * x + x).tanh() * a).sum()


def near(got: float, want: float) -> None:
    assert abs(got - want) <= 1e-3 * abs(want), (got, want)


def all_are(t: Tensor, want: float) -> None:
    least, most = t.min().item(), t.max().item()
    near(least, want)
    near(most, want)


def backward(s: Shared) -> Work:
    a = rgrad.full((N,), 0.25, device=s.device, requires_grad=True)

    def work() -> None:
        y = chain(a, s.x)
        y.backward()
        assert a.grad is not None
        all_are(a.grad, s.want_grad)
        near(y.item(), s.want_y)
        a.grad = None

    return work


def twice(s: Shared) -> Work:
    """A second derivative, and a graph that ends while others run."""
    a = rgrad.full((N,), 2.0, device=s.device, requires_grad=True)

    def work() -> None:
        (g,) = rgrad.autograd.grad((a * a * a).sum(), a, create_graph=True)
        (h,) = rgrad.autograd.grad(g.sum(), a)
        all_are(h, 12.0)

    return work


def count(s: Shared) -> Work:
    def work() -> None:
        (s.counted * 1.0).sum().backward()
        (Scaled.apply(s.cleared) * s.x).sum().backward()
        with s.lock:
            s.passes += 1

    return work


def clear(s: Shared) -> Work:
    def work() -> None:
        s.cleared.grad = None
        s.small.grad = None
        g = s.cleared.grad
        if g is not None:
            assert g.shape == (N,)
        near(rgrad.autograd.grad((s.small * s.small).sum(), s.small)[0][0].item(), 4.0)
        (s.small * 2.0).sum().backward()

    return work


def show(s: Shared) -> Work:
    def work() -> None:
        s.board[random.randrange(8)] = s.pending()
        t = s.board[random.randrange(8)]
        if t is not None:
            assert "3." in repr(t)
            near(t[7].item(), 3.0)
        repr(s.counted), repr(s.counted.grad), repr(s.cleared.grad), repr(s.small), s.x.shape
        y = s.small * 2.0
        assert y.grad_fn is not None
        assert "MulBackward0" in repr(y.grad_fn)
        assert len(y.grad_fn.next_functions) == 2

    return work


def collect(s: Shared) -> Work:
    def work() -> None:
        for _ in range(5):
            y = Scaled.apply(s.small)
            z = y * s.small
            y.register_hook(lambda g, z=z: None)
            y.note = y  # a cycle through the object
        gc.collect()

    return work


def hooked(s: Shared) -> Work:
    a = rgrad.full((N,), 1.0, device=s.device, requires_grad=True)

    def work() -> None:
        y = a * s.x
        seen: list[Tensor] = []

        def double(g: Tensor) -> Tensor:
            seen.append(g)
            return g * 2.0

        handle = y.register_hook(double)
        other = s.cleared.register_hook(lambda g: None)
        assert y.grad_fn is not None
        node = y.grad_fn.register_prehook(lambda gs: None)
        Scaled.apply(y).sum().backward()
        for h in (handle, other, node):
            h.remove()
        assert a.grad is not None
        all_are(a.grad, 3.0)
        all_are(seen[0], 3.0)
        a.grad = None

    return work


def write(s: Shared) -> Work:
    def work() -> None:
        t = s.pending()
        late = t * 2.0
        t.add_(1.0)
        part = t[: N // 2]
        part.mul_(0.5)
        all_are(late, 6.0)
        near(t[0].item(), 2.0)
        near(t[N - 1].item(), 4.0)
        t.data = late.detach()
        all_are(t, 6.0)

    return work


def learn(s: Shared) -> Work:
    p = rgrad.full((N,), 1.0, device=s.device, requires_grad=True)
    optimizer = rgrad.optim.SGD([p], lr=0.5)

    def work() -> None:
        with rgrad.no_grad():
            p.fill_(1.0)
        for _ in range(3):
            optimizer.zero_grad()
            ((p - 3.0) ** 2).sum().backward()
            optimizer.step()  # to the minimum in one step
        all_are(p.detach(), 3.0)

    return work


def move(s: Shared) -> Work:
    def work() -> None:
        t = s.pending().to("cpu") if s.device != "cpu" else s.pending().clone()
        all_are(t, 3.0)
        assert np.all(t.numpy() == 3.0)

    return work


KINDS = [backward, twice, count, clear, show, collect, hooked, write, learn, move]


def main(seconds: float, devices: list[str]) -> None:
    faulthandler.dump_traceback_later(seconds + 4 * STALL, exit=True)
    sys.setswitchinterval(1e-4)
    stop = threading.Event()
    failed: list[tuple[str, BaseException]] = []
    turns: dict[str, int] = {}
    shared = [Shared(d) for d in devices]

    def loop(name: str, kind: Callable[[Shared], Work], s: Shared) -> None:
        try:
            work = kind(s)
            while not stop.is_set():
                work()
                turns[name] += 1
        except BaseException as error:
            failed.append((name, error))
            stop.set()

    threads: list[threading.Thread] = []
    for s in shared:
        for kind in KINDS + [backward, count]:
            name = f"{kind.__name__} {len(threads)} on {s.device}"
            turns[name] = 0
            threads.append(threading.Thread(target=loop, args=(name, kind, s), name=name, daemon=True))
    for t in threads:
        t.start()
    begun = time.monotonic()
    moved = dict.fromkeys(turns, (-1, begun, time.process_time()))

    def check() -> None:
        now, used = time.monotonic(), time.process_time()
        for t in threads:
            if not t.is_alive():
                continue
            if turns[t.name] != moved[t.name][0]:
                moved[t.name] = (turns[t.name], now, used)
            _, moved_at, used_then = moved[t.name]
            if now - moved_at > STALL and not IDLE < used - used_then < ENOUGH:
                took = f"{now - moved_at:.0f} s, of which the process computed {used - used_then:.0f}"
                print(f"{t.name} stands still after {turns[t.name]} turns, for {took}", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(3)

    # Longer than asked for where a slow machine has not let every thread end a turn.
    while not stop.is_set() and (time.monotonic() - begun < seconds or 0 in turns.values()):
        time.sleep(0.05)
        check()
    stop.set()
    while any(t.is_alive() for t in threads):
        time.sleep(0.02)
        check()
    for name, error in failed:
        raise RuntimeError(f"{name} failed after {turns[name]} turns") from error
    for s in shared:
        assert s.counted.grad is not None
        all_are(s.counted.grad, float(s.passes))
        g = s.cleared.grad
        # 1.5 for each pass since it was cleared.
        assert g is None or g.max().item() == g.min().item() == 1.5 * round(g[0].item() / 1.5)
    print(f"{sum(turns.values())} turns of {len(threads)} threads, {min(turns.values())} of the slowest")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
