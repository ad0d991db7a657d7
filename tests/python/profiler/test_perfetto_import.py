"""Perfetto's importer as ``perfetto_import`` has it: cases of its own tests, and one for each statistic."""

from __future__ import annotations

from typing import Any

import pytest

from perfetto_import import MAX_DEPTH, import_trace


def whole(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "cat": "c", **more}


def arrow(phase: str, ts: float, number: Any = 1, **more: Any) -> dict[str, Any]:
    end = {"bp": "e"} if phase == "f" else {}
    return {"ph": phase, "name": "a", "cat": "a", "ts": ts, "pid": 1, "tid": 1, "id": number, **end, **more}


def made(*events: dict[str, Any]) -> Any:
    return import_trace({"displayTimeUnit": "ms", "traceEvents": list(events)})


def test_of_slices_that_begin_together_the_longest_is_outside() -> None:
    # test_x_event_order; a thread 0 is the one that has the number of its process.
    found = made(whole("Child", 1, 5, tid=0), whole("Parent", 1, 10))
    assert [(s.ts, s.dur, s.name, s.depth) for s in found.slices] == [
        (1000, 10000, "Parent", 0),
        (1000, 5000, "Child", 1),
    ]
    assert not found.stats


def test_overlapping_slices_are_an_error() -> None:
    # test_overlapping_complete_event_recovered.
    found = made(whole("outer", 100, 100), whole("inner", 150, 100))
    assert dict(found.stats) == {"slice_spill_overlapping_complete_event": 1}
    assert not made(whole("one", 100, 100), whole("next", 200, 100), whole("last", 200, 0)).stats


def test_times_are_rounded_to_nanoseconds() -> None:
    # test_string_pid_tid has these times.
    (one,) = made(whole("a", 5.1, 500.1)).slices
    assert (one.ts, one.dur) == (5100, 500100)


def test_slices_have_a_deepest() -> None:
    found = made(*[whole(str(k), k, 2000 - 2 * k) for k in range(MAX_DEPTH + 3)])
    assert dict(found.stats) == {"slice_max_depth_exceeded": 3}
    assert max(s.depth for s in found.slices) == MAX_DEPTH - 1


def test_arrows_are_bound_to_the_slice_that_began_last() -> None:
    events = [whole("outer", 0, 100), whole("inner", 10, 20), whole("other", 200, 10)]
    found = made(*events, arrow("s", 10), arrow("f", 200))
    assert [(a.name, b.name) for _, a, b in found.flows] == [("inner", "other")]
    # A slice that has ended is the last one until another begins.
    found = made(*events, arrow("s", 150), arrow("f", 200))
    assert [(a.name, b.name) for _, a, b in found.flows] == [("inner", "other")]


@pytest.mark.parametrize(
    ("stat", "events"),
    [
        ("flow_duplicate_id", [arrow("s", 1), arrow("s", 1), arrow("f", 2)]),
        ("flow_end_without_start", [arrow("f", 2)]),
        ("flow_no_enclosing_slice", [arrow("s", 1, tid=7)]),
        ("flow_invalid_id", [arrow("s", 1, None)]),
        ("json_parser_failure", [{"ph": "C", "name": "n", "ts": 1, "pid": 1, "args": {}}]),
        ("json_parser_failure", [{"ph": "C", "name": "n", "ts": 1, "pid": 1, "args": {"x": "many"}}]),
        ("json_parser_failure", [{"ph": "b", "name": "n", "ts": 1, "pid": 1, "tid": 1}]),
        ("json_parser_failure", [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": 3}}]),
        ("json_tokenizer_failure", [{"name": "n", "ts": 1}]),
        ("json_tokenizer_failure", [{"ph": "C", "name": "n", "pid": 1, "args": {"x": 1}}]),
        ("trace_sorter_negative_timestamp_dropped", [{"ph": "C", "name": "n", "ts": -1, "pid": 1, "args": {"x": 1}}]),
        ("slice_negative_duration", [whole("a", 1, -2)]),
    ],
)
def test_errors(stat: str, events: list[dict[str, Any]]) -> None:
    assert dict(made(whole("around", 0, 100), *events).stats) == {stat: 1}


def test_asynchronous_slices_begin_and_end_by_their_number() -> None:
    def event(phase: str, ts: int, number: int) -> dict[str, Any]:
        return {"ph": phase, "name": "range", "cat": "c", "ts": ts, "pid": 1, "tid": 1, "id": number}

    found = made(event("b", 1, 1), event("b", 2, 2), event("e", 3, 1), event("e", 5, 2))
    assert [(s.ts, s.dur) for s in found.slices] == [(1000, 2000), (2000, 3000)]
    assert not found.stats


@pytest.mark.parametrize("entries", [{"displayTimeUnit": 3}, {"systemTraceEvents": ""}, {"traceEvents": {}}])
def test_traces_that_are_refused(entries: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        import_trace({"displayTimeUnit": "ms", "traceEvents": [], **entries})
