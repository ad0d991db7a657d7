"""Timing rgrad beside its peers in one process: interleaved blocks, calibrated loops, medians."""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

# Seconds to wait after a library's block: its idle worker threads spin on and would take the next one's core. PyTorch's
# do so for 7 to 9 ms, those of NumPy's OpenBLAS for more than 50 ms: what came right after them took twice as long.
SETTLE = {"numpy": 0.1}
SETTLE_OTHERS = 0.02


@dataclass
class Work:
    """Something to time, in one library."""

    run: Callable[[int], object]
    """Do the work n times; the loop is inside, so that a call costs nothing per repetition."""
    result: Callable[[], list[Any]]
    """Do it once and return what came out, as NumPy arrays, to be compared with the other libraries'."""


@dataclass
class Row:
    """One line of the table: the same work in rgrad and in its peers."""

    name: str
    what: str
    target: float
    """How many times faster than PyTorch rgrad must be."""
    make: Callable[[ModuleType], Work]
    """The work in rgrad or torch, given the module."""
    per: int = 1
    """Operations in one repetition: times are given per operation."""
    rtol: float = 1e-5
    moved: int = 0
    """Bytes that one operation must read and write at least, where memory is what it waits for."""
    flops: int = 0
    """Additions and multiplications of float32 that one operation takes, where they are what takes the time."""
    others: dict[str, Callable[[], Work]] = field(default_factory=dict)
    """The work in numpy or jax, where it says something."""


@dataclass
class Check:
    """One line of the table that is no ratio: a limit, or something that must succeed."""

    name: str
    what: str
    target: str
    measure: Callable[[Settings], tuple[str, str, bool | None]]
    """Returns what rgrad did, what torch did ('' if not asked), and whether the target is met (None: unknown)."""


@dataclass
class Settings:
    """How long to measure, and with what."""

    threads: int = 2
    rounds: int = 15
    block: float = 0.02
    modules: dict[str, ModuleType] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    copy_rate: float | None = None
    """Bytes per second, read and written, of a plain copy; measured when first asked for."""
    flop_rate: float | None = None
    """Additions and multiplications per second of a product of large matrices; measured when first asked for."""


@dataclass
class Line:
    """What came out for a row: times in seconds per operation by library, and the verdict."""

    name: str
    what: str
    target: str
    times: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None
    said: tuple[str, str] = ("", "")
    rate: float | None = None
    """Bytes per second that rgrad moved, and a plain copy in the same run."""
    copy_rate: float | None = None
    limit: float | None = None
    """Seconds that the arithmetic would take at the speed of a product of large matrices."""
    verdict: str = ""


