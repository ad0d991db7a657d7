"""What the profiler costs for each operation while it records. Rows of small operations show its cost while off."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

from harness import Check, Settings

LIMIT = 1.5e-6
"""Seconds that one operation may take longer while it is recorded."""
CALLS = 5000


def seconds_per_call(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    for _ in repeat(None, CALLS):
        call()
    return (time.perf_counter_ns() - start) * 1e-9 / CALLS


def added(lib: ModuleType, make: Callable[[ModuleType], Callable[[], object]], rounds: int, **options: Any) -> float:
    """How many seconds longer a call takes under the profiler: the median over neighbouring blocks."""
    call = make(lib)
    seconds_per_call(call)
    differences = []
    for _ in range(rounds):
        off = seconds_per_call(call)
        with lib.autograd.profiler.profile(**options):
            on = seconds_per_call(call)
        differences.append(on - off)
    return statistics.median(differences)


def product(lib: ModuleType) -> Callable[[], object]:
    x = lib.ones(4, 4)
    return lambda: x * x


def recorded_product(lib: ModuleType) -> Callable[[], object]:
    x = lib.ones(4, 4, requires_grad=True)
    return lambda: x * x


def method(lib: ModuleType) -> Callable[[], object]:
    x = lib.ones(4, 4)
    return x.sum


def in_place(lib: ModuleType) -> Callable[[], object]:
    x = lib.ones(4, 4)
    return lambda: x.mul_(1.0)


def check(make: Callable[[ModuleType], Callable[[], object]], **options: Any) -> Callable[[Settings], Any]:
    def measure(settings: Settings) -> tuple[str, str, bool | None]:
        found = {
            name: added(settings.modules[name], make, min(settings.rounds, 7), **options)
            for name in ("rgrad", "torch")
            if name in settings.modules
        }
        said = [f"{found[name] * 1e6:.2f} us" if name in found else "" for name in ("rgrad", "torch")]
        return said[0], said[1], found["rgrad"] <= LIMIT

    return measure


def row(name: str, what: str, make: Callable[[ModuleType], Callable[[], object]], **options: Any) -> Check:
    return Check(name, what, f"<= {LIMIT * 1e6:g} us", check(make, **options))


CHECKS = [
    row("profiler_mul", "profiler on: more time for x * x, 4x4", product),
    row("profiler_mul_grad", "the same with a node", recorded_product),
    row("profiler_sum", "the same for x.sum()", method),
    row("profiler_mul_", "the same for x.mul_(1.0)", in_place),
    row("profiler_shapes", "x * x, 4x4, with shapes and memory", product, record_shapes=True, profile_memory=True),
]
