"""The comparison bench measures what it says: ratios, verdicts, and that the numbers are the same."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from places import ROOT

pytestmark = pytest.mark.usefixtures("device")


class Clock:
    """A clock that only sleeping moves: what the harness measures does not depend on how busy the machine is."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benches" / "compare"))
    monkeypatch.delitem(sys.modules, "harness", raising=False)
    import harness

    monkeypatch.setattr(harness, "time", Clock())
    return harness


def sleeper(harness: ModuleType, seconds: float, *results: Any) -> Any:
    def run(n: int) -> None:
        for _ in range(n):
            harness.time.sleep(seconds)

    return harness.Work(run, lambda: [np.asarray(r, dtype=np.float32) for r in results])


def test_ratio_is_the_peers_time_over_ours(harness: ModuleType) -> None:
    ours, theirs = ModuleType("rgrad"), ModuleType("torch")
    settings = harness.Settings(rounds=3, block=0.01, modules={"rgrad": ours, "torch": theirs})

    def make(lib: ModuleType) -> Any:
        return sleeper(harness, 0.002 if lib is ours else 0.010, [1.0, 2.0])

    line = harness.measure(harness.Row("row", "sleeps", 2.0, make, per=10), settings)
    assert line.ratio == pytest.approx(5.0)
    assert line.verdict == "pass"
    assert line.times == pytest.approx({"rgrad": 0.0002, "torch": 0.001})
    assert harness.measure(harness.Row("row", "sleeps", 4.9, make), settings).verdict == "pass"
    assert harness.measure(harness.Row("row", "sleeps", 5.1, make), settings).verdict == "MISS"


def test_a_slow_round_does_not_move_the_ratio(harness: ModuleType) -> None:
    ours, theirs = ModuleType("rgrad"), ModuleType("torch")
    settings = harness.Settings(rounds=5, block=0.01, modules={"rgrad": ours, "torch": theirs})

    def make(lib: ModuleType) -> Any:
        calls = 0

        def run(n: int) -> None:
            nonlocal calls
            calls += 1
            disturbed = 20 if lib is ours and calls in (8, 9) else 1
            harness.time.sleep(n * disturbed * (0.002 if lib is ours else 0.006))

        return harness.Work(run, list)

    line = harness.measure(harness.Row("row", "sleeps", 2.0, make), settings)
    assert line.ratio == pytest.approx(3.0)
    assert line.times == pytest.approx({"rgrad": 0.002, "torch": 0.006})


def test_other_numbers_are_called_wrong_however_fast(harness: ModuleType) -> None:
    ours, theirs = ModuleType("rgrad"), ModuleType("torch")
    settings = harness.Settings(rounds=1, block=0.001, modules={"rgrad": ours, "torch": theirs})

    def make(lib: ModuleType) -> Any:
        return sleeper(harness, 0.001, [1.0, 2.0 if lib is ours else 2.1])

    line = harness.measure(harness.Row("row", "sleeps", 0.1, make), settings)
    assert line.verdict.startswith("WRONG: differs from torch by 0.1")


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], ""),
        ([[1.0, 2.0]], [[1.0, 2.000001]], ""),
        ([[1.0, 2.0]], [[1.0, 2.1]], "differs from torch"),
        ([[1.0, float("nan")]], [[1.0, 2.0]], "differs from torch"),
        ([[1.0, 2.0]], [[[1.0, 2.0]]], "shape"),
        ([[1.0], [2.0]], [[1.0]], "2 results, torch has 1"),
    ],
)
def test_comparing_results(harness: ModuleType, ours: Any, theirs: Any, said: str) -> None:
    works = {"rgrad": sleeper(harness, 0, *ours), "torch": sleeper(harness, 0, *theirs)}
    found = harness.different(works, 1e-5)
    assert found.startswith(said) if said else found == ""


def test_calibration_fills_a_block(harness: ModuleType) -> None:
    counted: list[int] = []

    def run(n: int) -> None:
        counted.append(n)
        harness.time.sleep(n * 1e-4)

    n = harness.calibrate(harness.Work(run, list), 0.02)
    assert counted == [1, 100, 200]
    assert n == 200
