"""Searches for random autograd programs that rgrad and PyTorch run differently.

    python tests/oracle/autograd_search.py --start 1 --seconds 1800

Programs run in a child, because PyTorch crashes on a few of them; the search goes on behind such a program. What is
found is made as short as it gets and printed. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import rgrad

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from autograd_observer import difference
from autograd_programs import Maker


def kind(text: str) -> str:
    """What a difference is about: its words without numbers and places."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", text).split(":", 1)[-1][:60]


def find(program: list[str], watch: bool) -> tuple[int, str] | None:
    return difference(program, rgrad, torch, watch)


def shorter(program: list[str]) -> Iterator[list[str]]:
    for i in range(len(program) - 1):
        yield program[:i] + program[i + 1 :]
    for i, statement in enumerate(program):
        lines = statement.split("\n")
        if len(lines) > 1:
            yield [*program[:i], "\n".join(line[4:] for line in lines[1:]), *program[i + 1 :]]
        for j in range(1, len(lines) if len(lines) > 2 else 0):
            yield [*program[:i], "\n".join(lines[:j] + lines[j + 1 :]), *program[i + 1 :]]


def shrunk(program: list[str], watch: bool) -> list[str]:
    """A shorter program that differs in the same way."""
    found = find(program, watch)
    if found is None:
        return program
    program, about = program[: found[0] + 1], kind(found[1])
    for candidate in shorter(program):
        smaller = find(candidate, watch)
        if smaller and kind(smaller[1]) == about:
            return shrunk(candidate[: smaller[0] + 1], watch)
    return program


def one(seed: int) -> dict[str, Any] | None:
    """The difference that the program of a seed shows."""
    program, watch = Maker(seed).program(), seed % 3 > 0
    if find(program, watch) is None:
        return None
    program = shrunk(program, watch)
    found = find(program, watch)
    return {
        "seed": seed,
        "watch": watch,
        "program": program,
        "difference": found[1] if found else "only in the long form",
    }


def child(start: int, count: int) -> None:
    torch.set_num_threads(1)
    for seed in range(start, start + count):
        print(json.dumps({"at": seed}), flush=True)
        found = one(seed)
        if found:
            print(json.dumps(found), flush=True)


def search(start: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """What `count` programs from `start` on show, and how many of them ended the process."""
    found, crashed, end = [], 0, start + count
    while start < end:
        command = [sys.executable, __file__, "--child", "--start", str(start), "--count", str(end - start)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        found += [line for line in lines if "program" in line]
        if run.returncode == 0:
            break
        if not lines or ("Segmentation fault" not in run.stderr and run.returncode != -11):
            raise RuntimeError(run.stderr[-2000:])
        if "rgrad" in run.stderr.split("\n  File")[1]:
            raise RuntimeError(f"rgrad crashed at seed {lines[-1]}: {run.stderr[-2000:]}")
        crashed += 1
        start = max(line["at"] for line in lines if "at" in line) + 1
    return found, crashed


def text(found: dict[str, Any]) -> str:
    return "\n".join(
        [f"--- seed {found['seed']}, watch={found['watch']}", *found["program"], f"  => {found['difference'][:900]}"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, help="how many programs")
    parser.add_argument("--seconds", type=float, default=60, help="how long, if there is no count")
    parser.add_argument("--child", action="store_true", help="run in this process and print JSON")
    options = parser.parse_args()
    if options.child:
        import faulthandler

        faulthandler.enable()
        child(options.start, options.count)
        return 0
    seen: set[str] = set()
    start, end = options.start, time.monotonic() + options.seconds
    programs = crashes = 0
    while programs < options.count if options.count else time.monotonic() < end:
        block = min(500, options.count - programs) if options.count else 500
        found, crashed = search(start, block)
        start, programs, crashes = start + block, programs + block, crashes + crashed
        for each in found:
            if kind(each["difference"]) not in seen:
                seen.add(kind(each["difference"]))
                print(text(each), flush=True)
    print(
        f"{programs} programs from seed {options.start} on: {len(seen)} kinds of differences; "
        f"PyTorch crashed in {crashes}"
    )
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
