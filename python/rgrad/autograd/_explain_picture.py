"""A gradient's way to a parameter as SVG text: an arrow with its norm for each edge, and what is wrong where it is."""

from __future__ import annotations

from html import escape
from math import isfinite, isnan, log10
from os.path import basename
from typing import TYPE_CHECKING

from .._runtime.lines import UNKNOWN, Line

if TYPE_CHECKING:
    from ._explain import EdgeNorm, GradientExplanation

_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"
#: The width of a character of the text, in pixels.
_CHARACTER = 6.65
_MARGIN, _PADDING = 12.0, 8.0
_LINE, _HEADING = 14.0, 16.0
_BOX, _GAP, _MORE = 36.0, 34.0, 22.0
#: The bar of a norm.
_BAR, _BAR_HEIGHT = 130.0, 9.0
#: Boxes and headings are no wider than so many characters.
_MOST_CHARACTERS = 60
_HEADING_CHARACTERS = 108
#: Fill, border and text.
_PLAIN = ("#eaf2fb", "#4f7cac")
_END = ("#e6f4e8", "#3f8a4f")
_BAD = ("#fdeaea", "#c0392b")
_BAR_COLOUR, _BAD_COLOUR, _GREY = "#6f9bd1", "#c0392b", "#57606a"


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    """The text with its middle left out where it is too long."""
    if len(text) <= most:
        return text
    left = most // 3
    return f"{text[:left]}…{text[len(text) - (most - left - 1) :]}"


