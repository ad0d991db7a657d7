"""Forks while other threads compute: the children work. Forks of a process without other threads: nobody warns."""

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


ALONE = """
import multiprocessing, os
import rgrad

def compute():
    x = rgrad.randn(300_000, requires_grad=True)
    (x * 2).tanh().sum().backward()
    return x.grad.isfinite().all().item()

def child():
    os._exit(0 if compute() else 1)

rgrad.set_num_threads(3)
threads = lambda: len(os.listdir("/proc/self/task"))
assert compute() and threads() >= 3
loader = rgrad.utils.data.DataLoader(rgrad.arange(8), 4, num_workers=2, multiprocessing_context="fork")
for _ in range(3):
    assert sum(batch.sum().item() for batch in loader) == 28
    assert compute()
    worker = multiprocessing.get_context("fork").Process(target=child)
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    assert compute()
    pid = os.fork()
    if pid == 0:
        child()
    assert os.waitpid(pid, 0)[1] == 0
    assert compute() and threads() >= 3
print("nobody warned")
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_threads_of_kernels_end_before_a_fork() -> None:
    """Since 3.12 Python warns of a fork of a process with several threads."""
    command = [sys.executable, "-W", "error", "-c", ALONE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "nobody warned"), done.stdout + done.stderr
