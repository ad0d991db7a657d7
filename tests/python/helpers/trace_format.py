"""Checks a trace against Chrome's "Trace Event Format", as Perfetto's importer of JSON traces reads it."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from perfetto_import import check_text, import_trace

Slice = dict[str, Any]

#: What every event of a phase needs beside its name.
_NEEDED = {
    "X": ("ts", "dur", "pid", "tid", "cat"),
    "M": ("pid", "args"),
    "C": ("ts", "pid", "args"),
    "s": ("ts", "pid", "tid", "id", "cat"),
    "f": ("ts", "pid", "tid", "id", "cat", "bp"),
    "b": ("ts", "pid", "tid", "id", "cat"),
    "e": ("ts", "pid", "tid", "id", "cat"),
}
_METADATA = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def read(path: Path) -> dict[str, Any]:
    """The trace of a file, compressed or not. Names that come twice in one object are refused, and so is NaN."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        assert len(found) == len(pairs), [name for name, _ in pairs]
        return found

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    check_text(text)
    found: dict[str, Any] = json.loads(text, object_pairs_hook=once, parse_constant=refused)
    return found


def nanoseconds(microseconds: float) -> int:
    """The importer counts whole nanoseconds."""
    whole = round(microseconds * 1000)
    assert abs(whole - microseconds * 1000) < 1e-3, microseconds
    return whole


def _enclosing(slices: list[Slice], at: int) -> list[Slice]:
    """The slices that are open at a time, outermost first."""
    # The importer closes a slice at its end, one without duration at once.
    return [s for s in slices if s["from"] <= at < s["to"]]


def check(trace: dict[str, Any]) -> dict[str, list[Slice]]:
    """Checks a trace, and returns its slices by the name of their track."""
    events = trace["traceEvents"]
    assert trace["displayTimeUnit"] in ("ms", "ns")
    names: dict[tuple[int, int], str] = {}
    tracks: dict[tuple[int, int], list[Slice]] = defaultdict(list)
    open_async: dict[Any, int] = {}
    counters: dict[str, tuple[int, set[str]]] = {}
    for event in events:
        assert isinstance(event["name"], str), event
        assert event["name"], event
        assert event["ph"] in _NEEDED, event
        assert all(key in event for key in _NEEDED[event["ph"]]), event
        for number in (event["pid"], event.get("tid", 0)):
            # The importer keeps them in 32 bits.
            assert type(number) is int, event
            assert 0 <= number < 2**32, event
        if event["ph"] == "M":
            key, kind = _METADATA[event["name"]]
            assert isinstance(event["args"][key], kind), event
            if event["name"] == "thread_name":
                assert (event["pid"], event["tid"]) not in names, "two names of one track"
                names[event["pid"], event["tid"]] = event["args"]["name"]
            continue
        at = nanoseconds(event["ts"])
        assert at >= 0, event
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
            one = {**event, "from": at, "to": at + nanoseconds(event["dur"])}
            tracks[event["pid"], event["tid"]].append(one)
        elif event["ph"] == "C":
            assert event["args"], event
            assert all(type(value) in (int, float) for value in event["args"].values()), event
            before, series = counters.get(event["name"], (at, set(event["args"])))
            assert before <= at, "a counter goes back in time"
            assert series == set(event["args"]), "a counter changes its series"
            counters[event["name"]] = (at, series)
        elif event["ph"] == "b":
            open_async[event["cat"], event["id"]] = at
        elif event["ph"] == "e":
            assert open_async.pop((event["cat"], event["id"])) <= at, event
    assert not open_async, "begun, not ended"
    for track, slices in tracks.items():
        assert track in names, f"the track {track} has no name"
        _check_nesting(slices)
    _check_flows(events, tracks)
    _check_import(trace, sum(map(len, tracks.values())))
    return {names[track]: slices for track, slices in tracks.items()}


def _check_import(trace: dict[str, Any], slices: int) -> None:
    """Perfetto complains about nothing, loses nothing, and binds arrows to the slices that begin where they do."""
    made = import_trace(trace)
    assert not made.stats, made.stats
    events = trace["traceEvents"]
    ranges = sum(event["ph"] == "b" for event in events)
    assert len(made.slices) == slices + ranges
    assert all(one.dur >= 0 for one in made.slices)
    ends = sorted(nanoseconds(event["ts"]) for event in events if event["ph"] in "sf")
    assert ends == sorted(one.ts for _, *both in made.flows for one in both)
    assert set(made.processes) == {event["pid"] for event in events}
    assert sum(map(len, made.counters.values())) == sum(len(e["args"]) for e in events if e["ph"] == "C")


def _check_nesting(slices: list[Slice]) -> None:
    """Slices of one track are inside of each other, or one after the other."""
    open_slices: list[Slice] = []
    for one in sorted(slices, key=lambda s: (s["from"], -s["to"])):
        while open_slices and open_slices[-1]["to"] <= one["from"]:
            open_slices.pop()
        assert not open_slices or one["to"] <= open_slices[-1]["to"], (one["name"], open_slices[-1]["name"])
        open_slices.append(one)


def _check_flows(events: list[Slice], tracks: dict[tuple[int, int], list[Slice]]) -> None:
    """Every arrow has one start and one end, in this order of time, each within a slice of its track."""
    ends: dict[tuple[str, Any], dict[str, Slice]] = defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            both = ends[event["cat"], event["id"]]
            assert event["ph"] not in both, "two ends of one arrow"
            both[event["ph"]] = event
    for both in ends.values():
        assert set(both) == {"s", "f"}, both
        assert both["f"]["bp"] == "e", "without it the arrow ends at the next slice"
        assert both["s"]["name"] == both["f"]["name"]
        assert both["s"]["ts"] <= both["f"]["ts"], both
        for event in both.values():
            inside = _enclosing(tracks[event["pid"], event["tid"]], nanoseconds(event["ts"]))
            assert inside, f"an arrow that is bound to nothing: {event}"


def arrows(trace: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    """The names of the slices that Perfetto's arrows of a kind connect."""
    return sorted((start.name, end.name) for cat, start, end in import_trace(trace).flows if cat == kind)
