"""What of a graph is shown: boxes for modules, one node for what is folded, one piece for what is repeated.

Everything stands in the order of recording, and a box or a piece is a contiguous part of it. Since an operation comes
after those that it takes results from, folding contiguous parts never makes a circle.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .modules import Path
from .repeats import Run, Sequence
from .walk import Graph, is_parameter, metadata_of

# Above this number of operations shapes are not looked at to tell pieces apart: that would take most of the time.
SHAPES_BELOW = 20_000
# So many nodes are shown at most unless the caller says a depth.
READABLE = 80
# Loops inside of loops are recognised this deep.
MOST_NESTED = 8
# Where nothing else helps, so many parts are shown.
PARTS = 60


class Part:
    """A contiguous part of the graph: one operation, a box, or a repeated piece.

    Attributes:
        start: The first operation.
        end: Behind the last one.
        children: The parts inside; empty for one operation, or where they are folded into one node.
        name: The box's name.
        kind: The module's class.
        path: The module's full name.
        level: How deep the box lies; the model's own box is 0.
        count: How often the piece is repeated; ``end`` is that of the last repetition, ``children`` are of the first.
        names: First and last name of repeated boxes.
        folded: Whether it is shown as one node.
        code: Equal for parts of equal structure.
    """

    __slots__ = ("children", "code", "count", "end", "folded", "kind", "level", "name", "names", "path", "start")

    def __init__(self, start: int, end: int, name: str = "", kind: str = "", path: str = "", level: int = 0) -> None:
        self.start = start
        self.end = end
        self.name = name
        self.kind = kind
        self.path = path
        self.level = level
        self.children: list[Part] = []
        self.count = 1
        self.names: tuple[str, str] | None = None
        self.folded = False
        self.code = -1

    @property
    def piece(self) -> int:
        """The number of operations of one repetition."""
        return (self.end - self.start) // self.count

    @property
    def is_node(self) -> bool:
        """Whether it is shown as one node."""
        return self.folded or not self.children


def build(graph: Graph, paths: list[Path]) -> Part:
    """The tree of boxes, nothing folded yet."""
    root = Part(0, len(graph.ops))
    stack: list[tuple[Any, Part]] = []
    inner = root
    last: Path = ()
    for i, path in enumerate(paths):
        if path is last:
            # Most operations stand in the same boxes as the one before.
            inner.children.append(Part(i, i + 1, level=inner.level + 1))
            continue
        last = path
        for _, box in stack:
            box.end = i
        same = 0
        while same < len(stack) and same < len(path) and stack[same][0] == path[same].key:
            same += 1
        del stack[same:]
        for frame in path[same:]:
            above = stack[-1][1] if stack else root
            # The model's own box does not count as a level.
            level = above.level + (1 if frame.path or not frame.kind else 0)
            box = Part(i, i, frame.name, frame.kind, frame.path, level)
            above.children.append(box)
            stack.append((frame.key, box))
        inner = stack[-1][1] if stack else root
        inner.children.append(Part(i, i + 1, level=inner.level + 1))
    for _, box in stack:
        box.end = len(paths)
    _join_chains(root)
    return root


def _join_chains(part: Part) -> None:
    """A box whose only content is a box becomes one with it."""
    for child in part.children:
        if not child.children:
            continue
        while len(child.children) == 1 and child.children[0].name:
            only = child.children[0]
            child.name = f"{child.name}.{only.name}" if child.name else only.name
            child.kind, child.path = only.kind, only.path
            child.children = only.children
        _join_chains(child)


class _Codes:
    """Numbers for structures: equal structures have the same number."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers: dict[Any, int] = {}
        self.with_shapes = len(graph.ops) <= SHAPES_BELOW
        self.of_operation = self._of_operations()

    def number(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def _of_operations(self) -> list[int]:
        graph, numbers = self.graph, self.numbers
        # Not those of other leaves: the first turn of a loop often takes a leaf where the others take a result.
        shapes = [tuple(leaf.tensor.shape) if is_parameter(leaf.tensor) else None for leaf in graph.leaves]
        result = []
        rows = zip(graph.names, graph.sites, graph.inputs, graph.leaf_inputs, strict=True)
        for i, (name, site, inputs, leaves) in enumerate(rows):
            key: tuple[Any, ...] = (name, site, len(inputs) + len(leaves))
            if leaves:
                key += tuple(shape for k in leaves if (shape := shapes[k]) is not None)
            if self.with_shapes:
                key += (tuple(tuple(m.shape) for m in metadata_of(graph.ops[i])),)
            result.append(numbers.setdefault(key, len(numbers)))
        return result


def fold_repeats(graph: Graph, part: Part, codes: _Codes | None = None) -> None:
    """Replaces equal parts in a row by the first one, which then counts for all of them."""
    codes = codes or _Codes(graph)
    if part.start == part.end:
        return  # a root that is a leaf
    if not part.children:
        part.code = codes.of_operation[part.start]
        return
    for child in part.children:
        if child.children:
            fold_repeats(graph, child, codes)
        else:
            child.code = codes.of_operation[child.start]
    # Short periods first: a found run is one entry from then on, and the outer loops of nested ones get shorter.
    for _ in range(MOST_NESTED):
        sequence = _sequence(part)
        changed = False
        for period in sequence.periods():
            found = sequence.runs(period, 8)
            if found:
                _fold_runs(part, found, codes)
                sequence = _sequence(part)
                changed = True
        if not changed:
            break
    part.code = codes.number(("box", part.kind, tuple(c.code for c in part.children)))


def _sequence(part: Part) -> Sequence:
    return Sequence([c.code for c in part.children], [c.end - c.start for c in part.children])


def _fold_runs(part: Part, found: list[Run], codes: _Codes) -> None:
    children = part.children
    result: list[Part] = []
    at = 0
    for run in found:
        result += children[at : run.start]
        last = run.start + run.period * run.times
        pieces = children[run.start : run.start + run.period]
        first, final = pieces[0], children[last - run.period]
        if run.period == 1 and first.children and first.count == 1:
            repeated = first
            repeated.names = (first.name, final.name)
        else:
            repeated = Part(first.start, first.end, level=first.level - 1)
            repeated.children = pieces
        repeated.end = children[last - 1].end
        repeated.count = run.times
        repeated.code = codes.number(("repeated", run.times, tuple(c.code for c in pieces)))
        result.append(repeated)
        at = last
    part.children = result + children[at:]


def shown(part: Part) -> Iterator[Part]:
    """The parts that are shown as one node, in order."""
    if part.is_node:
        yield part
    else:
        for child in part.children:
            yield from shown(child)


def fold_depth(part: Part, depth: int) -> None:
    """Shows the boxes of this level and deeper as one node each."""
    for child in part.children:
        if not child.children:
            child.folded = False
            continue
        is_box = bool(child.name or child.kind)
        child.folded = is_box and child.level >= depth and child.piece > 1
        if not child.folded:
            fold_depth(child, depth)


def deepest(part: Part) -> int:
    """The deepest level of a box."""
    return max([part.level if part.children else 0, *(deepest(c) for c in part.children if c.children)])


def count_shown(part: Part) -> int:
    """How many parts are shown as one node."""
    if part.is_node:
        return 1
    return sum(count_shown(c) if c.children else 1 for c in part.children)


def fold_parts(part: Part, most: int) -> None:
    """Joins neighbours without structure until at most about so many nodes are shown."""
    if part.is_node:
        return
    counts = [count_shown(c) if c.children else 1 for c in part.children]
    if sum(counts) <= most:
        return
    if len(part.children) > most:
        step = -(-len(part.children) // most)
        joined = []
        for i in range(0, len(part.children), step):
            group = part.children[i : i + step]
            whole = Part(group[0].start, group[-1].end, level=part.level + 1)
            whole.children = group
            whole.folded = len(group) > 1
            joined.append(whole if len(group) > 1 else group[0])
        part.children = joined
        return
    share = max(1, most // len(part.children))
    for child, count in zip(part.children, counts, strict=True):
        if count > share:
            fold_parts(child, share)


class Images:
    """Which shown operation stands for each operation, and which edges are left."""

    def __init__(self, graph: Graph, root: Part) -> None:
        self.image = np.arange(len(graph.ops), dtype=np.int64)
        users = np.repeat(np.arange(len(graph.ops)), [len(x) for x in graph.inputs])
        sources = np.fromiter((s for x in graph.inputs for s in x), dtype=np.int64, count=len(users))
        self.sources, self.users = sources, users
        for part in _repeated(root):
            self._fold(part)

    def _fold(self, part: Part) -> None:
        start, end, piece = part.start, part.end, part.piece

        def inside(x: Any) -> Any:
            return (x >= start) & (x < end)

        both = inside(self.sources) & inside(self.users)
        # From one repetition to the next: that is what the count says.
        keep = ~(both & ((self.sources - start) // piece != (self.users - start) // piece))
        self.sources, self.users = self.sources[keep], self.users[keep]
        for name in ("sources", "users", "image"):
            x = getattr(self, name)
            setattr(self, name, np.where(inside(x), start + (x - start) % piece, x))


def _repeated(part: Part) -> Iterator[Part]:
    """Repeated pieces, outer ones first."""
    if part.count > 1:
        yield part
    if not part.folded:
        for child in part.children:
            if child.children or child.count > 1:
                yield from _repeated(child)
