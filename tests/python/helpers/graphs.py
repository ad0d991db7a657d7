"""What many tests of graphs begin with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import rgrad
from devices import real
from rgrad.autograd import Function


def leaf(*values: float) -> Any:
    return rgrad.tensor(values, dtype=real(), requires_grad=True)


class Fails(Function):
    """The identity, whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("in backward")


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs `work(i)` in several threads that begin together, and raises the first exception that comes out."""
    raised: list[BaseException] = []
    start = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            start.wait(30)
            work(i)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]
