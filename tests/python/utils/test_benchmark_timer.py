"""Timers, measurements and tables of them. No test here says how fast anything is."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import rgrad
from rgrad.utils import benchmark
from rgrad.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def spec(**fields: Any) -> TaskSpec:
    return TaskSpec(**{"stmt": "x * x", "setup": "pass", **fields})


def test_timer_runs_the_statement() -> None:
    calls: list[int] = []
    ticks = count()
    timer = Timer("calls.append(n)", setup="n = 3", globals={"calls": calls}, timer=lambda: float(next(ticks)))
    m = timer.timeit(5)
    assert calls == [3] * 7
    assert (m.number_per_run, m.raw_times, m.median, m.mean, m.iqr) == (5, [1.0], 0.2, 0.2, 0.0)


def test_names_of_the_package_and_threads() -> None:
    before = rgrad.get_num_threads()
    seen: list[int] = []
    Timer("seen.append(torch.get_num_threads() + 0 * rgrad.ones(1).numel())", globals={"seen": seen}).timeit(1)
    assert set(seen) == {1}
    assert rgrad.get_num_threads() == before


def test_results_are_computed_while_it_runs() -> None:
    seen: list[bool] = []
    timer = Timer("seen.append(rgrad.fusion.is_enabled())", globals={"seen": seen})
    timer.timeit(3)
    timer.blocked_autorange(min_run_time=0.001)
    assert set(seen) == {False}
    assert rgrad.fusion.is_enabled()


@pytest.mark.parametrize("how", ["blocked_autorange", "adaptive_autorange"])
def test_autorange(how: str) -> None:
    blocks: list[tuple[int, float]] = []
    m = getattr(Timer("pass"), how)(callback=lambda n, t: blocks.append((n, t)), min_run_time=0.01)
    assert [b[1] for b in blocks] == m.raw_times
    assert {b[0] for b in blocks} == {m.number_per_run}
    assert sum(m.raw_times) >= 0.01


def test_statistics_and_text() -> None:
    m = Measurement(
        10, [1e-5, 2e-5, 3e-5, 4e-5], spec(label="mul", sub_label="4x4", description="rgrad", num_threads=2)
    )
    assert m.median == pytest.approx(2.5e-6)
    assert m.iqr == pytest.approx(1.5e-6)
    assert m.has_warnings
    assert (m.title, m.as_row_name, m.env, m.num_threads) == ("mul: 4x4", "4x4", "Unspecified env", 2)
    assert repr(m).splitlines()[1:] == [
        "mul: 4x4",
        "rgrad",
        "  Median: 2.50 us",
        "  IQR:    1.50 us (1.75 to 3.25)",
        "  4 measurements, 10 runs per measurement, 2 threads",
        "  WARNING: Interquartile range is 60.0% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]
    with pytest.raises(AttributeError, match="no_such"):
        _ = m.no_such
    (merged,) = Measurement.merge([m, m])
    assert merged.number_per_run == 1
    assert merged.times == m.times * 2


def test_table() -> None:
    times = {("small", "rgrad"): 1e-6, ("small", "other"): 3e-6, ("large", "rgrad"): 2e-5, ("large", "other"): 2e-4}
    results = [
        Measurement(1, [t] * 5, spec(label="mul", sub_label=row, description=column))
        for (row, column), t in times.items()
    ]
    table = Compare(results)
    assert str(table).splitlines() == [
        "[------------ mul ------------]",
        "             |  rgrad  |  other",
        "1 threads: --------------------",
        "      small  |    1.0  |    3.0",
        "      large  |   20.0  |  200.0",
        "",
        "Times are in microseconds (us).",
    ]
    table.colorize()
    assert "\033[92m" in str(table)
    table.trim_significant_figures()
    table.highlight_warnings()
    assert "(!" not in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        table.extend_results([3])  # type: ignore[list-item]


def test_small_helpers() -> None:
    assert benchmark.select_unit(3e-6) == ("us", 1e-6)
    assert benchmark.unit_to_english("us") == "microsecond"
    assert benchmark.trim_sigfig(1234.6, 2) == 1200
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]
    with benchmark.set_torch_threads(1):
        assert rgrad.get_num_threads() == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"stmt": 3}, ValueError),
        ({"language": "rust"}, ValueError),
        ({"language": "c++"}, NotImplementedError),
        ({"global_setup": "x"}, ValueError),
    ],
)
def test_bad_timers(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Timer(**arguments)


def test_what_is_not_there() -> None:
    timer = Timer("no_such_name + 1")
    with pytest.raises(NameError):
        timer.timeit(1)
    for ask in (timer.repeat, timer.autorange):
        with pytest.raises(NotImplementedError):
            ask()


def test_callgrind_is_refused_where_there_is_no_valgrind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"If specified, `repeats` must be >= 1"):
        Timer("1").collect_callgrind(repeats=0)
    with pytest.raises(NameError, match="no_such_name"):
        Timer("no_such_name").collect_callgrind()
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(OSError, match="Valgrind is not supported on this platform"):
        Timer("1").collect_callgrind()
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="^Missing: valgrind, callgrind_control, callgrind_annotate$"):
        Timer("1").collect_callgrind()
