"""The kernels that compute the rows of benches/compare, found by sampling with perf."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Seconds of samples, and samples in one of them.
SECONDS, RATE = 0.3, 997
# Fewer say nothing: perf needs time until it samples, more of it on a machine that is busy.
FEWEST = 100
LEAST = 0.1
# Rows that say most in little time.
QUICK = (
    "exp_*",
    "sum_*",
    "matmul_*",
    "conv*",
    "*pool*",
    "softmax*",
    "layer_norm*",
    "attention_512*",
    "lstm_1",
    "sort*",
)
# Waiting for work and moving it to other threads is no kernel.
WAITING = ("threads::", "memory::")


def kernel(symbol: str) -> str:
    """Module path and function below backend::cpu of a symbol as perf prints it, or '' if it is not there."""
    found = re.search(r"\brgrad_kernels::backend::cpu::([^\s<>]*(?:<[^<>]*>::[^\s<>]*)*)", symbol)
    if found is None:
        return ""
    name = re.sub(r"::h[0-9a-f]{16}$", "", re.sub(r"<[^<>]*>", "", found.group(1))).strip(":")
    name = name.replace("::::", "::")
    return "" if name.startswith(WAITING) else name


def shares(symbols: list[str]) -> dict[str, float]:
    """The share of the samples that each kernel has; those below half of LEAST are left out."""
    counts = Counter(kernel(s) for s in symbols)
    total = len(symbols)
    return {k: round(n / total, 3) for k, n in counts.most_common() if k and n / total >= LEAST / 2}


def rows() -> list[Any]:
    """All rows that run on the CPU: those of each file of rows."""
    import importlib

    sys.path.append(str(ROOT / "benches" / "compare"))
    found: list[Any] = []
    for path in sorted((ROOT / "benches" / "compare").glob("rows_*.py")):
        if "wgpu" not in path.stem:
            found += getattr(importlib.import_module(path.stem), "ROWS", [])
    return found


def sample(run: Any, directory: Path) -> list[str]:
    """The symbols that samples of this process met while it repeated `run`, for longer where they are too few."""
    for attempt in range(5):
        found = sample_for(SECONDS * 2**attempt, run, directory)
        if len(found) >= FEWEST:
            return found
    raise RuntimeError(f"{len(found)} samples are too few")


def sample_for(seconds: float, run: Any, directory: Path) -> list[str]:
    """The same, for so long."""
    begin = time.perf_counter()
    run(1)
    once = max(time.perf_counter() - begin, 1e-7)
    block = max(1, int(0.02 / once))
    run(min(block, 1000))
    data = directory / "perf.data"
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-o", str(data), "-p", str(os.getpid())]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as perf:
        begin = time.perf_counter()
        # perf needs some of this time until it samples.
        while time.perf_counter() - begin < seconds + 0.15:
            run(block)
        perf.send_signal(signal.SIGINT)
    script = subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "ip,sym"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    # An address, then the symbol.
    return [line.strip().partition(" ")[2] for line in script.stdout.splitlines() if line.strip()]


def work(patterns: list[str]) -> None:
    """Print a line of JSON for each row that fits a pattern."""
    import rgrad

    rgrad.set_num_threads(2)
    with tempfile.TemporaryDirectory() as directory:
        for row in rows():
            if patterns and not any(fnmatch(row.name, p) for p in patterns):
                continue
            begin = time.perf_counter()
            try:
                found = sample(row.make(rgrad).run, Path(directory))
                line = {"case": row.name, "value": shares(found), "samples": len(found)}
            except Exception as error:  # one row that fails must not hide the others
                line = {"case": row.name, "value": {f"{type(error).__name__}: {error}": 1.0}, "samples": 0}
            print(json.dumps({**line, "seconds": round(time.perf_counter() - begin, 1)}), flush=True)


def collect(patterns: list[str], isa: str, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A line for each row."""
    if shutil.which("perf") is None:
        raise RuntimeError("perf is not installed")
    command = [sys.executable, __file__, *patterns]
    settings = {**environment, **({"RGRAD_ISA": isa} if isa else {})}
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for text in worker.stdout:
            line = json.loads(text)
            told = ", ".join(f"{k} {s:.0%}" for k, s in line["value"].items() if s >= LEAST) or "none has 10 %"
            print(f"{line['case']:24} {line['samples']:5} samples  {told}", flush=True)
            yield {"case": line["case"], "value": line["value"]}
    if worker.returncode != 0:
        raise RuntimeError(f"the worker ended with {worker.returncode}")


if __name__ == "__main__":
    work(sys.argv[1:])
