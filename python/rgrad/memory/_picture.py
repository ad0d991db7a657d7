"""Stacked areas over time, as SVG text."""

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from .._runtime.units import bytes_text

# Told apart also by people who see few colours, and legible on white.
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#bbcc33")
_REST = "#bbbbbb"
_REST_NAME = "everything else"
# One column of the picture is one state: the largest of its time.
_COLUMNS = 500
_LEFT, _TOP, _BOTTOM = 72, 44, 40
_ROW = 18


def _nice(most: float) -> float:
    """A round step, so that about five of them reach ``most``."""
    step = 1.0
    while step * 5 < most:
        for factor in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            if step * factor * 5 >= most:
                return step * factor
        step *= 1024
    return step


def _columns(
    start: dict[str, int], changes: Sequence[tuple[float, str, int]]
) -> tuple[list[tuple[float, dict[str, int]]], float]:
    """Times with the bytes of each group; between two of them only the state with the most bytes is kept."""
    end = changes[-1][0] if changes else 0.0
    end = end or 1.0
    now = dict(start)
    total = sum(now.values())
    found: list[tuple[float, dict[str, int]]] = [(0.0, dict(now))]
    column, most = -1, -1
    for time, name, size in changes:
        now[name] = now.get(name, 0) + size
        total += size
        at = min(int(time / end * _COLUMNS), _COLUMNS - 1)
        if at != column:
            column, most = at, total
            found.append((time, dict(now)))
        elif total > most:
            most = total
            found[-1] = (time, dict(now))
    found.append((end, dict(now)))
    return found, end


def _shortened(name: str, room: int) -> str:
    return name if len(name) <= room else "..." + name[-(room - 3) :]


def stacked_areas(
    start: dict[str, int], changes: Sequence[tuple[float, str, int]], title: str, top: int, width: int, height: int
) -> str:
    """Draw how the bytes of several groups change.

    Args:
        start: The bytes of each group at the time 0.
        changes: Time in seconds, group, bytes that come or (negative) go; in order of time.
        title: The text above.
        top: So many groups have an area of their own.
        width: In pixels.
        height: In pixels, with the legend.
    """
    columns, end = _columns(start, changes)
    most_of: dict[str, int] = {}
    for _, groups in columns:
        for name, size in groups.items():
            most_of[name] = max(most_of.get(name, 0), size)
    ranked = sorted((name for name in most_of if most_of[name] > 0), key=lambda name: -most_of[name])
    shown, rest = ranked[:top], ranked[top:]
    layers: list[tuple[str, str, tuple[str, ...]]] = [
        (name, _COLOURS[k % len(_COLOURS)], (name,)) for k, name in enumerate(shown)
    ]
    if rest:
        layers.append((_REST_NAME, _REST, tuple(rest)))
    per_row = max(1, (width - _LEFT) // 400)
    legend = -(-len(layers) // per_row) * _ROW
    plot_width, plot_height = width - _LEFT - 20, max(height - _TOP - _BOTTOM - legend, 80)
    full = _TOP + plot_height + _BOTTOM + legend
    most = max((sum(groups.values()) for _, groups in columns), default=0)
    step = _nice(max(most, 1) * 1.0001)
    high = step * -(-max(most, 1) // step)

    def x(time: float) -> float:
        return _LEFT + plot_width * time / end

    def y(size: float) -> float:
        return _TOP + plot_height * (1 - size / high)

    box = f'viewBox="0 0 {width} {full:.0f}" width="{width}" height="{full:.0f}"'
    head = f"{escape(title)}: {bytes_text(most)} at the peak"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{full:.0f}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" fill="#222222">{head}</text>',
    ]
    tick = 0.0
    while tick <= high:
        out.append(f'<path d="M{_LEFT} {y(tick):.1f}H{_LEFT + plot_width}" stroke="#e4e4e4"/>')
        out.append(
            f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#555555">{bytes_text(tick)}</text>'
        )
        tick += step
    base = [0] * len(columns)
    for name, colour, members in layers:
        above = [low + sum(groups.get(m, 0) for m in members) for low, (_, groups) in zip(base, columns, strict=True)]
        if any(high_ > low for low, high_ in zip(base, above, strict=True)):
            out.append(
                f'<path d="{_outline(columns, base, above, x, y)}" fill="{colour}">'
                f"<title>{escape(name)}: at most {bytes_text(max(most_of[m] for m in members))}</title></path>"
            )
        base = above
    tick = 0.0
    while tick <= end:
        anchor = "end" if tick > 0.97 * end else "middle"
        out.append(
            f'<text x="{x(tick):.1f}" y="{_TOP + plot_height + 18}" text-anchor="{anchor}" fill="#555555">'
            f"{_seconds(tick, end)}</text>"
        )
        tick += _time_step(end)
    out.append(f'<path d="M{_LEFT} {_TOP}V{_TOP + plot_height}H{_LEFT + plot_width}" fill="none" stroke="#888888"/>')
    cell = (width - _LEFT) // per_row
    for k, (name, colour, members) in enumerate(layers):
        left, line = _LEFT + cell * (k % per_row), _TOP + plot_height + _BOTTOM + _ROW * (k // per_row)
        label = _shortened(name, (cell - 90) // 7)
        out.append(f'<rect x="{left}" y="{line - 10}" width="11" height="11" fill="{colour}"/>')
        out.append(
            f'<text x="{left + 17}" y="{line}" fill="#222222">{escape(label)}'
            f'<tspan fill="#777777" dx="6">{bytes_text(max(most_of[m] for m in members))}</tspan></text>'
        )
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _time_step(end: float) -> float:
    """A round part of the time: at most six of them."""
    step = 1e-9
    while True:
        for factor in (1, 2, 5):
            if step * factor * 6 >= end:
                return step * factor
        step *= 10


def _seconds(time: float, end: float) -> str:
    if end < 0.001:
        return f"{time * 1e6:.4g} us"
    return f"{time * 1e3:.4g} ms" if end < 1 else f"{time:.4g} s"


def _outline(
    columns: Sequence[tuple[float, dict[str, int]]],
    base: Sequence[int],
    above: Sequence[int],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> str:
    """The area between two lines of steps."""
    path = [f"M{x(columns[0][0]):.1f} {y(above[0]):.1f}"]
    back = [(columns[0][0], base[0])]
    for k in range(1, len(columns)):
        time = columns[k][0]
        if above[k] != above[k - 1]:
            path.append(f"H{x(time):.1f}V{y(above[k]):.1f}")
        if base[k] != base[k - 1]:
            back.append((time, base[k]))
    path.append(f"H{x(columns[-1][0]):.1f}")
    path += [f"V{y(low):.1f}H{x(time):.1f}" for time, low in reversed(back)]
    return "".join(path) + "Z"
