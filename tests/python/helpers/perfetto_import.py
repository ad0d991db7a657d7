"""What Perfetto makes of a JSON trace: its importer's rules, written again.

They are those of ``src/trace_processor`` of github.com/google/perfetto at ec5d16b1 (August 2026): ``importers/json``
for the text, the fields of an event and what each phase does, ``sorter/trace_sorter`` for the order,
``importers/common/slice_tracker`` for slices that lie in each other, and ``flow_tracker`` for arrows. A statistic here
has the name and the meaning that it has there. Left out are the phases that a trace of a profiler does not use.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

#: ``SliceTracker::kMaxDepth``.
MAX_DEPTH = 512

_INT64_MAX = 2**63 - 1
#: Half of a character that two escapes stand for: the parser of strings takes no such escapes.
_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass
class Slice:
    """A row of the table ``slice``. ``dur`` is -1 while the slice is not ended."""

    name: str
    cat: str
    ts: int
    dur: int
    track: Any
    depth: int
    parent: Slice | None
    args: dict[str, Any]


@dataclass
class Imported:
    """The tables. Arrows are triples of category and the two slices."""

    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[str, Slice, Slice]] = field(default_factory=list)
    counters: dict[tuple[int, str], list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    stats: Counter[str] = field(default_factory=Counter)


def check_text(data: bytes) -> None:
    """Checks what the reader of the file asks of it before it looks at events."""
    assert data.lstrip()[:2] == b'{"', "not taken for JSON"
    # A piece that begins behind the end is an error, and a file is read in pieces of any size.
    assert data.endswith(b"}"), "something follows the end of the trace"
    head, _, events = data.partition(b'"traceEvents"')
    # Outside of events control characters must be escaped, also DEL, which JSON allows.
    assert not _CONTROL.search(head), "a control character"
    assert not _SURROGATE.search(events), "an escape for half of a character"
    data.decode("utf-8")


def _check_header(trace: dict[str, Any]) -> None:
    assert isinstance(trace.get("displayTimeUnit", ""), str), "displayTimeUnit is no string"
    assert isinstance(trace["traceEvents"], list), "traceEvents is not an array"
    assert "systemTraceEvents" not in trace


def _nanoseconds(value: Any) -> int | None:
    """``CoerceToTs``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value == math.trunc(value):
        return int(value) * 1000
    return math.floor(abs(value) * 1000.0 + 0.5) * (1 if value > 0 else -1)


def _uint32(value: Any) -> int:
    """``CoerceToUint32``."""
    return int(value) if isinstance(value, int | float) and 0 <= int(value) < 2**32 else 0


@dataclass
class _Event:
    phase: str
    ts: int
    dur: int
    pid: int
    tid: int
    raw: dict[str, Any]

    @property
    def order(self) -> int:
        """Of events of one moment: ends first, then whole slices, long before short, then the rest."""
        return {"E": -(2**63), "X": _INT64_MAX - self.dur}.get(self.phase, _INT64_MAX)


