"""The events of a profile over time, as SVG text: a bar for each event below the one around it, for each thread."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ._profiler_kinds import DeviceType
from ._profiler_table import _format_time
from ._profiler_trace import DEVICE_QUEUE, MEMORY_EVENT_NAME

if TYPE_CHECKING:
    from .profiler_util import EventList

_WIDTH, _LEFT, _ROW, _GAP = 1000, 8, 17, 26
#: The width of a character of the bars' text.
_CHARACTER = 5.6
#: Narrower bars are left out where another one of their row has been drawn within this distance.
_NARROW = 0.5
_ENGINE = "autograd::engine::evaluate_function: "
_COLOURS = {
    "range": "#c9ced6",
    "operation": "#8fb8de",
    "backward": "#eab0a2",
    "program": "#a5d3a0",
    "device": "#e8cf7a",
}


def _kind(event: Any) -> str:
    if event.device_type != DeviceType.CPU:
        return "device"
    if event.is_user_annotation:
        return "range"
    if event.operations:
        return "program"
    return "backward" if event.scope == 1 or event.name.startswith(_ENGINE) else "operation"


def _round_step(most: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, of which about six reach ``most``."""
    step = 1e-3
    while True:
        for factor in (1, 2, 5):
            if step * factor * 6 >= most:
                return step * factor
        step *= 10


def picture(events: EventList) -> str:
    """See :meth:`rgrad.autograd.profiler_util.EventList.svg`."""
    shown = [e for e in events if e.name != MEMORY_EVENT_NAME]
    begin = min((e.time_range.start for e in shown), default=0.0)
    end = max((e.time_range.end for e in shown), default=1.0)
    scale = (_WIDTH - 2 * _LEFT) / max(end - begin, 1e-3)

    def x(time: float) -> float:
        return _LEFT + (time - begin) * scale

    depths: dict[int, int] = {}
    rows: dict[int, int] = {}
    for event in shown:
        around = event.cpu_parent
        depth = 0 if around is None or around.thread != event.thread else depths.get(id(around), -1) + 1
        depths[id(event)] = depth
        rows[event.thread] = max(rows.get(event.thread, 0), depth + 1)
    tops: dict[int, float] = {}
    top = 44.0
    for thread in sorted(rows):
        tops[thread] = top + 14
        top = tops[thread] + rows[thread] * _ROW + _GAP - 14
    height = round(top)
    size = f'width="{_WIDTH}" height="{height}"'
    fonts = 'font-family="DejaVu Sans,Arial,sans-serif" font-size="10"'
    heading = f"{len(shown):,} events in {_format_time(end - begin)}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {height}" {fonts}>',
        f'<rect {size} fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="16" font-size="12" fill="#222222">{heading}</text>',
    ]
    at = 230.0
    for kind in [k for k in _COLOURS if any(_kind(e) == k for e in shown)]:
        out.append(f'<rect x="{at}" y="8" width="10" height="10" fill="{_COLOURS[kind]}"/>')
        out.append(f'<text x="{at + 14}" y="16" fill="#555555">{kind}</text>')
        at += 80
    step = _round_step(end - begin)
    for i in range(int((end - begin) / step) + 1):
        tick = x(begin + i * step)
        out.append(f'<path d="M{tick:.1f} 36V{height - 8}" stroke="#eeeeee"/>')
        anchor = "start" if i == 0 else "middle"
        out.append(f'<text x="{tick:.1f}" y="33" text-anchor="{anchor}" fill="#777777">{_format_time(i * step)}</text>')
    for thread, first in tops.items():
        name = "device queue (wgpu)" if thread == DEVICE_QUEUE else f"thread {thread}"
        out.append(f'<text x="{_LEFT}" y="{first - 4:.0f}" fill="#555555">{name}</text>')
    drawn: dict[tuple[int, int], float] = {}
    for event in shown:
        row = event.thread, depths[id(event)]
        left, right = x(event.time_range.start), x(event.time_range.end)
        if right - left < _NARROW and left - drawn.get(row, -1.0) < _NARROW:
            continue
        drawn[row] = max(right, left)
        out.append(_bar(event, left, tops[event.thread] + row[1] * _ROW, right - left))
    out.append("</svg>")
    return "\n".join(out)


def _bar(event: Any, left: float, top: float, width: float) -> str:
    name = event.trace_name or event.name
    time = _format_time(event.time_range.elapsed_us())
    # A light edge keeps neighbours of one colour apart.
    edge = ' stroke="#ffffff" stroke-width="0.8"' if width > 3 else ""
    shape = (
        f'<rect x="{left:.2f}" y="{top:.0f}" width="{max(width, _NARROW):.2f}" height="{_ROW - 2}" '
        f'fill="{_COLOURS[_kind(event)]}"{edge}><title>{escape(name)}: {time}</title></rect>'
    )
    most = int((width - 6) / _CHARACTER)
    if most < 4:
        return shape
    short = name.removeprefix(_ENGINE).removeprefix("torch::autograd::").removeprefix("aten::")
    text = short if len(short) <= most else short[: most - 1] + "…"
    return shape + f'<text x="{left + 3:.2f}" y="{top + 11:.0f}" fill="#222222">{escape(text)}</text>'
