"""The picture before it has places: nodes with their lines of text, boxes, and edges. All outputs are made from it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import Tensor
from ..._runtime.units import bytes_text
from .modules import Path
from .tree import Images, Part, shown
from .walk import Graph, Leaf, SavedBytes, is_parameter, metadata_of, norm_of

# More leaves than this are listed with the operation that takes them, or joined.
FEW_LEAVES = 12


class Node:
    """One node of the picture.

    Attributes:
        title: The first line.
        lines: The others.
        kind: ``"op"``, ``"group"`` (several operations), ``"leaf"``, ``"input"`` or ``"output"``.
        tip: Everything that is known, for a tooltip.
        box: The box it stands in.
    """

    __slots__ = ("box", "kind", "lines", "number", "tip", "title")

    def __init__(self, kind: str, title: str, lines: list[str], tip: str = "") -> None:
        self.kind = kind
        self.title = title
        self.lines = lines
        self.tip = tip
        self.box: Box | None = None
        self.number = -1


class Box:
    """A module, a function or a repeated piece.

    Attributes:
        title: The first line: name, class, and how often it is repeated.
        children: Nodes and boxes, in order.
        count: How often it is repeated.
        box: The box around it, or None.
    """

    __slots__ = ("box", "children", "count", "number", "title")

    def __init__(self, title: str, count: int, box: "Box | None") -> None:
        self.title = title
        self.count = count
        self.box = box
        self.children: list[Node | Box] = []
        self.number = -1


class Picture:
    """Everything that is shown.

    Attributes:
        root: The box around all.
        nodes: The nodes in the order of recording.
        edges: Pairs of numbers of nodes, from what is computed first.
        heading: A line about the whole graph.
    """

    def __init__(self) -> None:
        self.root = Box("", 1, None)
        self.nodes: list[Node] = []
        self.edges: list[tuple[int, int]] = []
        self.heading = ""

    def add(self, node: Node, box: Box) -> Node:
        node.number = len(self.nodes)
        node.box = box
        self.nodes.append(node)
        box.children.append(node)
        return node


def shape_text(shape: Any) -> str:
    """``2×64×56×56``; of a number ``scalar``."""
    return "×".join(map(str, shape)) or "scalar"


def count_text(n: int) -> str:
    """A count in three digits: ``11.7 M``."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if n >= factor:
            return f"{n / factor:.3g}{unit}"
    return str(n)


