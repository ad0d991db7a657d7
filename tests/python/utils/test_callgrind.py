"""Instruction counts: what can be done with them, and a real collection where valgrind is installed."""

from __future__ import annotations

import platform
import re
import sys
from shutil import which

import pytest

import rgrad
from rgrad import nn
from rgrad.utils.benchmark import CallgrindStats, CopyIfCallgrind, FunctionCount, FunctionCounts, TaskSpec, Timer
from rgrad.utils.benchmark import callgrind as of

needs_valgrind = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or which("valgrind") is None,
    reason="valgrind is not here",
)

NOISE = "/x/Objects/dictobject.c:lookdict_unicode [/usr/lib/libpython3.so]"


def counts(inclusive: bool = False, **numbers: int) -> FunctionCounts:
    rows = [FunctionCount(count, f"f.c:{name}") for name, count in numbers.items()]
    return FunctionCounts(tuple(sorted(rows, reverse=True)), inclusive)


def as_dict(found: FunctionCounts) -> dict[str, int]:
    return {row.function: row.count for row in found}


def test_counts_are_a_sequence() -> None:
    found = counts(a=5, b=7)
    assert len(found) == 2
    assert found[0] == FunctionCount(7, "f.c:b")
    assert list(found[1:]) == [FunctionCount(5, "f.c:a")]
    assert found.sum() == 12


def test_counts_are_added_and_subtracted() -> None:
    first, second = counts(a=5, b=7), counts(b=7, c=1)
    assert as_dict(first + second) == {"f.c:b": 14, "f.c:a": 5, "f.c:c": 1}
    # What is equal is gone.
    assert as_dict(first - second) == {"f.c:a": 5, "f.c:c": -1}
    assert as_dict(first * 0.5) == {"f.c:b": 3, "f.c:a": 2}
    with pytest.raises(AssertionError, match="Cannot merge inclusive and exclusive"):
        first + counts(inclusive=True, a=1)


def test_names_are_changed_and_chosen() -> None:
    found = counts(a=5, b=7)
    assert as_dict(found.transform(lambda name: name[:4])) == {"f.c:": 12}
    assert as_dict(found.filter(lambda name: name.endswith("a"))) == {"f.c:a": 5}
    noisy = FunctionCounts((FunctionCount(9, NOISE), *found), False)
    assert as_dict(noisy.denoise()) == as_dict(found)


def test_counts_as_text() -> None:
    lines = repr(counts(a=5, b=12)).splitlines()[1:]
    assert lines == ["  12  f.c:b", "   5  f.c:a", "", "Total: 17"]
    assert "Total" not in repr(counts(inclusive=True, a=5))
    many = FunctionCounts(tuple(FunctionCount(100 - i, f"f.c:{i}") for i in range(30)), False)
    assert len(repr(many).splitlines()) == 1 + 19 + 2
    long = FunctionCounts((FunctionCount(1, "f.c:" + "x" * 300),), True, _linewidth=60)
    (line,) = repr(long).splitlines()[1:]
    assert len(line) <= 60
    assert " ... " in line


def stats(**numbers: int) -> CallgrindStats:
    empty = counts()
    own = counts(**numbers) + FunctionCounts((FunctionCount(9, NOISE),), False)
    return CallgrindStats(TaskSpec("x", "pass"), 10, False, empty, empty, counts(inclusive=True), own, "text")


def test_stats() -> None:
    first, second = stats(a=5), stats(a=2)
    assert (first.counts(), first.counts(denoise=True)) == (14, 5)
    assert as_dict(first.delta(second)) == {"f.c:a": 3}
    assert first.stats(inclusive=True).inclusive
    plain = first.as_standardized()
    assert as_dict(plain.stats()) == {"Objects/dictobject.c:lookdict_unicode": 9, "f.c:a": 5}
    assert plain.stmt_callgrind_out is None
    assert re.search(
        r"Instructions: +14 +5\n +Baseline: +0 +0\n10 runs per measurement, 1 thread\nWarning", repr(first)
    )


def test_what_is_copied() -> None:
    assert CopyIfCallgrind.unwrap_all({"a": CopyIfCallgrind(3, setup="pass"), "b": 4}) == {"a": 3, "b": 4}
    assert CopyIfCallgrind(nn.ReLU()).setup is None
    with pytest.raises(ValueError, match=r"Unsupported type.*Tensor(.|\n)*restricts globals(.|\n)*complex\n  Module"):
        CopyIfCallgrind(rgrad.ones(2))


def test_another_output_than_expected() -> None:
    with pytest.raises(OSError, match="Failed to read"):
        of.parsed("nothing", False)


@needs_valgrind
def test_globals_must_be_marked() -> None:
    with pytest.raises(ValueError, match="requires that globals be wrapped in `CopyIfCallgrind`"):
        Timer("n", globals={"n": 1}).collect_callgrind()
    with pytest.raises(ValueError, match="does not support mocking out `torch`"):
        Timer("1", globals={"torch": 1}).collect_callgrind()


@needs_valgrind
def test_instructions_of_additions() -> None:
    timer = Timer("x + x", setup="x = rgrad.ones(n)", globals={"n": CopyIfCallgrind(8)}, label="add")
    first, second = timer.collect_callgrind(20, repeats=2, retain_out_file=True)
    # The statement calls the operation as often as it runs, in both measurements alike.
    assert any("rgrad" in row.function for row in first.stats())
    assert first.counts() > 3 * first.baseline_exclusive_stats.sum() > 0
    assert abs(first.counts(denoise=True) - second.counts(denoise=True)) < 0.05 * first.counts(denoise=True)
    assert first.stats(inclusive=True)[0].count <= first.counts()
    assert "events: Ir" in (first.stmt_callgrind_out or "")
    assert (first.number_per_run, first.task_spec.label) == (20, "add")


@needs_valgrind
def test_a_statement_that_fails_only_there() -> None:
    timer = Timer("no_such_name if any('rgrad-callgrind' in word for word in sys.argv) else 1", setup="import sys")
    with pytest.raises(OSError, match=r"Failed to collect callgrind profile:(.|\n)*NameError: name 'no_such_name'"):
        timer.collect_callgrind(1, collect_baseline=False)
