"""Instructions per iteration of small programs, counted by callgrind."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Setting up, and one iteration. What is counted is where the overhead of a call is everything.
PROGRAMS = {
    "scalar_chain": (
        "x = rgrad.tensor(0.9, requires_grad=True)",
        "y = x * x + x; y = (y * x).tanh() - x; y.backward(); x.grad = None",
    ),
    "add_4x4": ("a, b = rgrad.ones(4, 4), rgrad.ones(4, 4)", "a + b"),
    "sum_4x4": ("a = rgrad.ones(4, 4)", "a.sum(1)"),
    "matmul_4x4": ("a, b = rgrad.ones(4, 4), rgrad.ones(4, 4)", "a @ b"),
    "softmax_4x4": ("a = rgrad.ones(4, 4)", "a.softmax(1)"),
    "conv2d_4x4": ("x, w = rgrad.ones(1, 2, 4, 4), rgrad.ones(2, 2, 3, 3)", "rgrad.nn.functional.conv2d(x, w)"),
    "index_4x4": ("a, i = rgrad.ones(4, 4), rgrad.tensor([2, 0])", "a[i]"),
    "linear": ("layer, x = rgrad.nn.Linear(8, 4), rgrad.ones(2, 8)", "layer(x)"),
    "mlp_step": (
        (
            "net = rgrad.nn.Sequential(rgrad.nn.Linear(8, 16), rgrad.nn.ReLU(), rgrad.nn.Linear(16, 2)); "
            "x, t, optimizer = rgrad.ones(4, 8), rgrad.zeros(4, 2), rgrad.optim.SGD(net.parameters(), lr=0.01)"
        ),
        "optimizer.zero_grad(); ((net(x) - t) ** 2).mean().backward(); optimizer.step()",
    ),
}
ITERATIONS, BLOCKS = 100, 7
# Before counting, what is done once has been done: the interpreter has specialised its code, caches are filled.
WARM_UP = 100
# callgrind writes what it has counted, and begins anew, when the program enters this function of the C library, which
# nothing but the script calls. Start-up, which differs by some thousand instructions from run to run, is not counted.
MARK = "getloadavg"

SCRIPT = """
import gc, os
import rgrad
rgrad.set_num_threads(1)
rgrad.manual_seed(0)
{setup}
gc.collect()
gc.disable()
def run(n):
    for _ in range(n):
        {body}
run({warm_up})
os.{mark}()
for _ in range({blocks}):
    run({iterations})
    os.{mark}()
"""


def script(name: str) -> str:
    setup, body = PROGRAMS[name]
    return SCRIPT.format(setup=setup, body=body, warm_up=WARM_UP, iterations=ITERATIONS, blocks=BLOCKS, mark=MARK)


def instructions(name: str, environment: dict[str, str]) -> float:
    """The instructions of a block of iterations: the median, as now and then something happens once."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "counts"
        command = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        ran = subprocess.run(
            [*command, sys.executable, "-c", script(name)], env=environment, capture_output=True, text=True, check=False
        )
        # The first part is the start, the last one the end.
        parts = [out.with_name(f"counts.{i + 2}") for i in range(BLOCKS)]
        if ran.returncode != 0 or not all(part.exists() for part in parts):
            raise RuntimeError(f"{name}: callgrind ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
        totals = [re.search(r"^totals: (\d+)", part.read_text(), re.MULTILINE) for part in parts]
    return statistics.median(int(total.group(1)) for total in totals if total)


def collect(names: list[str], isa: str, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A line for each program."""
    if shutil.which("valgrind") is None:
        raise RuntimeError("valgrind is not installed")
    for name in names or PROGRAMS:
        value = instructions(name, {**environment, "RGRAD_ISA": isa}) / ITERATIONS
        print(f"{value:12,.1f} instructions  {name}", flush=True)
        yield {"case": name, "value": value}