def _broken(text: str, most: int) -> list[str]:
    """The text in lines of at most so many characters, where words permit."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [_cut(line, most) for line in lines]


def _line(line: Line) -> str:
    """A line of code; where it is too long without its folder and the end of its function."""
    if line == UNKNOWN:
        return ""
    text = str(line)
    if len(text) > _MOST_CHARACTERS:
        text = f"…/{basename(line.file)}:{line.number} in {line.function}"
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


class _Box:
    """A node, or what ends the path."""

    def __init__(self, title: str, below: str, colours: tuple[str, str], dashed: bool = False) -> None:
        self.title, self.below = _cut(title), _cut(below)
        self.tip = f"{title}\n{below}".strip()
        self.colours, self.dashed = colours, dashed

    @property
    def width(self) -> float:
        """As wide as its text."""
        return max(len(self.title), len(self.below)) * _CHARACTER + 2 * _PADDING

    @property
    def height(self) -> float:
        """One or two lines."""
        return _BOX if self.below else _BOX - _LINE


class _Gap:
    """What lies between two boxes: the gradient on an edge, edges that are left out, or the place where it ends."""

    def __init__(self, text: str, share: float | None = None, bad: bool = False, kind: str = "edge") -> None:
        self.text, self.share, self.bad, self.kind = text, share, bad, kind
        self.height = _MORE if kind == "more" else _GAP

    @property
    def width(self) -> float:
        """Of the bar and the text."""
        return (0 if self.share is None else _BAR + 8) + len(self.text) * _CHARACTER * (1.03 if self.bad else 1)


def _share(edge: EdgeNorm, least: float, most: float) -> float:
    """The part of the bar that a norm fills: its place between the smallest and the largest, by orders of magnitude."""
    if not isfinite(edge.norm):
        return 1.0
    if edge.norm == 0:
        return 0.0
    low, high = log10(least), log10(most)
    return 1.0 if high - low < 1e-9 else 0.08 + 0.92 * (log10(edge.norm) - low) / (high - low)


def _edge_text(edge: EdgeNorm, others: list[EdgeNorm]) -> str:
    parts = [f"norm {edge.norm:.3g}", f"rms {edge.rms:.3g}", f"shape {edge.shape}"]
    parts += [f"{n:,} {what}" for n, what in ((edge.nan, "nan"), (edge.inf, "inf")) if n]
    if edge.zero:
        parts.append(f"{100 * edge.zero / max(edge.numel, 1):.0f} % zero")
    if others:
        largest = max((e.norm for e in others), key=lambda n: (isnan(n), n))
        parts.append(f"{len(others)} other way{'s' * (len(others) > 1)}, norm {largest:.3g}")
    return " · ".join(parts)


def _way(found: GradientExplanation, shown: int) -> list[_Box | _Gap]:
    """What is drawn from above to below, in the direction in which a gradient goes."""
    path = found.path
    if not path:
        return _without_path(found)
    norms = [e.norm for e in path if isfinite(e.norm) and e.norm > 0]
    least, most = min(norms, default=1.0), max(norms, default=1.0)
    begins = next((k for k, edge in enumerate(path) if edge is found.first), 0)
    items: list[_Box | _Gap] = []
    before = -1
    for k, edge in enumerate(path):
        # The two ends, and what is around the first trouble.
        if min(k, len(path) - 1 - k, abs(k - begins)) >= shown:
            continue
        if k - before > 1:
            items.append(_Gap(f"{k - before - 1:,} more", kind="more"))
        before = k
        bad = edge is found.first
        items.append(_Box(edge.operation, _line(edge.line), _BAD if bad else _PLAIN))
        items.append(_Gap(_edge_text(edge, found.beside[k]), _share(edge, least, most), bad or edge.nan + edge.inf > 0))
    if before < len(path) - 1:
        items.append(_Gap(f"{len(path) - 1 - before:,} more", kind="more"))
    items.append(_Box(found.name, _line(path[-1].to_line), _END))
    return items


def _without_path(found: GradientExplanation) -> list[_Box | _Gap]:
    top, end = _Box("the tensor", "", _END), _Box(found.name, "", _END)
    if found.norm is not None:
        return [top, _Gap(f"norm {found.norm:.3g}"), end]
    if found.cut is None:
        why = {"unused": "no operation leads there", "no_grad": "it does not require grad"}
        return [top, _Gap(why.get(found.status, "an operation returned no gradient"), kind="cut", bad=True), end]
    box = _Box(found.cut.operation, _line(found.cut.line), _BAD, dashed=True)
    return [top, _Gap("", kind="none"), box, _Gap("no gradient goes on from here", kind="cut", bad=True), end]


def picture(found: GradientExplanation, shown: int) -> str:
    """See :meth:`rgrad.autograd.graph.GradientExplanation.svg`."""
    items = _way(found, shown)
    text = str(found).splitlines()
    heading = _broken(text[0], _HEADING_CHARACTERS)
    # The rows of the table are the picture.
    remarks = [line for line in text[1:] if line.startswith(("  what ", "  another path"))]
    notes = [line for remark in remarks[:6] for line in _broken(remark, _HEADING_CHARACTERS)]
    boxes = [item for item in items if isinstance(item, _Box)]
    half = max(b.width for b in boxes) / 2
    centre = _MARGIN + max(half, 60.0)
    right = centre + 16
    beside = max(g.width for g in items if isinstance(g, _Gap))
    written = max(map(len, heading + notes)) * _CHARACTER * 1.03
    width = max(right + beside, centre + half, _MARGIN + written) + _MARGIN
    out: list[str] = []
    y = _MARGIN + 11
    colour = _END[1] if found.status == "ok" else _BAD_COLOUR
    for line in heading:
        out.append(f'<text x="{_MARGIN:g}" y="{y:.0f}" font-weight="bold" fill="{colour}">{escape(line)}</text>')
        y += _HEADING
    for line in notes:
        out.append(f'<text x="{_MARGIN:g}" y="{y:.0f}" fill="{_GREY}">{escape(line)}</text>')
        y += _LINE
    y -= 2
    for item in items:
        out += _drawn(item, centre, y) if isinstance(item, _Box) else _between(item, centre, y, right)
        y += item.height
    size = f'width="{width:.0f}" height="{y + _MARGIN:.0f}"'
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {y + _MARGIN:.0f}" '
                f'font-family="{_FONT}" font-size="11" fill="#1b1f24">'
            ),
            f'<rect {size} fill="#ffffff"/>',
            *out,
            "</svg>\n",
        ]
    )


def _drawn(box: _Box, centre: float, top: float) -> list[str]:
    fill, line = box.colours
    dash = ' stroke-dasharray="5 3"' if box.dashed else ""
    out = [
        (
            f'<g><title>{escape(box.tip)}</title><rect x="{centre - box.width / 2:.1f}" y="{top:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="5" fill="{fill}" stroke="{line}"{dash}/>'
        ),
        f'<text x="{centre:.1f}" y="{top + 15:.1f}" text-anchor="middle" font-weight="bold">{escape(box.title)}</text>',
    ]
    if box.below:
        out.append(
            f'<text x="{centre:.1f}" y="{top + 29:.1f}" text-anchor="middle" fill="#373f49">{escape(box.below)}</text>'
        )
    return [*out, "</g>"]


def _between(gap: _Gap, centre: float, top: float, right: float) -> list[str]:
    colour = _BAD_COLOUR if gap.bad else "#5d6b7a"
    middle, end = top + _GAP / 2, top + _GAP
    if gap.kind == "more":
        return [
            (
                f'<path d="M{centre:.1f} {top + 2:.1f}V{top + _MORE - 2:.1f}" stroke="{_GREY}" stroke-width="2" '
                'stroke-dasharray="2 4"/>'
            ),
            f'<text x="{right:.1f}" y="{top + _MORE / 2 + 4:.1f}" fill="{_GREY}">{escape(gap.text)}</text>',
        ]
    if gap.kind == "none":
        return [f'<path d="M{centre:.1f} {top:.1f}V{end:.1f}" stroke="#c4ccd4" stroke-dasharray="3 3"/>']
    out = []
    if gap.kind == "cut":
        # Scissors would need a font: two strokes across the line.
        out.append(f'<path d="M{centre:.1f} {top:.1f}V{end:.1f}" stroke="#c4ccd4" stroke-dasharray="3 3"/>')
        out.append(
            f'<path d="M{centre - 6:.1f} {middle - 6:.1f}l12 12m0 -12l-12 12" stroke="{_BAD_COLOUR}" stroke-width="2"/>'
        )
    else:
        out.append(f'<path d="M{centre:.1f} {top:.1f}V{end - 6:.1f}" stroke="{colour}" stroke-width="1.4"/>')
        out.append(f'<path d="M{centre:.1f} {end:.1f}l-3.5 -7h7z" fill="{colour}"/>')
    left = right
    if gap.share is not None:
        bar = middle - _BAR_HEIGHT / 2
        fill, filled = _BAD_COLOUR if gap.bad else _BAR_COLOUR, _BAR * gap.share
        out.append(f'<rect x="{left:.1f}" y="{bar:.1f}" width="{_BAR:g}" height="{_BAR_HEIGHT:g}" fill="#eef1f4"/>')
        out.append(f'<rect x="{left:.1f}" y="{bar:.1f}" width="{filled:.1f}" height="{_BAR_HEIGHT:g}" fill="{fill}"/>')
        left += _BAR + 8
    bold = ' font-weight="bold"' if gap.bad else ""
    out.append(f'<text x="{left:.1f}" y="{middle + 4:.1f}" fill="{colour}"{bold}>{escape(gap.text)}</text>')
    return out