class _Importer:
    def __init__(self) -> None:
        self.made = Imported()
        self.stacks: dict[Any, list[Slice]] = defaultdict(list)
        self.starts: dict[tuple[int, str, str], Slice] = {}

    def run(self, trace: dict[str, Any]) -> Imported:
        _check_header(trace)
        events = [event for raw in trace["traceEvents"] if (event := self._tokenized(raw)) is not None]
        # Sorting is stable where the importer compares places in the file.
        for event in sorted(events, key=lambda e: (e.ts, e.order)):
            self._parse(event)
        return self.made

    def _tokenized(self, raw: dict[str, Any]) -> _Event | None:
        phase = raw["ph"][:1] if isinstance(raw.get("ph"), str) else ""
        if not phase:
            self.made.stats["json_tokenizer_failure"] += bool(raw)
            return None
        ts = _nanoseconds(raw["ts"]) if "ts" in raw else None
        if ts is None:
            if phase != "M":
                self.made.stats["json_tokenizer_failure"] += 1
                return None
            ts = 0
        if ts < 0:
            self.made.stats["trace_sorter_negative_timestamp_dropped"] += 1
            return None
        dur = _INT64_MAX
        if "dur" in raw:
            found = _nanoseconds(raw["dur"])
            assert found is not None, "the whole trace is refused"
            dur = found
        pid, tid = _uint32(raw.get("pid")), _uint32(raw.get("tid"))
        return _Event(phase, ts, dur, pid, tid or pid, raw)

    def _fail(self, stat: str = "json_parser_failure") -> None:
        self.made.stats[stat] += 1

    def _parse(self, event: _Event) -> None:
        raw, phase = event.raw, event.phase
        name = raw.get("name") or "[No name]"
        cat = raw.get("cat") if isinstance(raw.get("cat"), str) else ""
        args = raw.get("args") if isinstance(raw.get("args"), dict) else {}
        assert isinstance(cat, str)
        assert isinstance(args, dict)
        track = ("thread", event.pid, event.tid)
        if phase == "X":
            if event.dur == _INT64_MAX:
                self._fail()
            elif event.dur < 0:
                self._fail("slice_negative_duration")
            else:
                self._begin(track, event.ts, event.dur, name, cat, args)
        elif phase in "be":
            if "pid" not in raw or not isinstance(raw.get("id"), int | str):
                self._fail()
                return
            track = ("async", event.pid, (cat, raw["id"]))  # type: ignore[assignment]
            if phase == "b":
                self._begin(track, event.ts, -1, name, cat, args)
            else:
                self._end(track, event.ts, name, cat)
        elif phase == "C":
            self._count(event, name, args)
        elif phase in "sf":
            self._flow(event, track, name, cat)
        elif phase == "M":
            self._name(event, name, args)
        else:
            raise AssertionError(f"a phase that is not known here: {phase}")

    # ---- slices ------------------------------------------------------------------------------------------------------

    def _close(self, stack: list[Slice], ts: int, dur: int) -> bool:
        """``MaybeCloseStack``: drops what ended before ``ts``; false if a slice from there would overlap another."""
        unended = False
        for i in reversed(range(len(stack))):
            above = stack[i]
            end = above.ts + above.dur
            if above.dur == -1:
                unended = True
                continue
            if unended:
                if ts <= end:
                    continue
                self._fail("misplaced_end_event")
                for inner in stack[i + 1 :]:
                    inner.dur = end - inner.ts
                del stack[i:]
                unended = False
                continue
            if end < ts or (end == ts and not (above.dur == 0 and dur == 0)):
                stack.pop()
                continue
            if dur != -1 and ts < end < ts + dur:
                return False
        return True

    def _begin(self, track: Any, ts: int, dur: int, name: str, cat: str, args: dict[str, Any]) -> None:
        stack = self.stacks[track]
        if not self._close(stack, ts, dur):
            # It is shown, on a further track, with an error.
            self._fail("slice_spill_overlapping_complete_event")
            return
        if len(stack) >= MAX_DEPTH:
            self._fail("slice_max_depth_exceeded")
            return
        made = Slice(name, cat, ts, dur, track, len(stack), stack[-1] if stack else None, args)
        self.made.slices.append(made)
        stack.append(made)

    def _end(self, track: Any, ts: int, name: str, cat: str) -> None:
        stack = self.stacks[track]
        self._close(stack, ts, -1)
        for i in reversed(range(len(stack))):
            one = stack[i]
            if one.dur == -1 and one.name == name and one.cat == cat:
                one.dur = ts - one.ts
                if i == len(stack) - 1:
                    stack.pop()
                return

    # ---- the rest ----------------------------------------------------------------------------------------------------

    def _flow(self, event: _Event, track: Any, name: str, cat: str) -> None:
        number = event.raw.get("id")
        if isinstance(number, str):
            number = int(number, 16)
        if not isinstance(number, int):
            self._fail("flow_invalid_id")
            return
        # The slice that was begun last, even if it has ended.
        stack = self.stacks[track]
        if not stack:
            self._fail("flow_no_enclosing_slice")
            return
        key = (number % 2**64, cat, name)
        if event.phase == "s":
            if key in self.starts:
                self._fail("flow_duplicate_id")
            else:
                self.starts[key] = stack[-1]
        elif event.raw.get("bp") != "e":
            raise AssertionError("an arrow that ends at the next slice")
        elif key not in self.starts:
            self._fail("flow_end_without_start")
        else:
            one, other = self.starts[key], stack[-1]
            before, after = (other, one) if one.ts > other.ts else (one, other)
            self.made.flows.append((cat, before, after))

    def _count(self, event: _Event, name: str, args: dict[str, Any]) -> None:
        if not args:
            self._fail()
        for series, value in args.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                self._fail()
                continue
            self.made.counters[event.pid, f"{name} {series}"].append((event.ts, float(value)))

    def _name(self, event: _Event, name: str, args: dict[str, Any]) -> None:
        key = "sort_index" if name.endswith("sort_index") else "name"
        if name not in ("process_name", "thread_name", "process_sort_index", "thread_sort_index") or key not in args:
            return
        value = args[key]
        if key == "sort_index":
            if isinstance(value, bool) or not isinstance(value, int | float):
                self._fail()
        elif not isinstance(value, str) or not value:
            self._fail()
        elif name == "process_name":
            self.made.processes[event.pid] = value
        else:
            self.made.threads[event.pid, event.tid] = value


def import_trace(trace: dict[str, Any]) -> Imported:
    """The tables that Perfetto makes of a trace.

    Raises:
        AssertionError: It refuses the whole trace.
    """
    return _Importer().run(trace)
