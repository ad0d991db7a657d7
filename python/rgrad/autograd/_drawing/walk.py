"""What a drawing reads from a graph: its operations in the order of recording, its leaves, and what each keeps."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..._core import Node, Tensor

# The drawing's own limit, far above what can be read: see `draw`.
MOST_NODES = 5_000_000


class Leaf:
    """A tensor at which gradients end.

    Attributes:
        tensor: The tensor.
        name: Its name, or None.
        users: Indices of the operations that take it.
    """

    __slots__ = ("name", "tensor", "users")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.name: str | None = None
        self.users: list[int] = []


class Graph:
    """The operations behind some roots. Every operation comes after those that it takes results from.

    Attributes:
        ops: The nodes.
        inputs: For each operation the indices of the operations that it takes, without repetition.
        leaf_inputs: For each operation the indices of the leaves that it takes.
        cut: For each operation, whether an operand has no gradient.
        sites: For each operation where it was recorded, as ``path:line in function``.
        leaves: The leaves.
        outputs: For each root the index of its operation, or ``~index`` of its leaf.
    """

    def __init__(self) -> None:
        self.ops: list[Node] = []
        self.inputs: list[list[int]] = []
        self.leaf_inputs: list[list[int]] = []
        self.cut: list[bool] = []
        self.sites: list[str | None] = []
        self.leaves: list[Leaf] = []
        self.outputs: list[int] = []


def _is_leaf(node: Node) -> bool:
    return type(node).__name__ == "AccumulateGrad"


def collect(roots: Iterable[Node]) -> Graph:
    """The graph behind these nodes; nodes are looked at once each, without recursion."""
    roots = list(roots)
    found: list[Node] = []
    leaves: list[Node] = []
    edges: dict[Node, list[Node]] = {}
    cut: set[Node] = set()
    seen: set[Node] = set()
    stack: list[Node] = []
    for root in roots:
        if root not in seen:
            seen.add(root)
            stack.append(root)
    while stack:
        node = stack.pop()
        if _is_leaf(node):
            leaves.append(node)
            continue
        found.append(node)
        if len(found) > MOST_NODES:
            raise RuntimeError(f"draw: the graph has more than {MOST_NODES} nodes; draw a part of it")
        behind = []
        for after, _ in node.next_functions:
            if after is None:
                cut.add(node)
                continue
            behind.append(after)
            if after not in seen:
                seen.add(after)
                stack.append(after)
        edges[node] = behind

    order = _in_order(found, edges)
    graph = Graph()
    graph.ops = order
    graph.sites = [_site_of(node) for node in order]
    place = {node: i for i, node in enumerate(order)}
    # Leaves in the order of their first use, which is nearly the order in which a reader meets them.
    leaf_place: dict[Node, int] = {}
    for i, node in enumerate(order):
        ops: list[int] = []
        own: list[int] = []
        for after in edges[node]:
            at = place.get(after)
            if at is not None:
                if at not in ops:
                    ops.append(at)
                continue
            number = leaf_place.get(after)
            if number is None:
                number = leaf_place[after] = len(graph.leaves)
                graph.leaves.append(Leaf(after.variable))
            if number not in own:
                own.append(number)
                graph.leaves[number].users.append(i)
        graph.inputs.append(ops)
        graph.leaf_inputs.append(own)
        graph.cut.append(node in cut)
    for node in leaves:
        if node not in leaf_place:
            leaf_place[node] = len(graph.leaves)
            graph.leaves.append(Leaf(node.variable))
    graph.outputs = [place[r] if r in place else ~leaf_place[r] for r in roots]
    return graph


def _in_order(nodes: list[Node], edges: Mapping[Node, list[Node]]) -> list[Node]:
    """By the numbers of recording; where these are no order of the edges, by edges first."""
    numbers = {node: number_of(node) for node in nodes}
    order = sorted(nodes, key=numbers.__getitem__)
    if all(numbers[after] < number for node, number in numbers.items() for after in edges[node] if after in numbers):
        return order
    waiting = {node: sum(after in numbers for after in edges[node]) for node in nodes}
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for after in edges[node]:
            if after in numbers:
                users[after].append(node)
    # The place in `order` breaks ties, so that nodes themselves are never compared.
    place = {node: i for i, node in enumerate(order)}
    ready = [place[node] for node in order if not waiting[node]]
    heapq.heapify(ready)
    result = []
    while ready:
        node = order[heapq.heappop(ready)]
        result.append(node)
        for user in users[node]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, place[user])
    return result


def number_of(node: Any) -> int:
    """The node's number in the order of recording."""
    number: int = node._sequence_nr()
    return number


