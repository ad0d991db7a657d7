"""The comparison bench measures what it says: ratios, verdicts, and that the numbers are the same."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benches" / "compare"))
    monkeypatch.delitem(sys.modules, "harness", raising=False)
    import harness

    return harness


def sleeper(harness: ModuleType, seconds: float, *results: Any) -> Any:
    def run(n: int) -> None:
        for _ in range(n):
            time.sleep(seconds)

    return harness.Work(run, lambda: [np.asarray(r, dtype=np.float32) for r in results])


def test_ratio_is_the_peers_time_over_ours(harness: ModuleType) -> None:
    ours, theirs = ModuleType("rgrad"), ModuleType("torch")
    settings = harness.Settings(rounds=3, block=0.01, modules={"rgrad": ours, "torch": theirs})

    def make(lib: ModuleType) -> Any:
        return sleeper(harness, 0.002 if lib is ours else 0.010, [1.0, 2.0])

    line = harness.measure(harness.Row("row", "sleeps", 2.0, make, per=10), settings)
    assert 2.0 < line.ratio < 6.0
    assert line.verdict == "pass"
    assert 0.0002 <= line.times["rgrad"] < line.times["torch"]
    line = harness.measure(harness.Row("row", "sleeps", 20.0, make), settings)
    assert line.verdict == "MISS"


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
        time.sleep(n * 1e-4)

    n = harness.calibrate(harness.Work(run, list), 0.02)
    assert counted[0] == 1
    assert counted[-1] == n
    assert 20 <= n <= 2000
