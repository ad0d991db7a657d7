"""The table of a list of events, with PyTorch's columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._profiler_kinds import DeviceType

if TYPE_CHECKING:
    from .profiler_util import EventList

_WIDTH = 12
_GAP = "  "
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
#: Whose times those of wgpu are.
DEVICE_CLOCKS = {
    "device": "Times of wgpu are the device's own, by timestamp queries.",
    "host": "Times of wgpu are those of the host: its commands run when something is read.",
}
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def _format_time(time_us: float) -> str:
    """A time in the largest unit in which it is at least 1."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return "NaN" if total_time_us == 0 else f"{100.0 * time_us / total_time_us:.2f}%"


def _format_memory(nbytes: float) -> str:
    for exponent, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**exponent:
            return f"{nbytes / 1024**exponent:.2f} {unit}"
    return f"{nbytes} B"


def attribute(name: str) -> str:
    """The attribute that a name of PyTorch's tables stands for: other kinds of devices are ``device`` here."""
    return name.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")


def _shortened(text: str, width: int | None) -> str:
    """A name, with dots at its end if it is too long."""
    return text if width is None or len(text) < width - 3 else text[: width - 3] + "..."


def _end_of(path: str, width: int) -> str:
    """The end of a source line, with dots at its start if it is too long."""
    if len(path) <= width:
        return path
    return "..." + path[len(path) - width + 3 :]


def _width(texts: list[str], limit: int | None) -> int:
    widest = max(len(t) for t in texts) + 4
    return widest if limit is None else min(widest, limit)


class _Column:
    """One column: its header, how wide it is, and the text that an event has in it."""

    def __init__(self, header: str, text: Callable[[Any], str], width: int = _WIDTH, left: bool = False) -> None:
        self.header = header
        self.text = text
        self.width = width
        self.left = left

    def cell(self, text: str) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def table(
    events: EventList,
    *,
    sort_by: str | None,
    row_limit: int,
    max_src_column_width: int | None,
    max_name_column_width: int | None,
    max_shapes_column_width: int | None,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
) -> str:
    """See :meth:`rgrad.autograd.profiler_util.EventList.table`."""
    if not events:
        return ""
    device = events[0].use_device
    device_name = "None" if device is None else device.upper()
    rows: list[Any] = list(events)
    if sort_by is not None:
        by = attribute(sort_by)
        rows.sort(key=lambda event: getattr(event, by), reverse=True)
    cpu_total = sum(e.self_cpu_time_total for e in rows)
    # What devices ran is there in events of its own, and a second time in those of the operations.
    device_total = sum(e.self_device_time_total for e in rows if e.is_legacy or e.device_type != DeviceType.CPU)

    def time(of: Callable[[Any], float]) -> Callable[[Any], str]:
        if time_unit in _UNITS:
            return lambda e: f"{of(e) / _UNITS[time_unit]:.3f}{time_unit}"
        return lambda e: _format_time(of(e))

    columns = [
        _Column(
            "Name",
            lambda e: _shortened(e.key, max_name_column_width),
            _width([e.key for e in rows], max_name_column_width),
        ),
        _Column("Self CPU %", lambda e: str(e.self_cpu_percent)),
        _Column("Self CPU", time(lambda e: e.self_cpu_time_total)),
        _Column("CPU total %", lambda e: str(e.total_cpu_percent)),
        _Column("CPU total", time(lambda e: e.cpu_time_total)),
        _Column("CPU time avg", time(lambda e: e.cpu_time)),
    ]
    if any(e.self_device_time_total > 0 for e in rows):
        columns += [
            _Column(f"Self {device_name}", time(lambda e: e.self_device_time_total)),
            _Column(f"Self {device_name} %", lambda e: _format_time_share(e.self_device_time_total, device_total)),
            _Column(f"{device_name} total", time(lambda e: e.device_time_total)),
            _Column(f"{device_name} time avg", time(lambda e: e.device_time)),
        ]
    if events._profile_memory:
        columns += [
            _Column("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage)),
            _Column("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage)),
        ]
        if device and any(e.self_device_memory_usage > 0 for e in rows):
            columns += [
                _Column(f"{device_name} Mem", lambda e: _format_memory(e.device_memory_usage)),
                _Column(f"Self {device_name} Mem", lambda e: _format_memory(e.self_device_memory_usage)),
            ]
    columns.append(_Column("# of Calls", lambda e: str(e.count)))
    if any(e.input_shapes for e in rows):
        width = _width([str(e.input_shapes) for e in rows], max_shapes_column_width)
        columns.append(_Column("Input Shapes", lambda e: str(e.input_shapes)[:width], width))
    source = None
    frames = [frame for e in rows for frame in e.stack]
    if frames:
        source = _width(frames, max_src_column_width)
        first = source
        columns.append(
            _Column("Source Location", lambda e: _end_of(e.stack[0], first) if e.stack else "", source, left=True)
        )
    flops = [e.flops for e in rows if e.flops > 0]
    if events._with_flops and flops:
        unit = int(min(math.log10(min(flops)) // 3, len(_FLOPS) - 1))
        columns.append(
            _Column(f"Total {_FLOPS[unit]}", lambda e: "--" if e.flops <= 0 else f"{e.flops / 1000.0**unit:8.3f}")
        )

    def line(texts: list[str]) -> str:
        return _GAP.join(c.cell(t) for c, t in zip(columns, texts, strict=True)) + _GAP

    rule = line(["-" * c.width for c in columns])
    full = "=" * (len(rule) - len(_GAP))
    lines = []
    if header is not None:
        lines += [full, header]
    if top_level_events_only:
        lines += [full, "This report only display top-level ops statistics"]
    lines += [rule, line([c.header for c in columns]), rule]
    shown = 0
    for event in rows:
        if shown == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        shown += 1
        event.self_cpu_percent = _format_time_share(event.self_cpu_time_total, cpu_total)
        event.total_cpu_percent = _format_time_share(event.cpu_time_total, cpu_total)
        lines.append(line([c.text(event) for c in columns]))
        if source is not None:
            # The other frames of the stack stand below the first one.
            for frame in [*event.stack[1:], ""]:
                lines.append(line([_end_of(frame, source) if c.header == "Source Location" else "" for c in columns]))
    text = time(float)
    lines += [rule, f"Self CPU time total: {text(cpu_total)}"]
    if device_total > 0:
        lines.append(f"Self {device_name} time total: {text(device_total)}")
    if events._device_clock is not None:
        lines.append(DEVICE_CLOCKS[events._device_clock])
    return "\n".join(lines) + "\n"
