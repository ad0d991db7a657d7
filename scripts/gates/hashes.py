"""SHA-256 of the results and gradients of thousands of small calls, for each instruction set of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SETS = ("base", "avx2", "avx512")
WORKER = Path(__file__)
# Results do not depend on it; two threads show if they do.
THREADS = 2


def all_cases() -> Iterator[Any]:
    """Every case, in a fixed order. Imports rgrad, in whichever instruction set the environment names."""
    import case_products as products
    import case_table
    import case_walks as walks

    families: tuple[Any, ...] = (
        case_table.pointwise,
        case_table.table,
        products.matmul,
        products.convolution,
        products.pool,
        products.norm,
        products.softmax,
        products.attention,
        products.recurrent,
        products.resample,
        walks.reductions,
        walks.scans,
        walks.sorts,
        walks.indices,
        walks.casts,
        walks.randoms,
        walks.programs,
    )
    for family in families:
        yield from family()


def work(patterns: list[str]) -> None:
    """Print a line of JSON for each case of one instruction set."""
    import rgrad
    from case_kit import digest

    warnings.simplefilter("ignore")
    rgrad.set_num_threads(THREADS)
    for case in all_cases():
        if not patterns or any(fnmatch(case.name, p) for p in patterns):
            print(json.dumps({"case": case.name, "value": digest(case)}))


def collect(sets: list[str], patterns: list[str], environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The lines of all instruction sets; what this machine lacks is left out, and said."""
    for isa in sets:
        start = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, str(WORKER), *patterns],
            env={**environment, "RGRAD_ISA": isa},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        if ran.returncode != 0:
            print(f"gates: {isa}: stopped with {ran.returncode} after {len(lines)} cases", file=sys.stderr)
        refused = sum(len(line["value"]) != 64 for line in lines)
        seconds = time.perf_counter() - start
        print(f"{isa:8} {len(lines):7} cases  {refused:6} refused  {seconds:6.0f} s")
        yield from ({"case": f"{isa} {line['case']}", "value": line["value"]} for line in lines)


if __name__ == "__main__":
    work(sys.argv[1:])
