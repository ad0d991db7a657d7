"""Writes events as a trace in Chrome's format, which Perfetto (ui.perfetto.dev) opens.

A trace has a track for each thread, a counter of the bytes that tensors hold (with ``profile_memory``), and an arrow
from each operation to the backward of the node that it made.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, cast

from .. import _core

if TYPE_CHECKING:
    from ._profiler_events import Recording
    from .profiler_util import EventList, FunctionEvent

#: The name of events for memory that changes outside of operations. They are no slices of a trace.
MEMORY_EVENT_NAME = "[memory]"

_FLOW = "fwdbwd"


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
    """A text file to write, compressed if its name ends in ``.gz``."""
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as out:
            yield cast(IO[str], out)
    else:
        with open(path, "w", encoding="utf-8") as out:
            yield out


def _category(event: FunctionEvent) -> str:
    if event.is_user_annotation:
        return "user_annotation"
    return "program" if event.operations else "cpu_op"


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    """What a click on an event shows."""
    shown: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        shown["Sequence number"] = event.sequence_nr
        shown["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        shown["Input Dims"] = event.input_shapes
        shown["Input type"] = event.input_dtypes
    if event.flops:
        shown["Flops"] = event.flops
    if event.stack:
        shown["Call stack"] = event.stack
    if event.operations:
        shown["Operations"] = [f"{name} at {line}" if line else name for name, line in event.operations]
    return shown


def _flows(events: EventList, process: int, at: float) -> Iterator[dict[str, Any]]:
    """Arrows from operations to the backward of their nodes."""
    forward: dict[int, FunctionEvent] = {}
    for event in events:
        if event.sequence_nr >= 0 and event.scope != 1 and not event.name.startswith("autograd::engine::"):
            forward.setdefault(event.sequence_nr, event)
    for event in events:
        origin = forward.get(event.sequence_nr) if event.scope == 1 else None
        if origin is None:
            continue
        for phase, end in (("s", origin), ("f", event)):
            flow = {
                "ph": phase,
                "id": event.sequence_nr,
                "pid": process,
                "tid": end.thread,
                "ts": at + end.time_range.start,
                "cat": _FLOW,
                "name": _FLOW,
            }
            yield flow | ({"bp": "e"} if phase == "f" else {})


def _counters(recording: Recording, process: int, at: float) -> Iterator[dict[str, Any]]:
    """The bytes that tensors hold, at each moment when they change."""
    points = []
    for _, _, start, end, *_, memory, _ in recording.raw:
        points.append((start, memory[:2]))
        points.append((end or recording.end, memory[2:]))
    points.sort(key=lambda point: point[0])
    held = None
    for moment, now in [(recording.start, recording.held_before), *points, (recording.end, recording.held_after)]:
        if now != held:
            held = now
            values = {"CPU": now[0]} | ({"wgpu": now[1]} if recording.held_after[1] or now[1] else {})
            yield {
                "ph": "C",
                "name": "Bytes held by tensors",
                "pid": process,
                "ts": at + (moment - recording.start) / 1e3,
                "args": values,
            }


def _trace_events(events: EventList, recording: Recording | None, at: float) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "python"}}
    for thread in sorted({event.thread for event in events}):
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": thread,
            "args": {"name": f"thread {thread}"},
        }
    for event in events:
        if event.name == MEMORY_EVENT_NAME:
            continue
        yield {
            "ph": "X",
            "cat": _category(event),
            "name": event.trace_name or event.name,
            "pid": process,
            "tid": event.thread,
            "ts": at + event.time_range.start,
            "dur": event.time_range.elapsed_us(),
            "args": _arguments(event),
        }
    yield from _flows(events, process, at)
    if recording is not None and recording.memory:
        yield from _counters(recording, process, at)


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
        ValueError: An entry of ``metadata`` is no JSON.
    """
    extra = {}
    for key, text in (metadata or {}).items():
        try:
            extra[key] = json.loads(text)
        except ValueError as e:
            raise ValueError(f"export_chrome_trace: the metadata {key!r} is no valid JSON: {text!r}") from e
    zero = _core._profiler_clock()[1]
    at = recording.start / 1e3 if recording is not None else 0.0
    about = {
        "schemaVersion": 1,
        "trace_id": trace_id,
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": zero,
        "deviceTimes": "host: a device runs its commands when something is read",
        **extra,
    }
    name = os.fspath(path)
    with written(name) as out, collection_paused():
        out.write(json.dumps(about)[:-1] + ', "traceName": ' + json.dumps(name) + ', "traceEvents": [\n')
        for number, event in enumerate(_trace_events(events, recording, at)):
            out.write((",\n" if number else "") + json.dumps(event))
        out.write("\n]}\n")