def _dtype_text(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def line_text(site: str | None) -> str:
    """File and line, without directories."""
    if not site:
        return ""
    where = site.rpartition(" in ")[0]
    file, _, line = where.rpartition(":")
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


class Composer:
    """Makes the picture of a graph whose tree is folded."""

    def __init__(
        self,
        graph: Graph,
        root: Part,
        paths: list[Path],
        norms: list[float | None] | None,
        leaf_norms: list[float | None],
    ) -> None:
        self.graph = graph
        self.tree = root
        self.paths = paths
        self.norms = norms
        self.leaf_norms = leaf_norms
        self.saved = SavedBytes(graph)
        self.picture = Picture()
        self.images = Images(graph, root)
        self.node_of = np.full(len(graph.ops), -1, dtype=np.int64)
        self.one_site = self._one_site()

    def _one_site(self) -> str | None:
        """The line that recorded everything, if there is one; then it is said once."""
        sites = self.graph.sites
        return sites[0] if len(sites) > 2 and len(set(sites)) == 1 else None

    def compose(
        self, inputs: list[tuple[str, Tensor]], uses: list[tuple[int, int]], outputs: list[tuple[str, Any]]
    ) -> Picture:
        """The picture.

        Args:
            inputs: Names and tensors of inputs that have no gradient.
            uses: Pairs of an input and an operation that takes it.
            outputs: Names and tensors (or None) of the roots.
        """
        picture, graph = self.picture, self.graph
        inlined = self._users_of_leaves()
        edges: dict[tuple[int, int], None] = {}
        shown_leaf: dict[int, Node] = {}
        for i, (name, tensor) in enumerate(inputs):
            users = sorted({int(self.images.image[k]) for j, k in uses if j == i})
            if users:
                node = Node("input", name, [f"{shape_text(tensor.shape)} {_dtype_text(tensor.dtype)}"])
                shown_leaf[~i] = picture.add(node, picture.root)
        own: dict[int, list[int]] = {}
        for i, user in inlined.items():
            if user is not None:
                own.setdefault(user, []).append(i)
        self._add_parts(self.tree, picture.root, own)

        image, node_of = self.images.image, self.node_of
        together: dict[tuple[int, ...], list[int]] = {}
        for i, leaf in enumerate(graph.leaves):
            if i not in inlined:
                users_of_it = tuple(sorted(set(node_of[image[leaf.users]].tolist())))
                together.setdefault(users_of_it, []).append(i)
        for used_by, alike in together.items():
            box = _common_box([picture.nodes[k].box for k in used_by], picture.root)
            groups = [[i] for i in alike] if len(alike) <= FEW_LEAVES or not used_by else [alike]
            for group in groups:
                node = picture.add(self._leaf_node(group), box)
                shown_leaf.update(dict.fromkeys(group, node))
        for i, _ in enumerate(inputs):
            for j, k in uses:
                if j == i:
                    edges[shown_leaf[~i].number, int(node_of[image[k]])] = None
        for i, leaf in enumerate(graph.leaves):
            if i in shown_leaf:
                for k in dict.fromkeys(image[leaf.users].tolist()):
                    edges[shown_leaf[i].number, int(node_of[k])] = None
        if len(self.images.sources):
            pairs = np.stack((node_of[self.images.sources], node_of[self.images.users]), 1)
            pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
            edges.update(dict.fromkeys((a, b) for a, b in pairs.tolist()))
        for (name, tensor), at in zip(outputs, graph.outputs, strict=True):
            text = [f"{shape_text(tensor.shape)} {_dtype_text(tensor.dtype)}"] if tensor is not None else []
            node = picture.add(Node("output", name, text), picture.root)
            source = int(node_of[image[at]]) if at >= 0 else shown_leaf[~at].number
            edges[source, node.number] = None
        picture.edges = list(edges)
        picture.heading = self._heading()
        return picture

    def _users_of_leaves(self) -> dict[int, int | None]:
        """Leaves without a node of their own, with the operation in whose node they are listed.

        That is None for leaves of a repetition that is not shown.
        """
        image = self.images.image
        owner = {k: part for part in shown(self.tree) for k in range(part.start, part.start + part.piece)}
        result: dict[int, int | None] = {}
        for i, leaf in enumerate(self.graph.leaves):
            if not leaf.users:
                continue
            images = set(image[leaf.users].tolist())
            if not images & set(leaf.users):
                result[i] = None
                continue
            nodes = {owner[k].start for k in images}
            if len(nodes) == 1 and is_parameter(leaf.tensor):
                at = next(iter(nodes))
                if self.paths[at] or len(self.graph.leaves) > FEW_LEAVES:
                    result[i] = at
        return result

    def _add_parts(self, part: Part, box: Box, own: dict[int, list[int]]) -> None:
        for child in part.children:
            if child.is_node or self._is_single(child):
                node = self.picture.add(self._part_node(child, own.get(child.start, [])), box)
                self.node_of[child.start : child.start + child.piece] = node.number
                if child.count > 1 and not child.folded:
                    node.title += f"  × {child.count}"
                continue
            inner = Box(self._box_title(child), child.count, box)
            box.children.append(inner)
            self._add_parts(child, inner, own)

    @staticmethod
    def _is_single(part: Part) -> bool:
        """Whether it is a box around one operation, which is then shown without the box."""
        return len(part.children) == 1 and part.children[0].is_node and part.children[0].count == 1

    @staticmethod
    def _box_title(part: Part) -> str:
        name = part.name
        if part.names is not None:
            name = f"{part.names[0]} … {part.names[1]}"
        title = f"{name} · {part.kind}" if name and part.kind else name or part.kind
        return f"{title}  × {part.count}".strip() if part.count > 1 else title

    def _part_node(self, part: Part, own: list[int]) -> Node:
        graph = self.graph
        end = part.start + part.piece
        names = graph.names[part.start : end]
        site = graph.sites[end - 1]
        title = f"{part.name} · {part.kind}" if part.name and part.kind else part.name or part.kind
        if part.names is not None:
            title = self._box_title(part)
        lines: list[str] = []
        if len(names) == 1:
            kind = "op"
            if title:
                lines.append(names[0])
            else:
                title = names[0]
        else:
            kind = "group"
            if not title:
                title = names[0] if len(set(names)) == 1 else f"{names[0]} … {names[-1]}"
            lines.append(f"{len(names):,} operations")
        metadata = metadata_of(graph.ops[end - 1])
        if metadata:
            more = f" + {len(metadata) - 1} more" if len(metadata) > 1 else ""
            lines.append(f"{shape_text(metadata[0].shape)} {_dtype_text(metadata[0].dtype)}{more}")
        lines += self._parameter_lines(part, own)
        facts = []
        saved = self.saved.of(part.start, end)
        if saved is None:
            facts.append("saved: freed")
        elif saved:
            facts.append(f"saved {bytes_text(saved)}")
        if self.norms is not None:
            norm = self.norms[end - 1]
            facts.append("no grad" if norm is None else f"|grad| {norm:.3g}")
        if facts:
            lines.append(" · ".join(facts))
        if self.one_site is None and site:
            lines.append(line_text(site))
        tip = [part.path or title, *dict.fromkeys(names[:12])]
        if site:
            tip.append(site)
        return Node(kind, title, lines, "\n".join(tip))

    def _parameter_lines(self, part: Part, own: list[int]) -> list[str]:
        if not own:
            return []
        leaves = [self.graph.leaves[i] for i in own]
        norms = [n for i in own if (n := self.leaf_norms[i]) is not None]
        total = sum(leaf.tensor.numel() for leaf in leaves)
        if len(own) > 3 or part.piece > 1:
            lines = [f"{len(own)} parameters, {count_text(total)}"]
        else:
            lines = [f"{_short(leaf.name) or 'parameter'} {shape_text(leaf.tensor.shape)}" for leaf in leaves]
            if sum(map(len, lines)) <= 28:
                lines = [", ".join(lines)]
        if norms:
            lines[-1] += f" · |grad| {sum(n * n for n in norms) ** 0.5:.3g}"
        return lines

    def _leaf_node(self, group: list[int]) -> Node:
        """A leaf, or many with the same users."""
        leaves = [self.graph.leaves[i] for i in group]
        tensor = leaves[0].tensor
        norms = [n for i in group if (n := self.leaf_norms[i]) is not None]
        name = leaves[0].name or ("Parameter" if is_parameter(tensor) else "leaf")
        if len(group) == 1:
            lines = [f"{shape_text(tensor.shape)} {_dtype_text(tensor.dtype)}"]
        else:
            last = leaves[-1].name
            lines = [f"{name} … {last}"] if leaves[0].name and last else []
            lines.append(f"{count_text(sum(leaf.tensor.numel() for leaf in leaves))} elements")
            name = f"{len(group):,} leaves"
        if norms:
            lines.append(f"|grad| {sum(n * n for n in norms) ** 0.5:.3g}")
        return Node("leaf", name, lines, name)

    def _heading(self) -> str:
        graph = self.graph
        words = [_many(len(graph.ops), "operation")]
        parameters = [leaf.tensor for leaf in graph.leaves]
        if parameters:
            numbers = sum(t.numel() for t in parameters)
            words.append(f"{_many(len(parameters), 'leaf', 'leaves')} of {count_text(numbers)} elements")
        saved = self.saved.of(0, len(graph.ops))
        words.append("saved tensors freed" if saved is None else f"{bytes_text(saved)} saved for backward")
        if self.one_site:
            words.append(f"all at {line_text(self.one_site)}")
        return " · ".join(words)


def around(box: Box | None) -> list[Box]:
    """A box and those around it, outermost first."""
    found = []
    while box is not None:
        found.append(box)
        box = box.box
    return found[::-1]


def _common_box(boxes: list[Box | None], root: Box) -> Box:
    """The innermost box around all of these; of a repeated one, that around it."""
    chains = [around(box) for box in boxes]
    if not chains:
        return root
    common = root
    for level in zip(*chains, strict=False):
        if any(box is not level[0] for box in level) or level[0].count > 1:
            break
        common = level[0]
    return common


def _many(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _short(name: str | None) -> str:
    return name.rpartition(".")[2] if name else ""


def leaf_norms(graph: Graph) -> list[float | None]:
    """Norms of the leaves' ``.grad``."""
    read: Callable[[Leaf], float | None] = lambda leaf: norm_of(leaf.tensor.grad)  # noqa: E731
    return [read(leaf) for leaf in graph.leaves]
