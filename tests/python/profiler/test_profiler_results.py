"""The profiler: averages, tables, traces and other files, schedules, and what it refuses."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rgrad
from profiler_events import names
from rgrad import _core
from rgrad.autograd import profiler as autograd_profiler
from rgrad.autograd.profiler_util import FunctionEvent, FunctionEventAvg
from rgrad.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

# ---- averages and tables ---------------------------------------------------------------------------------------------


def headers(table: str) -> list[str]:
    return [h.strip() for h in table.splitlines()[1].split("  ") if h.strip()]


PLAIN = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]


def some_work() -> None:
    x = rgrad.ones(3, 4)
    for _ in range(3):
        x * x
    x @ rgrad.ones(4, 2)


def test_columns() -> None:
    with profile() as prof:
        some_work()
    assert headers(prof.key_averages().table()) == PLAIN
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
        some_work()
    table = prof.key_averages(group_by_input_shape=True, group_by_stack_n=1).table()
    assert headers(table) == [
        *PLAIN[:-1],
        "CPU Mem",
        "Self CPU Mem",
        "# of Calls",
        "Input Shapes",
        "Source Location",
        "Total FLOPs",
    ]


def test_averages_group() -> None:
    x = rgrad.ones(3)
    with profile(record_shapes=True, with_stack=True) as prof:
        x * x
        x * 2
        x * 2
    (one,) = prof.key_averages()
    assert isinstance(one, FunctionEventAvg)
    assert (one.key, one.count, one.input_shapes, one.stack) == ("aten::mul", 3, "", [])
    assert one.cpu_time == pytest.approx(one.cpu_time_total / 3)
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert [(a.count, a.input_shapes) for a in by_shape] == [(1, [[3], [3]]), (2, [[3], []])]
    by_line = prof.key_averages(group_by_stack_n=1)
    assert [a.count for a in by_line] == [1, 1, 1]
    assert all(len(a.stack) == 1 for a in by_line)


def test_table_sorts_limits_and_shortens() -> None:
    with profile() as prof:
        some_work()
        with record_function("a range with a name that is longer than any column should ever be"):
            some_work()
    averages = prof.key_averages()
    rows = averages.table(sort_by="count").splitlines()[3:-2]
    counts = [int(row.split()[-1]) for row in rows]
    assert counts == sorted(counts, reverse=True)
    limited = averages.table(row_limit=2).splitlines()
    assert len(limited) == 3 + 2 + 2
    assert len(averages.table(row_limit=-1).splitlines()) == 3 + len(averages) + 2
    long = next(row for row in averages.table(max_name_column_width=20).splitlines() if "range" in row)
    assert long[:20].strip() == "a range with a na..."
    assert "longer than any column should ever be" in averages.table(max_name_column_width=None)
    text = averages.table(header="A title", top_level_events_only=True)
    assert text.splitlines()[1] == "A title"
    assert "This report only display top-level ops statistics" in text
    assert "Self CPU time total" in text
    units = averages.table(time_unit="ms").splitlines()
    assert all(row.split("%")[1].split()[0].endswith("ms") for row in units[3:-2])
    with pytest.raises(AttributeError, match="no_such"):
        averages.table(sort_by="no_such")


def test_nothing_recorded_gives_an_empty_table() -> None:
    with profile() as prof:
        pass
    assert prof.key_averages().table() == "" == str(prof.events())
    assert prof.key_averages().self_cpu_time_total == 0
    assert len(prof.events()) == 0


def test_averages_refuse_other_things() -> None:
    average = FunctionEventAvg()
    with pytest.raises(AssertionError, match="FunctionEvent"):
        average.add("event")  # type: ignore[arg-type]
    average += FunctionEvent(1, "a", 1, 0.0, 1.0)
    with pytest.raises(AssertionError, match="keys to match"):
        average += FunctionEvent(2, "b", 1, 0.0, 1.0)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_stacks_for_flame_graphs(tmp_path: Path) -> None:
    path = tmp_path / "stacks"
    with profile(with_stack=True) as prof, record_function("slow part"):
        time.sleep(0.002)
    prof.export_stacks(str(path))
    (line,) = path.read_text().splitlines()
    frames, value = line.rsplit(" ", 1)
    assert int(value) >= 2000
    assert " " not in frames
    assert frames.split(";")[-1].endswith("test_stacks_for_flame_graphs")
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(path), "no")
    with profile() as prof:
        some_work()
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(path))


def test_memory_timeline(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        x = rgrad.ones(1000)
        x @ x
    prof.export_memory_timeline(str(path))
    times, held = json.loads(path.read_text())
    assert len(times) == len(held)
    assert times == sorted(times)
    assert max(held) - held[0] >= 4000
    prof.export_memory_timeline(str(tmp_path / "timeline.json.gz"), "cpu")
    for bad, device in ((str(path), "tpu"), (str(tmp_path / "timeline.html"), None)):
        with pytest.raises(ValueError, match="export_memory_timeline"):
            prof.export_memory_timeline(bad, device)
    with profile() as prof:
        pass
    with pytest.raises(ValueError, match="required for memory profiling"):
        prof.export_memory_timeline(str(path))


# ---- schedules -------------------------------------------------------------------------------------------------------


def test_schedule_steps_and_handler(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    ids: list[str | None] = []

    def ready(prof: profile) -> None:
        seen.append([e.trace_name for e in prof.events()])
        ids.append(prof.get_trace_id())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
            for _ in range(10):
                rgrad.ones(2) * 2
                prof.step()
    one = ["aten::ones", "aten::mul"]
    assert seen == [["ProfilerStep#2", *one, "ProfilerStep#3", *one], ["ProfilerStep#6", *one, "ProfilerStep#7", *one]]
    assert prof.step_num == 10
    assert len(set(ids)) == 2
    assert next(a.key for a in prof.key_averages()) == "ProfilerStep*"


def test_schedule_is_a_function_of_the_step() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    actions = [plan(i).name for i in range(7)]
    assert actions == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    first = schedule(wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1)
    assert [first(i).name for i in range(4)] == ["NONE", "WARMUP", "RECORD_AND_SAVE", "NONE"]


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (0, -1, 1), (0, 0, 0)])
def test_bad_schedules(numbers: tuple[int, int, int]) -> None:
    wait, warmup, active = numbers
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(wait=wait, warmup=warmup, active=active)
    with pytest.raises(AssertionError, match="non-negative"):
        schedule(wait=0, warmup=1, active=1)(-1)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_incorrect_schedules_warn() -> None:
    plan = {0: ProfilerAction.WARMUP, 1: ProfilerAction.NONE, 2: ProfilerAction.RECORD, 3: ProfilerAction.NONE}
    with profile(schedule=plan.__getitem__) as prof:
        with pytest.warns(UserWarning, match="WARMUP followed by NONE") as seen:
            prof.step()
        assert seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prof.step()
        with pytest.warns(UserWarning, match="RECORD followed by NONE"):
            prof.step()
    assert not _core._profiler_is_on()


def test_tensorboard_handler(tmp_path: Path) -> None:
    for use_gzip in (False, True):
        handler = rgrad.profiler.tensorboard_trace_handler(str(tmp_path / "log"), "worker", use_gzip)
        with profile(on_trace_ready=handler):
            some_work()
    files = sorted(p.name for p in (tmp_path / "log").iterdir())
    assert [f.startswith("worker.") and ".pt.trace.json" in f for f in files] == [True, True]
    assert sorted(f.endswith(".gz") for f in files) == [False, True]
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RuntimeError, match="Can't create directory"),
        profile(on_trace_ready=rgrad.profiler.tensorboard_trace_handler(str(tmp_path / "file" / "log"))),
    ):
        some_work()


def test_events_over_cycles_and_collection_that_is_switched() -> None:
    for keep, expected in ((True, 4), (False, 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=2), acc_events=keep) as prof:
                for _ in range(2):
                    rgrad.ones(2)
                    prof.step()
        assert len(prof.events()) == expected
    x = rgrad.ones(2)
    with profile() as prof:
        x * x
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x + x
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        x - x
    assert sorted(names(prof.events())) == ["aten::mul", "aten::sub"]


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_profilers_inside_of_each_other() -> None:
    with profile() as outer:
        for inner in (profile(), autograd_profiler.profile()):
            with pytest.raises(RuntimeError, match="profilers cannot be nested"), inner:
                pass
        rgrad.ones(2)
    assert names(outer.events()) == ["aten::ones"]
    prof = autograd_profiler.profile()
    with prof:
        with pytest.raises(RuntimeError, match="not reentrant"):
            prof.__enter__()
        rgrad.ones(2)
    assert names(prof.function_events) == ["aten::ones"]
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass
    assert not _core._profiler_is_on()


def test_counters_may_be_inside_of_profilers() -> None:
    from rgrad.utils.flop_counter import FlopCounterMode

    x = rgrad.ones(3, 3)
    with profile() as prof:
        x * x
        with FlopCounterMode(display=False) as counter:
            x @ x
        x + x
    assert counter.get_total_flops() == 54
    assert names(prof.events()) == ["aten::mul", "aten::matmul", "aten::add"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.key_averages(),
        lambda p: p.events(),
        lambda p: p.export_chrome_trace("no"),
        lambda p: p.export_stacks("no"),
        lambda p: p.stop(),
    ],
)
def test_not_started(ask: Callable[[profile], Any]) -> None:
    with pytest.raises(AssertionError, match="Profiler must be initialized before"):
        ask(profile())


def test_results_before_the_end() -> None:
    with profile() as prof:
        rgrad.ones(2)
        assert len(prof.events()) == 0
        assert len(prof.key_averages()) == 0
        with pytest.raises(RuntimeError, match="has not been stopped"):
            prof.export_chrome_trace("no")
    assert len(prof.events()) == 1
    unstarted = autograd_profiler.profile()
    assert str(unstarted) == repr(unstarted) == "<unfinished torch.autograd.profile>"
    assert unstarted.table() == ""
    with pytest.raises(RuntimeError, match="has not been stopped"):
        unstarted.export_chrome_trace("no")


def test_stopped_twice_warns() -> None:
    prof = profile()
    prof.start()
    prof.stop()
    with pytest.warns(UserWarning, match="was not recording"):
        prof.stop()


def test_stopped_on_another_thread() -> None:
    recorder = autograd_profiler.Recorder()
    recorder.start()
    errors: list[str] = []

    def stop() -> None:
        try:
            recorder.stop()
        except RuntimeError as e:
            errors.append(str(e))

    other = threading.Thread(target=stop)
    other.start()
    other.join()
    assert "the thread that started it" in errors[0]
    assert recorder.stop().raw == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"activities": []}, AssertionError),
        ({"activities": ["cpu"]}, TypeError),
        ({"activities": [ProfilerActivity.CPU] * 2}, ValueError),
        ({"schedule": lambda step: ProfilerAction.DEVICE_STOPPED}, ValueError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        profile(**options)


def test_accepted_options() -> None:
    with autograd_profiler.profile(enabled=False) as prof:
        rgrad.ones(2)
    assert len(prof.function_events) == 0
    with pytest.warns(UserWarning, match="CUDA is not available"):
        autograd_profiler.profile(use_device="cuda")
    with pytest.raises(AssertionError, match="Device-only"):
        autograd_profiler.profile(use_cpu=False)
    with pytest.raises(ValueError, match="non-negative"):
        autograd_profiler.profile(post_processing_timeout_s=-1.0)
    for emit in (autograd_profiler.emit_nvtx, autograd_profiler.emit_itt):
        context = emit(record_shapes=True)
        with context:
            rgrad.ones(2)
        with pytest.raises(RuntimeError, match="not reentrant"), context:
            pass
        with emit(enabled=False):
            pass


def test_an_error_inside_ends_the_recording() -> None:
    def work() -> None:
        rgrad.ones(2)
        _ = 1 / 0

    with pytest.raises(ZeroDivisionError), profile() as prof:
        work()
    assert not _core._profiler_is_on()
    assert names(prof.events()) == ["aten::ones"]


def test_steps_of_tracker() -> None:
    tracker = autograd_profiler.KinetoStepTracker
    before = tracker.current_step()
    assert tracker.increment_step("a test") == before + 1
    assert tracker.erase_step_count("a test")
    assert not tracker.erase_step_count("a test")


def test_the_bare_profiler_has_no_steps() -> None:
    from rgrad.profiler import _KinetoProfile

    prof = _KinetoProfile(record_shapes=True, with_modules=True)
    with pytest.raises(AssertionError, match="Profiler must be initialized before"):
        prof.stop()
    prof.start()
    rgrad.nn.Linear(2, 3)(rgrad.ones(4, 2))
    prof.stop()
    assert "nn.Module: Linear_0" in names(prof.events())
    assert not hasattr(prof, "step")
    assert isinstance(profile(), _KinetoProfile)


def test_execution_traces_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="export_chrome_trace"):
        rgrad.profiler.ExecutionTraceObserver()
