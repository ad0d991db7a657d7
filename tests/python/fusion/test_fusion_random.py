"""Random programs give the same bits whether results stay pending or not, and float64's values where these are smooth.

`RGRAD_FUSION_MINUTES=10` goes on with new programs for so long; `RGRAD_FUSION_SEED` says where to begin, and
`RGRAD_FUSION_DEVICE=wgpu` where they run.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rgrad
from fusion_draw import make
from fusion_programs import Step, difference, run, smaller, told
from rgrad import _core

MINUTES = float(os.environ.get("RGRAD_FUSION_MINUTES", "0"))
FIRST = int(os.environ.get("RGRAD_FUSION_SEED", "1000"))
DEVICE = os.environ.get("RGRAD_FUSION_DEVICE", "cpu")


@pytest.fixture(autouse=True)
def products_wait() -> Iterator[None]:
    before = _core._set_fusion_least(1 << 14)
    yield
    _core._set_fusion_least(before)


def check_bits(seed: int, length: int = 30, device: str = "cpu") -> None:
    """Fused against unfused; what differs is told by the smallest program that still does."""

    def differs(steps: list[Step]) -> str:
        return difference(run(steps, False, device=device), run(steps, True, device=device))

    steps = make(seed, length)
    if not differs(steps):
        return
    least = smaller(steps, lambda fewer: bool(differs(fewer)))
    what = differs(least) or "nothing any more: it is not the same in every run"
    pytest.fail(f"seed {seed}: unfused and fused differ in {what}\n{told(least)}")


def check_float64(seed: int, length: int = 25, *, well: bool = True) -> None:
    """Every float that a program of smooth steps shows, beside the same program in float64.

    A program that is not known to be well conditioned, as the softmax of a fourth power is not, may be off by what some
    roundings of every step would make of it.
    """
    steps = make(seed, length, smooth=True)
    narrow, wide = run(steps, True), run(steps, False, wide=True)
    moved: list[Any] = []
    for n, (a, b) in enumerate(zip(narrow, wide, strict=False)):
        if (refused(a) or refused(b)) and a != b:
            return  # types that are refused together may be one type in the other precision: the programs part here
        if isinstance(a, tuple) and not refused(a):
            assert a[1:-1] == b[1:-1], f"seed {seed}\n{told(steps)}"
            scale = max(1.0, float(np.abs(b[-1]).max(initial=0.0)))
            worst = float(np.abs(a[-1] - b[-1]).max(initial=0.0))
            if well or worst <= 2e-5 * scale:
                assert worst <= 2e-5 * scale, f"seed {seed}: off by {worst} of {scale}\n{told(steps)}"
                continue
            moved = moved or run(steps, False, wide=True, nudge=2.0**-22)
            assert moved[n][1:-1] == b[1:-1], f"seed {seed}\n{told(steps)}"
            spread = float(np.abs(moved[n][-1] - b[-1]).max(initial=0.0))
            assert worst <= 4 * spread <= 0.1 * scale, f"seed {seed}: off by {worst} of {scale}\n{told(steps)}"
        elif isinstance(a, tuple):
            assert a[:2] == b[:2]
    assert len(narrow) == len(wide)


def refused(entry: Any) -> bool:
    """Whether an entry of a record tells an error."""
    return isinstance(entry, tuple) and isinstance(entry[-1], str)


@pytest.mark.parametrize("seed", range(24))
def test_fused_is_unfused_bit_for_bit(seed: int) -> None:
    check_bits(seed)


@pytest.mark.rotate(take=3)
@pytest.mark.wgpu
@pytest.mark.parametrize("seed", range(8))
def test_fused_is_unfused_bit_for_bit_on_wgpu(seed: int) -> None:
    before = rgrad.fusion.counts()
    check_bits(seed, device="wgpu")
    after = rgrad.fusion.counts()
    assert after.programs > before.programs
    assert after.steps > before.steps
    rgrad.wgpu.synchronize()


@pytest.mark.parametrize("seed", range(8))
def test_fused_is_near_float64(seed: int) -> None:
    check_float64(seed)


def test_programs_are_fused_and_say_much() -> None:
    """What the tests above compare is there: results were pending, values were looked at, few steps failed."""
    before = rgrad.fusion.counts()
    records = [run(make(seed), True) for seed in range(4)]
    after = rgrad.fusion.counts()
    assert after.programs - before.programs >= 8
    assert after.steps - before.steps >= 16
    assert after.bytes_not_written > before.bytes_not_written
    total = 0
    for record in records:
        seen = [e for e in record if isinstance(e, tuple) and not refused(e)]
        failed = [e for e in record if refused(e)]
        total += len(seen)
        assert len(failed) <= len(seen)
    assert total >= 10 * len(records)
    before = rgrad.fusion.counts()
    run(make(0), False)
    assert rgrad.fusion.counts() == before


def test_a_difference_is_found_and_made_small() -> None:
    """The comparison sees one changed bit, and the search leaves the steps that it needs."""
    steps = make(3)
    record = run(steps, False)
    changed: list[Any] = [*record]
    n = next(n for n, e in enumerate(record) if isinstance(e, tuple) and isinstance(e[-1], np.ndarray) and e[-1].size)
    other = record[n][-1].copy()
    other.reshape(-1).view(np.uint8)[0] ^= 1
    changed[n] = (*record[n][:-1], other)
    assert difference(record, changed).startswith(f"entry {n} ")
    assert not difference(record, run(steps, False))
    guilty = next(s for s in steps if s.verb not in ("leaf", "from_numpy"))
    assert smaller(steps, lambda fewer: guilty in fewer) == [guilty]


@pytest.mark.parametrize("minute", range(math.ceil(MINUTES)))
def test_for_minutes(minute: int) -> None:
    """A minute each, since no test may take longer than the limit of the whole suite."""
    end = time.monotonic() + 60 * min(1.0, MINUTES - minute)
    first = seed = FIRST + 100_000 * minute
    while time.monotonic() < end:
        check_bits(seed, length=20 + seed % 60, device=DEVICE)
        if DEVICE == "cpu":
            check_float64(seed, length=10 + seed % 30, well=False)
        seed += 1
    print(f"{seed - first} programs on {DEVICE}, seeds {first} to {seed - 1}")
