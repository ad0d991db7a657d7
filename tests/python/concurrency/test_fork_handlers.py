"""Handlers of a fork that compute, allocate and collect garbage: others have registered them, in any order."""

from __future__ import annotations

import os

import pytest

from fresh import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

PROGRAM = """
import gc, os, signal, sys

class Cycle:
    pass

def work(where):
    import rgrad
    # Garbage that holds pending results: they end in the next collection.
    for _ in range(20):
        c = Cycle()
        c.me, c.t = c, (rgrad.ones(200_000) * 3).exp()
    del c
    gc.collect()
    x = rgrad.rand(100_000, requires_grad=True)
    (x * 2).tanh().sum().backward()
    assert x.grad.shape == (100_000,), where

def register():
    os.register_at_fork(
        before=lambda: work("before"), after_in_parent=lambda: work("parent"), after_in_child=lambda: work("child")
    )

signal.alarm(60)
register()
import rgrad
register()
pending = (rgrad.ones(300_000) * 2).exp()
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        work("in the child")
        assert pending[0].item() > 7
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print(pending[1].item() > 7)
"""


def test_handlers_may_do_anything() -> None:
    assert run(PROGRAM) == "True\n"