def load_modules(settings: Settings) -> None:
    """Import rgrad and whichever peers are there, and give each its number of threads."""
    for name in ("rgrad", "torch", "numpy", "jax"):
        try:
            settings.modules[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            settings.missing[name] = f"{name} is not installed"
    for name in ("rgrad", "torch"):
        if name in settings.modules:
            settings.modules[name].set_num_threads(settings.threads)


def block_seconds(work: Work, n: int) -> float:
    start = time.perf_counter_ns()
    work.run(n)
    return (time.perf_counter_ns() - start) * 1e-9


def calibrate(work: Work, block: float) -> int:
    """The number of repetitions that fills a block, found by doubling; this also warms everything up."""
    n = 1
    while (seconds := block_seconds(work, n)) < block:
        n = max(n * 2, min(n * 100, int(n * block / max(seconds, 1e-7))))
    return n


def measure(row: Row, settings: Settings) -> Line:
    """Time `row` in every library that is there: one block each in turn, again and again."""
    line = Line(row.name, row.what, f">= {row.target:g}x")
    works: dict[str, Work] = {}
    for name in ("rgrad", "torch"):
        if name in settings.modules:
            works[name] = row.make(settings.modules[name])
    for name, make in row.others.items():
        if name in settings.modules:
            works[name] = make()

    wrong = different(works, row.rtol)
    counts = {name: calibrate(work, settings.block) for name, work in works.items()}
    blocks: dict[str, list[float]] = {name: [] for name in works}
    time.sleep(max(SETTLE.values()))
    gc.collect()
    gc.disable()
    try:
        for _ in range(settings.rounds):
            for name, work in works.items():
                work.run(max(1, counts[name] // 20))
                blocks[name].append(block_seconds(work, counts[name]) / counts[name] / row.per)
                time.sleep(SETTLE.get(name, SETTLE_OTHERS))
    finally:
        gc.enable()

    line.times = {name: statistics.median(seconds) for name, seconds in blocks.items()}
    if "torch" in blocks:
        # Neighbouring blocks met the same conditions, so their ratios drift less than the times themselves.
        line.ratio = statistics.median(t / r for t, r in zip(blocks["torch"], blocks["rgrad"], strict=True))
        line.verdict = "pass" if line.ratio >= row.target else "MISS"
    if row.moved:
        line.rate = row.moved / line.times["rgrad"]
        line.copy_rate = plain_copy(settings)
    if row.flops:
        line.limit = row.flops / product_rate(settings)
    if wrong:
        line.verdict = f"WRONG: {wrong}"
    return line


def times_slower(slow: Work, fast: Work, settings: Settings) -> float:
    """How many times as long as `fast` the work `slow` takes: the median over neighbouring blocks."""
    for work in (slow, fast):
        work.run(1)  # what is imported or set up by the first call is none of a block's business
    counts = [calibrate(work, settings.block) for work in (slow, fast)]
    ratios = []
    for _ in range(settings.rounds):
        time.sleep(SETTLE_OTHERS)
        a, b = (block_seconds(work, n) / n for work, n in zip((slow, fast), counts, strict=True))
        ratios.append(a / b)
    return statistics.median(ratios)


def plain_copy(settings: Settings) -> float:
    """Bytes per second of the fastest copy that any library makes of 16 MB over 16 MB that are there already."""
    if settings.copy_rate is None:
        works = {}
        for name in settings.modules.keys() & {"rgrad", "torch"}:
            source, target = (settings.modules[name].ones(1 << 22) for _ in range(2))

            def run(n: int, source: Any = source, target: Any = target) -> None:
                for _ in range(n):
                    target.copy_(source)

            works[name] = Work(run, list)
        counts = {name: calibrate(work, settings.block) for name, work in works.items()}
        seconds = min(
            block_seconds(w, counts[name]) / counts[name] for _ in range(settings.rounds) for name, w in works.items()
        )
        settings.copy_rate = (1 << 25) / seconds
    return settings.copy_rate


def product_rate(settings: Settings) -> float:
    """Operations per second of the fastest product of two 1024 x 1024 matrices of float32 that any library makes."""
    if settings.flop_rate is None:
        size, best = 1024, float("inf")
        for name in settings.modules.keys() & {"rgrad", "torch"}:
            a, b = (settings.modules[name].ones(size, size) for _ in range(2))

            def run(n: int, a: Any = a, b: Any = b) -> None:
                for _ in range(n):
                    (a @ b)[0, 0].item()

            work = Work(run, list)
            n = calibrate(work, settings.block)
            best = min(best, *(block_seconds(work, n) / n for _ in range(settings.rounds)))
        settings.flop_rate = 2 * size**3 / best
    return settings.flop_rate


def different(works: dict[str, Work], rtol: float) -> str:
    """Why the libraries' results are not the same numbers, or '' if they are."""
    ours = works["rgrad"].result()
    for name in works.keys() - {"rgrad"}:
        theirs = works[name].result()
        if len(ours) != len(theirs):
            return f"{len(ours)} results, {name} has {len(theirs)}"
        for a, b in zip(ours, theirs, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape:
                return f"shape {a.shape}, {name} has {b.shape}"
            if a.dtype == bool:
                a, b = a.astype(np.int8), b.astype(np.int8)
            scale = float(np.abs(b).max(initial=0.0))
            worst = float(np.abs(a - b).max(initial=0.0))
            if not worst <= rtol * max(scale, 1e-30):
                return f"differs from {name} by {worst:.3g} of {scale:.3g}"
    return ""


def to_numpy(*tensors: Any) -> list[Any]:
    return [t.detach().numpy().copy() for t in tensors]