def _site_of(node: Node) -> str | None:
    """Where the node was recorded, as ``path:line in function``."""
    try:
        return node.call_site
    except RuntimeError:
        return None  # the context of a Function whose graph is gone


def metadata_of(node: Node) -> tuple[Any, ...]:
    """Shape, dtype and device of each output."""
    described: Any = node
    try:
        found: tuple[Any, ...] = tuple(described._input_metadata)
    except (RuntimeError, AttributeError):
        return ()
    return found


class SavedBytes:
    """Adds up what nodes save for backward: bytes of tensors that are no leaves, each storage once for each reader."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self._held = {_storage(leaf.tensor) for leaf in leaves}
        self._names: dict[str, tuple[str, ...]] = {}

    def of(self, nodes: Iterable[Node]) -> int | None:
        """The bytes that these nodes keep together; None if backward has freed one of them."""
        seen: dict[int, int] = {}
        for node in nodes:
            for tensor in self._tensors(node):
                if tensor is None:
                    return None
                key = _storage(tensor)
                size = tensor.numel() * tensor.element_size()
                if key not in self._held:
                    seen[key] = max(size, seen.get(key, 0))
        return sum(seen.values())

    def _tensors(self, node: Node) -> Iterable[Tensor | None]:
        kind = type(node).__name__
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = tuple(name for name in dir(node) if name.startswith("_raw_saved_"))
        for name in names:
            try:
                saved: Any = getattr(node, name)
            except (AttributeError, RuntimeError):
                continue
            for one in saved if isinstance(saved, (tuple, list)) else (saved,):
                try:
                    yield from _tensors_in(one.data)
                except RuntimeError as error:
                    # What was None or a number when it was saved is None afterwards, too.
                    if "freed" in str(error):
                        yield None


def _tensors_in(value: Any) -> Iterable[Tensor]:
    """The tensors of what a node or a pack hook keeps."""
    if isinstance(value, Tensor):
        if value.ndim:
            yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors_in(item)


def _storage(tensor: Tensor) -> int:
    try:
        storage: Any = tensor.untyped_storage()
        number: int = storage._cdata
    except (RuntimeError, NotImplementedError):
        return id(tensor)
    return number


def is_parameter(tensor: Tensor) -> bool:
    """Whether this is an ``nn.Parameter``; this package lies below `nn`."""
    return type(tensor).__name__ == "Parameter" or bool(getattr(tensor, "_is_param", False))


def norm_of(tensor: Tensor | None) -> float | None:
    """The Euclidean norm of a gradient."""
    if tensor is None or tensor.is_meta:
        return None
    value = tensor.detach()
    return float(value.float().norm()) if value.dtype.is_floating_point else None


def gradient_norms(graph: Graph, roots: list[Any], differentiate: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """Norms of the gradients at all operations and leaves, by one backward pass that leaves ``.grad`` alone."""
    norms: list[float | None] = [None] * len(graph.ops)
    handles = []

    def watch(i: int) -> Callable[..., None]:
        def prehook(grads: tuple[Tensor | None, ...]) -> None:
            parts = [n for n in map(norm_of, grads) if n is not None]
            norms[i] = sum(n * n for n in parts) ** 0.5 if len(parts) > 1 else (parts[0] if parts else None)

        return prehook

    try:
        handles = [node.register_prehook(watch(i)) for i, node in enumerate(graph.ops)]
        tensors = [leaf.tensor for leaf in graph.leaves]
        grads = differentiate(roots, tensors) if tensors else ()
    finally:
        for handle in handles:
            handle.remove()
    return norms, [norm_of(g) for g in grads]
