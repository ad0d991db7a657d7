"""How many bytes tensors held over time, as JSON."""

from __future__ import annotations

import json

from ..autograd._profiler_trace import written
from ..autograd.profiler import profile


def write(path: str, profiler: profile, device: str | None) -> None:
    """Writes ``[microseconds, bytes]`` of a finished recording; see ``profile.export_memory_timeline``."""
    name = (device or "cpu").split(":")[0]
    if name not in ("cpu", "wgpu"):
        raise ValueError(f"export_memory_timeline: got device {device!r}, expected 'cpu' or 'wgpu'")
    if path.endswith(".html"):
        raise ValueError("export_memory_timeline: pages are not written; give a path that ends in .json or .json.gz")
    recording = profiler._recording
    if recording is None or profiler.is_recording:
        raise RuntimeError("export_memory_timeline: the profiler has not been stopped; leave its block first")
    at = ("cpu", "wgpu").index(name)
    points = [(recording.start, recording.held_before[at])]
    for _, _, start, end, *_, memory, _, _ in recording.raw:
        points += [(start, memory[at]), (end or recording.end, memory[at + 2])]
    points.append((recording.end, recording.held_after[at]))
    points.sort(key=lambda point: point[0])
    kept = [p for i, p in enumerate(points) if i == 0 or p[1] != points[i - 1][1]]
    text = json.dumps([[(moment - recording.start) / 1e3 for moment, _ in kept], [held for _, held in kept]])
    with written(path) as out:
        out.write(text)
