"""Lines of the table that are limits or promises: import time, deep graphs on a small stack, the same bits."""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from harness import Check, Settings

IMPORT = """
import time
t0 = time.perf_counter()
import numpy
t1 = time.perf_counter()
import {module}
print(time.perf_counter() - t1)
"""

# The work runs on a thread of 256 KB: whatever recurses over the graph ends the process there.
DEEP = """
import sys, threading, time
import {module} as lib
times, errors = [], []

class Twice(lib.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0
    @staticmethod
    def backward(ctx, grad):
        return grad * 1.0

def chain(n):
    x = lib.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1.0, x.grad

def functions(n):
    x = lib.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = Twice.apply(y)
    y.backward()
    assert x.grad.item() == 1.0, x.grad

def create_graph(n):
    x = lib.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y * x
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert first.item() == n + 1, first
    assert abs(second.item() / (n * (n + 1)) - 1) < 1e-4, second
    del y, first, second

def never_run(n):
    y = lib.tensor(1.0, requires_grad=True)
    for _ in range(n):
        y = y * 1.0
    del y

def work():
    try:
        start = time.perf_counter()
        {task}({n})
        times.append(time.perf_counter() - start)
    except BaseException as error:
        errors.append(repr(error))

threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
if errors:
    sys.exit(errors[0])
print(times[0])
"""


def python(code: str, timeout: float = 600) -> tuple[float | None, str]:
    """Run `code` in a fresh interpreter; return the number that it prints, or None and what went wrong."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None, f"not done in {timeout:g} s"
    if done.returncode < 0:
        return None, f"killed by {signal.Signals(-done.returncode).name}"
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
    return float(done.stdout), ""


def import_time(settings: Settings) -> tuple[str, str, bool | None]:
    names = [name for name in ("rgrad", "torch") if name in settings.modules]
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(max(3, settings.rounds // 2)):
        for name in names:
            seconds, problem = python(IMPORT.format(module=name))
            if seconds is None:
                return problem, "", False
            times[name].append(seconds)
    said = [f"{1e3 * statistics.median(times[name]):.0f} ms" if name in times else "" for name in ("rgrad", "torch")]
    return said[0], said[1], statistics.median(times["rgrad"]) <= 0.060


def deep(task: str, n: int) -> Check:
    what = {
        "chain": "build, backward, drop",
        "functions": "custom Functions, the same",
        "create_graph": "create_graph, twice, drop",
        "never_run": "build and drop only",
    }[task]

    def measure(settings: Settings) -> tuple[str, str, bool | None]:
        said = []
        for name in ("rgrad", "torch"):
            if name not in settings.modules:
                said.append("")
                continue
            seconds, problem = python(DEEP.format(module=name, task=task, n=n))
            said.append(problem or f"{seconds:.2f} s")
        return said[0], said[1], said[0].endswith(" s") and said[0][0].isdigit()

    return Check(f"deep_{task}", f"{n:,} deep, 256 KB stack: {what}", "succeeds", measure)


def results_for_bits(lib: Any) -> list[bytes]:
    """Values and gradients of what is split over threads, as bytes."""
    rng = np.random.default_rng(0)
    a = lib.tensor(rng.standard_normal((1537, 1031), dtype=np.float32), requires_grad=True)
    b = lib.tensor(rng.standard_normal((1031, 513), dtype=np.float32), requires_grad=True)
    product = a @ b
    mixed = (product.tanh() * product.exp().clamp(max=10.0)).softmax(dim=1)
    loss = mixed.square().mean() + a.sum(0).var() + b.logsumexp(dim=1).sum() + (a * a).sum()
    loss.backward()
    return [t.detach().numpy().tobytes() for t in (product, mixed, loss, a.grad, b.grad)]


def same_bits(settings: Settings) -> tuple[str, str, bool | None]:
    said = []
    for name in ("rgrad", "torch"):
        if name not in settings.modules:
            said.append("")
            continue
        lib = settings.modules[name]
        try:
            runs = []
            for threads in (1, 2, 3, 7):
                lib.set_num_threads(threads)
                runs.append(results_for_bits(lib))
        finally:
            lib.set_num_threads(settings.threads)
        differing = sum(any(run[i] != runs[0][i] for run in runs) for i in range(len(runs[0])))
        said.append("same" if not differing else f"{differing} of {len(runs[0])} differ")
    return said[0], said[1], said[0] == "same"


# Frames of rgrad's own package are passed over by the record; code with such a file name counts as one.
FRAMES = """
def outer(n): return middle(n)
def middle(n): return inner(n)
def inner(n): return record(n)
"""


def site_record(settings: Settings) -> tuple[str, str, bool | None]:
    """The core times its own record, since from the outside it is never off; no records at all are the clock's cost."""
    lib = settings.modules["rgrad"]
    record = lib._core._site_bench
    space: dict[str, Any] = {"record": record}
    exec(compile(FRAMES, str(Path(str(lib.__file__)).parent / "nn" / "frames.py"), "exec"), space)

    def fresh(n: int) -> float:
        seconds: float = record(n)
        return seconds

    def median(call: Callable[[int], float], n: int) -> float:
        return statistics.median(call(n) for _ in range(20_001))

    def nanoseconds(call: Callable[[int], float]) -> float:
        rounds = (median(call, 1) - median(call, 0) for _ in range(settings.rounds))
        return 1e9 * statistics.median(rounds)

    once, through = nanoseconds(fresh), nanoseconds(space["outer"])
    return f"{once:.0f}/{through:.0f} ns", "", once <= 60 and through <= 150


CHECKS = [
    Check("import_time", "import rgrad after import numpy", "<= 60 ms", import_time),
    Check("site_record", "call-site record: fresh frame / through nn", "60/150 ns", site_record),
    deep("chain", 1_000_000),
    deep("never_run", 1_000_000),
    deep("functions", 100_000),
    deep("create_graph", 10_000),
    Check("same_bits", "the same bits for 1, 2, 3, 7 threads", "same", same_bits),
]
