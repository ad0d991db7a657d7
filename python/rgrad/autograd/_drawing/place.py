"""Places for a whole picture: each box is laid out for itself and is then one block of the box around it.

An edge that enters or leaves a box does so through a port, a block without size at its upper or lower side. One port
serves all edges of a box from the same node outside, or to the outside from the same node inside.
"""

from typing import NamedTuple

from .layered import Block, Edge, Placed, lay_out
from .picture import Box, Node, Picture, around

CHARACTER = 6.7  # width of a character of the text, whose size is 11
LINE = 14.0
PADDING = 9.0
BOX_TITLE = 20.0
BOX_SIDE = 12.0
LONGEST_TEXT = 46


class Rect(NamedTuple):
    """Left, top, width, height."""

    x: float
    y: float
    width: float
    height: float


Points = list[tuple[float, float]]


class Places(NamedTuple):
    """Where everything is.

    Attributes:
        nodes: By number of the node.
        boxes: Box and place, outer ones first.
        edges: Routes with whether the end is an arrow.
        width: Of the picture.
        height: Of the picture.
    """

    nodes: list[Rect]
    boxes: list[tuple[Box, Rect]]
    edges: list[tuple[Points, bool]]
    width: float
    height: float


def cut(text: str) -> str:
    """A text that is not longer than a node is wide. How often something is repeated stays."""
    if len(text) <= LONGEST_TEXT:
        return text
    _, times, count = text.rpartition("  × ")
    end = times + count if count.isdigit() else ""
    return text[: LONGEST_TEXT - 1 - len(end)] + "…" + end


def node_size(node: Node) -> tuple[float, float]:
    """Width and height."""
    longest = max(len(cut(text)) * (1.2 if i == 0 else 1.0) for i, text in enumerate([node.title, *node.lines]))
    return max(70.0, longest * CHARACTER + 2 * PADDING), (1 + len(node.lines)) * LINE + PADDING


class _Inside(NamedTuple):
    """The layout of a box: its parts by key, and the places of its ports."""

    layout: Placed
    parts: list["Node | Box"]
    numbers: dict[object, int]
    edges: list[tuple[object, object]]


class _Placer:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.inside: dict[int, _Inside] = {}
        # By id of the box: for each outer node (above) or inner node (below) the edges through that port.
        self.enter: dict[int, dict[int, None]] = {}
        self.leave: dict[int, dict[int, None]] = {}
        # By id of the box: the edges between its parts, as keys of parts and ports.
        self.local: dict[int, dict[tuple[object, object], None]] = {}

    def split_edges(self) -> None:
        """Divides every edge into stretches within one box each."""
        chains = {id(node): around(node.box) for node in self.picture.nodes}
        for a, b in self.picture.edges:
            source, target = self.picture.nodes[a], self.picture.nodes[b]
            up, down = chains[id(source)], chains[id(target)]
            same = 0
            while same < len(up) and same < len(down) and up[same] is down[same]:
                same += 1
            meeting = up[same - 1]
            # Out of the inner boxes, innermost first.
            at: object = ("part", id(source))
            for box in reversed(up[same:]):
                self.leave.setdefault(id(box), {})[a] = None
                self._local(box, at, ("out", a))
                at = ("part", id(box), "out", a)
            entry: object = ("part", id(target))
            if len(down) > same:
                entry = ("part", id(down[same]), "in", a)
            self._local(meeting, at, entry)
            for k, box in enumerate(down[same:], same):
                self.enter.setdefault(id(box), {})[a] = None
                inner: object = ("part", id(target))
                if k + 1 < len(down):
                    inner = ("part", id(down[k + 1]), "in", a)
                self._local(box, ("in", a), inner)

    def _local(self, box: Box, a: object, b: object) -> None:
        self.local.setdefault(id(box), {})[a, b] = None

    def measure(self, box: Box) -> tuple[float, float]:
        """Lays out a box; gives its size."""
        blocks: list[Block] = []
        index: dict[object, int] = {}
        for part in box.children:
            index["part", id(part)] = len(blocks)
            if isinstance(part, Box):
                blocks.append(Block(*self.measure(part)))
            else:
                blocks.append(Block(*node_size(part)))
        for outer in self.enter.get(id(box), ()):
            index["in", outer] = len(blocks)
            blocks.append(Block(2.0, 0.0, "top"))
        for inner in self.leave.get(id(box), ()):
            index["out", inner] = len(blocks)
            blocks.append(Block(2.0, 0.0, "bottom"))
        edges, ends = [], list(self.local.get(id(box), ()))
        for a, b in ends:
            source, source_x = self._end(index, a)
            target, target_x = self._end(index, b)
            edges.append(Edge(source, target, source_x, target_x))
        layout = lay_out(blocks, edges)
        self.inside[id(box)] = _Inside(layout, box.children, index, ends)
        return self._size(box)

    def _end(self, index: dict[object, int], key: object) -> tuple[int, float | None]:
        """The block of an end of an edge, and where the edge meets it if that is a port of an inner box."""
        assert isinstance(key, tuple)
        if len(key) == 4:
            _, box, way, a = key
            inside = self.inside[box]
            port = inside.numbers[way, a]
            return index["part", box], inside.layout.x[port] + 1.0 + BOX_SIDE
        return index[key], None

    def place(self) -> Places:
        self.split_edges()
        width, height = self.measure(self.picture.root)
        nodes = [Rect(0, 0, 0, 0)] * len(self.picture.nodes)
        boxes: list[tuple[Box, Rect]] = []
        edges: list[tuple[Points, bool]] = []
        stack: list[tuple[Box, float, float]] = [(self.picture.root, 0.0, 0.0)]
        while stack:
            box, left, top = stack.pop()
            inside = self.inside[id(box)]
            x0, y0 = left + BOX_SIDE, top + BOX_TITLE
            layout = inside.layout
            for k, part in enumerate(inside.parts):
                x, y = layout.x[k] + x0, layout.y[k] + y0
                if isinstance(part, Node):
                    nodes[part.number] = Rect(x, y, *node_size(part))
                else:
                    boxes.append((part, Rect(x, y, *self._size(part))))
                    stack.append((part, x, y))
            for (begin, end), route in zip(inside.edges, layout.routes, strict=True):
                points = [(x + x0, y + y0) for x, y in route]
                # Ports lie on the sides of the box.
                if isinstance(begin, tuple) and begin[0] == "in":
                    points.insert(0, (points[0][0], top))
                if isinstance(end, tuple) and end[0] == "out":
                    points.append((points[-1][0], top + self._size(box)[1]))
                edges.append((points, isinstance(end, tuple) and end[0] == "part" and len(end) == 2))
        return Places(nodes, boxes, edges, width, height)

    def _size(self, box: Box) -> tuple[float, float]:
        layout = self.inside[id(box)].layout
        width = max(layout.width + 2 * BOX_SIDE, len(cut(box.title)) * CHARACTER * 1.2 + 2 * PADDING)
        return width, layout.height + BOX_TITLE + BOX_SIDE


def place(picture: Picture) -> Places:
    """Finds places for all nodes, boxes and edges."""
    return _Placer(picture).place()
