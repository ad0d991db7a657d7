"""Forks while other threads compute: the children work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading, time
import rgrad

kind, stop = sys.argv[1], threading.Event()

def work():
    x, y = rgrad.randn(100_000), rgrad.randn(100_000)
    w = rgrad.randn(100_000, requires_grad=True)
    while not stop.is_set():
        if kind == "programs":
            ((x * y + x).tanh() * y).sum().item()
        elif kind == "passes":
            (w * x).tanh().sum().backward()
        else:
            rgrad.zeros(300_000).add_(1)
            x.sort()
            rgrad.rand(100_000)

threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads:
    t.start()
time.sleep(0.1)
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        try:
            x = rgrad.randn(100_000, requires_grad=True)
            ((x * 2).tanh() * x).sum().backward()
            assert (rgrad.ones(300, 300) @ rgrad.ones(300, 300)).sum().item() == 300.0 ** 3
            os._exit(0)
        except BaseException as e:
            print(repr(e), flush=True)
            os._exit(1)
    end = time.monotonic() + 60
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            break
        if time.monotonic() > end:
            os.kill(pid, 9)
            print("a child hangs", flush=True)
            os._exit(2)
        time.sleep(0.001)
stop.set()
for t in threads:
    t.join()
print("all children worked")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", ["programs", "passes", "kernels"])
def test_children_of_a_busy_process_work(kind: str) -> None:
    done = subprocess.run(
        check=False,
        args=[sys.executable, "-W", "ignore", "-c", PROGRAM, kind],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "all children worked"), done.stdout + done.stderr
