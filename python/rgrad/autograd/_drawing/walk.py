"""What a drawing reads from a graph: its operations in the order of recording, its leaves, and what each keeps."""

from collections.abc import Callable, Iterable
from typing import Any

from ... import _core
from ..._core import Node, Tensor
from ..._tensor.natives import memory_of

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
        ops: The nodes, a sequence that makes their objects when they are asked for.
        names: Their names.
        numbers: Their numbers in the order of recording.
        inputs: For each operation the indices of the operations that it takes, without repetition.
        leaf_inputs: For each operation the indices of the leaves that it takes.
        cut: For each operation, whether an operand has no gradient.
        sites: For each operation where it was recorded, as ``path:line in function``.
        leaves: The leaves, in the order of their first use, which is nearly the order in which a reader meets them.
        outputs: For each root the index of its operation, or ``~index`` of its leaf.
    """

    def __init__(self, found: Any) -> None:
        self.ops = found
        self.names: list[str] = found.names
        self.numbers: list[int] = found.numbers
        self.inputs: list[list[int]] = found.inputs
        self.leaf_inputs: list[list[int]] = found.leaf_inputs
        self.cut: list[bool] = found.cut
        self.sites: list[str | None] = found.sites
        self.leaves = [Leaf(node.variable) for node in found.leaves]
        self.outputs: list[int] = found.outputs
        for i, leaves in enumerate(self.leaf_inputs):
            for leaf in leaves:
                self.leaves[leaf].users.append(i)


def collect(roots: Iterable[Node]) -> Graph:
    """The graph behind these nodes."""
    found = _core._graph_nodes(list(roots), MOST_NODES)
    if found is None:
        raise RuntimeError(f"draw: the graph has more than {MOST_NODES} nodes; draw a part of it")
    return Graph(found)


def number_of(node: Any) -> int:
    """The node's number in the order of recording."""
    number: int = node._sequence_nr()
    return number


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

    def __init__(self, graph: Graph) -> None:
        self._ops = graph.ops
        self._held = {_storage(leaf.tensor) for leaf in graph.leaves}
        self._names: dict[str, tuple[str, ...]] = {}

    def of(self, start: int, end: int) -> int | None:
        """The bytes that these nodes keep together; None if backward has freed one of them."""
        seen: dict[int, int] = {}
        known, others = self._ops.saved(start, end)
        pairs = list(known)
        for i in others:
            for tensor in self._tensors(self._ops[i]):
                if tensor is None:
                    return None
                pairs.append((_storage(tensor), tensor.numel() * tensor.element_size()))
        for key, size in pairs:
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
        number: int = memory_of(tensor)._cdata
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
    if value.is_complex():
        value = value.abs()
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
