"""A picture as SVG: text, rectangles and paths, nothing that needs a program or a network."""

from html import escape
from itertools import pairwise

from .picture import Picture, around
from .place import CHARACTER, LINE, PADDING, Points, cut, place

FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"
# Fill and border by kind; the text is dark on all of them.
COLOURS = {
    "op": ("#eaf2fb", "#4f7cac"),
    "group": ("#f1eafa", "#7a5ba6"),
    "leaf": ("#e6f4e8", "#3f8a4f"),
    "input": ("#e6f4e8", "#3f8a4f"),
    "output": ("#fdf0dc", "#b9772a"),
}
MARGIN = 12.0
HEADING_LINE = 15.0


def render(picture: Picture) -> str:
    """The SVG."""
    places = place(picture)
    heading = _broken(picture.heading, max(places.width, 330.0))
    width = max(places.width, *(len(line) * CHARACTER for line in heading)) + 2 * MARGIN
    top = MARGIN + HEADING_LINE * len(heading)
    height = places.height + top + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    letters = f'font-family="{FONT}" font-size="11" fill="#1b1f24"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {height:.0f}" {letters}>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(
            f'<text x="{MARGIN:.0f}" y="{MARGIN + 10 + HEADING_LINE * i:.0f}" fill="#444c56">{escape(line)}</text>'
            for i, line in enumerate(heading)
        ),
        f'<g transform="translate({MARGIN:.0f} {top - 8:.0f})">',
    ]
    titles = []
    for box, rect in places.boxes:
        shade = "#f6f8fa" if len(around(box)) % 2 else "#ffffff"
        dash = "" if box.count == 1 else ' stroke-dasharray="5 3"'
        colour = "#9aa5b1" if box.count == 1 else "#7a5ba6"
        if box.count > 1:
            out.append(_rect(rect.x + 5, rect.y + 5, rect.width, rect.height, "#ffffff", colour, dash))
        out.append(_rect(rect.x, rect.y, rect.width, rect.height, shade, colour, dash))
        # On a ground of their own, since edges pass through titles.
        title = cut(box.title)
        titles.append(
            f'<rect x="{rect.x + PADDING - 2:.1f}" y="{rect.y + 4:.1f}" height="13" '
            f'width="{len(title) * CHARACTER * 1.08 + 4:.1f}" fill="{shade}" opacity="0.9"/>'
            f'<text x="{rect.x + PADDING:.1f}" y="{rect.y + 14:.1f}" font-weight="bold" '
            f'fill="{"#57606a" if box.count == 1 else "#5f3d94"}">{escape(title)}</text>'
        )
    out.append('<g fill="none" stroke="#5d6b7a" stroke-width="1.2">')
    heads = []
    for points, arrow in places.edges:
        out.append(f'<path d="{_path(points, arrow)}"/>')
        if arrow:
            x, y = points[-1]
            heads.append(f"M{x:.1f} {y:.1f}l-3.5 -7h7z")
    out.append("</g>")
    if heads:
        out.append(f'<path d="{"".join(heads)}" fill="#5d6b7a"/>')
    out += titles
    for node, rect in zip(picture.nodes, places.nodes, strict=True):
        fill, line = COLOURS[node.kind]
        out.append("<g>")
        if node.tip:
            out.append(f"<title>{escape(node.tip)}</title>")
        radius = 12 if node.kind in ("leaf", "input", "output") else 4
        out.append(_rect(rect.x, rect.y, rect.width, rect.height, fill, line, "", radius))
        left = f"{rect.x + PADDING:.1f}"
        y = rect.y + PADDING / 2 + LINE * 0.75
        out.append(f'<text x="{left}" y="{y:.1f}" font-weight="bold">{escape(cut(node.title))}</text>')
        for text in node.lines:
            y += LINE
            out.append(f'<text x="{left}" y="{y:.1f}" fill="#373f49">{escape(cut(text))}</text>')
        out.append("</g>")
    out.append("</g></svg>")
    return "\n".join(out) + "\n"


def _broken(text: str, width: float) -> list[str]:
    """The heading in lines of about this width, broken between its parts."""
    lines = [""]
    for part in text.split(" · "):
        joined = f"{lines[-1]} · {part}" if lines[-1] else part
        if len(joined) * CHARACTER > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = joined
    return lines


def _rect(x: float, y: float, w: float, h: float, fill: str, line: str, more: str = "", radius: int = 6) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius}" fill="{fill}" '
        f'stroke="{line}"{more}/>'
    )


def _path(points: Points, arrow: bool) -> str:
    """Straight through ranks, and a curve with vertical ends from one to the next."""
    if arrow:
        x, y = points[-1]
        points = [*points[:-1], (x, y - 5)]
    words = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(x0 - x1) < 0.05:
            if abs(y0 - y1) >= 0.05:
                words.append(f"V{y1:.1f}")
        else:
            bend = (y1 - y0) / 2
            words.append(f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}")
    return "".join(words)
