"""Writes events as a trace in Chrome's format, which Perfetto (ui.perfetto.dev) opens.

A trace has a track for each thread and one for the queue of a device, a counter of the bytes that tensors hold (with
``profile_memory``), and arrows from each operation to the backward of the node that it made and to what a device ran
for it. The format: "Trace Event Format", chromium.org.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, cast

from .. import _core
from .._runtime.whole_files import text_written_whole, written_whole
from ._profiler_kinds import DeviceType
from ._profiler_table import DEVICE_CLOCKS

if TYPE_CHECKING:
    from ._profiler_events import Recording
    from .profiler_util import EventList, FunctionEvent

#: The name of events for memory that changes outside of operations. They are no slices of a trace.
MEMORY_EVENT_NAME = "[memory]"

#: The number of the queue of a device, in the place of a thread's.
DEVICE_QUEUE = 1_000_000

#: The names of arrows: from an operation to its backward, and to what a device ran for it.
_FLOW, _LAUNCH = "fwdbwd", "ac2g"

#: So deep may slices of one track lie in each other: Perfetto drops those from 512 on.
_DEEPEST = 500

#: Entries of a trace that no metadata may replace; the last two have a meaning for Perfetto.
_OWN_ENTRIES = frozenset(
    {"traceEvents", "traceName", "displayTimeUnit", "baseTimeNanoseconds", "systemTraceEvents", "metadata"}
)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection in this block: it would look at all events again and again, and they are no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def written(path: str) -> Iterator[IO[str]]:
    """A text file to write, compressed if its name ends in ``.gz``. An old one is replaced when it is whole."""
    if path.endswith(".gz"):
        with written_whole(path, durable=False) as file, gzip.open(file, "wt", encoding="utf-8") as out:
            yield cast(IO[str], out)
    else:
        with text_written_whole(path) as out:
            yield out


def _category(event: FunctionEvent) -> str:
    if event.device_type != DeviceType.CPU:
        return "kernel"
    if event.is_user_annotation:
        return "user_annotation"
    return "program" if event.operations else "cpu_op"


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    """What a click on an event shows."""
    shown: dict[str, Any] = {"External id": event.id}
    if event.device_type != DeviceType.CPU:
        shown["Clock"] = "device"
    if event.launched_by is not None:
        shown["Launched by"] = event.launched_by.id
    if event.sequence_nr >= 0:
        shown["Sequence number"] = event.sequence_nr
        shown["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        shown["Input Dims"] = event.input_shapes
        shown["Input type"] = event.input_dtypes
    if event.flops:
        shown["Flops"] = event.flops
    if event.kernel:
        shown["Kernel"] = event.kernel
    if event.stack:
        shown["Call stack"] = event.stack
    if event.operations:
        shown["Operations"] = [f"{name} at {line}" if line else name for name, line in event.operations]
    return shown


class _Clock:
    """Times of a trace: microseconds with three digits, since readers count whole nanoseconds."""

    def __init__(self, recording: Recording | None) -> None:
        self._zero = 0 if recording is None else recording.start

    def at(self, time_us: float) -> int:
        """Nanoseconds, from microseconds since the recording began."""
        return self._zero + round(time_us * 1e3)

    @staticmethod
    def shown(nanoseconds: int) -> float:
        return round(nanoseconds / 1e3, 3)


def _encoded(event: dict[str, Any]) -> str:
    """The JSON text of an event. Perfetto takes no escapes of two surrogates, so such characters stand as they are."""
    text = json.dumps(event, ensure_ascii=False)
    # Half of a pair, as in the name of a file that is no UTF-8, is not a character.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _arrow(name: str, number: int, process: int, ends: tuple[tuple[int, float], tuple[int, float]]) -> list[Any]:
    """An arrow between two slices, each named by its track and its start."""
    (track, start), (other, end) = ends
    both = {"cat": name, "name": name, "id": number, "pid": process}
    return [
        {"ph": "s", **both, "tid": track, "ts": start},
        {"ph": "f", "bp": "e", **both, "tid": other, "ts": end},
    ]


def _flows(events: EventList, process: int, clock: _Clock) -> Iterator[dict[str, Any]]:
    """Arrows from operations to the backward of their nodes, and to what a device ran for them."""

    def place(event: FunctionEvent) -> tuple[int, float]:
        return event.thread, clock.shown(clock.at(event.time_range.start))

    forward: dict[int, FunctionEvent] = {}
    for event in events:
        if event.sequence_nr >= 0 and event.scope != 1 and not event.name.startswith("autograd::engine::"):
            forward.setdefault(event.sequence_nr, event)
    for event in events:
        origin = forward.get(event.sequence_nr) if event.scope == 1 else None
        if origin is not None:
            # Several passes through one node are several arrows.
            yield from _arrow(_FLOW, event.id, process, (place(origin), place(event)))
        if event.launched_by is not None:
            yield from _arrow(_LAUNCH, event.id, process, (place(event.launched_by), place(event)))


def _slices(events: EventList, process: int, clock: _Clock) -> Iterator[dict[str, Any]]:
    """Events as slices of their tracks. Slices nest: a range of the user that does not is on a track of its own.

    So is what lies too deep in others.
    """
    open_until: dict[int, list[int]] = defaultdict(list)
    for event in events:
        if event.name == MEMORY_EVENT_NAME:
            continue
        start, end = clock.at(event.time_range.start), clock.at(event.time_range.end)
        until = open_until[event.thread]
        while until and until[-1] <= start:
            until.pop()
        one = {
            "cat": _category(event),
            "name": event.trace_name or event.name,
            "pid": process,
            "tid": event.thread,
            "ts": clock.shown(start),
            "args": _arguments(event),
        }
        if until and (end > until[-1] or len(until) >= _DEEPEST):
            yield {"ph": "b", "id": event.id, **one}
            yield {"ph": "e", "id": event.id, **one, "ts": clock.shown(end), "args": {}}
            continue
        until.append(end)
        yield {"ph": "X", **one, "dur": clock.shown(end - start)}


def _batches(recording: Recording, process: int) -> Iterator[dict[str, Any]]:
    """What a device that takes no times ran: batches, from their submission to when the host saw that they had run."""
    latest = 0
    for run in sorted(recording.device_runs, key=lambda run: run.start):
        if run.by_host:
            # One runs after the other.
            start, latest = max(run.start, latest), max(run.end, latest)
            if latest > start:
                yield {
                    "ph": "X",
                    "cat": "batch",
                    "name": run.name,
                    "pid": process,
                    "tid": DEVICE_QUEUE,
                    "ts": _Clock.shown(start),
                    "dur": _Clock.shown(latest - start),
                    "args": {"Clock": "host"},
                }


def _counters(recording: Recording, process: int) -> Iterator[dict[str, Any]]:
    """The bytes that tensors hold, at each moment when they change."""
    points = []
    for _, _, start, end, *_, memory, _, _ in recording.raw:
        points.append((start, memory[:2]))
        points.append((end or recording.end, memory[2:]))
    points.sort(key=lambda point: point[0])
    points = [(recording.start, recording.held_before), *points, (recording.end, recording.held_after)]
    # All points of a counter have the same series.
    on_device = any(now[1] for _, now in points)
    held = None
    for moment, now in points:
        if now != held:
            held = now
            values = {"CPU": now[0]} | ({"wgpu": now[1]} if on_device else {})
            yield {
                "ph": "C",
                "name": "Bytes held by tensors",
                "pid": process,
                "tid": 0,
                "ts": _Clock.shown(moment),
                "args": values,
            }


def _trace_events(events: EventList, recording: Recording | None) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    clock = _Clock(recording)
    batches = [] if recording is None else list(_batches(recording, process))
    tracks = {event.thread for event in events} | ({DEVICE_QUEUE} if batches else set())
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "python"}}
    for track in sorted(tracks):
        about = {"ph": "M", "pid": process, "tid": track}
        name = "device queue (wgpu)" if track == DEVICE_QUEUE else f"thread {track}"
        yield {**about, "name": "thread_name", "args": {"name": name}}
        yield {**about, "name": "thread_sort_index", "args": {"sort_index": track}}
    yield from _slices(events, process, clock)
    yield from batches
    yield from _flows(events, process, clock)
    if recording is not None and recording.memory:
        yield from _counters(recording, process)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def write(
    path: str | PathLike[str],
    events: EventList,
    recording: Recording | None = None,
    trace_id: str = "",
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes ``events`` to ``path``, compressed if it ends in ``.gz``.

    Args:
        path: The file.
        events: The single events.
        recording: What they were made from, for the counter of memory.
        trace_id: An identifier of the trace.
        metadata: Further entries, each a JSON text.

    Raises:
        OSError: The file cannot be written.
        ValueError: An entry of ``metadata`` is no JSON, or one that every trace has.
    """
    extra = {}
    for key, text in (metadata or {}).items():
        if key in _OWN_ENTRIES:
            raise ValueError(
                f"export_chrome_trace: {key!r} cannot be the name of metadata: it is a part of every trace"
            )
        try:
            extra[key] = json.loads(text, parse_constant=_no_constant)
        except ValueError as e:
            raise ValueError(f"export_chrome_trace: the metadata {key!r} is no valid JSON: {text!r}") from e
    zero = _core._profiler_clock()[1]
    clock = recording.device_clock if recording is not None else None
    about = {
        "schemaVersion": 1,
        "trace_id": trace_id,
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": zero,
        **({"deviceTimes": DEVICE_CLOCKS[clock]} if clock else {}),
        **extra,
    }
    name = os.fspath(path)
    with written(name) as out, collection_paused():
        out.write(json.dumps(about)[:-1] + ', "traceName": ' + json.dumps(name) + ', "traceEvents": [\n')
        for number, event in enumerate(_trace_events(events, recording)):
            out.write((",\n" if number else "") + _encoded(event))
        # Nothing behind the end: Perfetto refuses a trace of which the last piece that it reads is a line break.
        out.write("\n]}")
