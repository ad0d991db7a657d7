"""What one graph keeps in memory."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .. import _core
from .._core import Node, Tensor
from .._runtime.lines import Line, line_of, module_of, number, percent, table
from ._guessed_modules import guessed
from ._owners import GraphOwner, graph_owners

__all__ = ["GraphMemoryReport", "GraphStorage", "memory_report"]


#: What belongs to the model, and to none of its parts.
_WHOLE = "the model itself"


class GraphStorage(NamedTuple):
    """Memory that a graph holds.

    Attributes:
        device: The name of the device.
        bytes: What the device's allocator counts for it; 0 for memory of somebody else (a NumPy array), and for a
            pending result that is not computed yet.
        size: The bytes that tensors see of it.
        line: The line that recorded the first node that holds it.
        operation: The name of that node.
        module: The module in whose forward it was recorded, if that is known; else None.
        kinds: How nodes hold it: "input", "output", "copy" (of an input that was overwritten), "leaf" (the tensor in
            whose ``.grad`` the gradient goes), "packed" (made by saved tensor hooks) and "context" (an attribute of the
            ``ctx`` of a Function).
        nodes: How many nodes hold it.
        outside: Whether something else holds it, too: a variable, a parameter, another graph. If not, it is freed with
            what the graph has saved.
        pending: Whether it is a result that is not computed yet, for which there is no memory so far.

    Example:
        >>> x = rgrad.ones(100, requires_grad=True)
        >>> y = x.exp()
        >>> for s in rgrad.autograd.graph.memory_report(y.sum()).storages:
        ...     print(s.operation, s.size, s.kinds, s.outside)
        ExpBackward0 400 ('output',) True
        AccumulateGrad 400 ('leaf',) True
    """

    device: str
    bytes: int
    size: int
    line: Line
    operation: str
    module: str | None
    kinds: tuple[str, ...]
    nodes: int
    outside: bool
    pending: bool


class GraphMemoryReport:
    """What :func:`rgrad.autograd.graph.memory_report` returns. As text it is a table.

    Every storage counts once, at the first node that holds it, however many share it.

    Args:
        roots: The nodes at which the graph begins.
        names: The names of modules, by the number of a parameter's storage in the walk.

    Attributes:
        nodes: The number of nodes.
        freed: How many of them a backward pass has run and freed.
        storages: The storages, the largest first.
        owners: What keeps the graph alive.

    Example:
        >>> x = rgrad.ones(1000, 1000, requires_grad=True)
        >>> report = rgrad.autograd.graph.memory_report((x * 2).sum())
        >>> report.nodes, report.freed, report.outside
        (3, 0, 4194304)
    """

    def __init__(self, roots: list[Any], names: Mapping[int, str]) -> None:
        rows, storages = _core._graph_memory(roots)
        self.nodes = len(rows)
        self.freed = sum(1 for row in rows if row[3])
        first: dict[int, int] = {}
        kinds: dict[int, list[str]] = {}
        count: dict[int, int] = {}
        # Nodes in the order of recording; leaves come last, after the nodes that have saved them.
        for k in sorted(range(len(rows)), key=lambda k: rows[k][0]):
            for kind, at in rows[k][4]:
                first.setdefault(at, k)
                kinds.setdefault(at, [])
                if kind not in kinds[at]:
                    kinds[at].append(kind)
                count[at] = count.get(at, 0) + 1
        modules = _modules(rows, names)
        self.storages: list[GraphStorage] = []
        known: set[tuple[str, int]] = set()
        for at, (_, device, key, size, seen, outside, pending) in enumerate(storages):
            if key is not None:
                known.add((device, key))
            _, operation, site, *_ = rows[first[at]]
            self.storages.append(
                GraphStorage(
                    device,
                    size,
                    seen,
                    line_of(site),
                    operation,
                    modules[first[at]],
                    tuple(kinds[at]),
                    count[at],
                    outside,
                    pending,
                )
            )
        for k, row in enumerate(rows):
            for kind, held in (("packed", row[6]), ("context", None if row[7] is None else vars(row[7]))):
                for tensor in _tensors_in(held):
                    storage, device, key, size, seen = _core._tensor_memory(tensor)
                    if (device, key or storage) not in known:
                        known.add((device, key or storage))
                        where = (line_of(row[2]), row[1], modules[k], (kind,))
                        self.storages.append(GraphStorage(device, size, seen, *where, 1, False, False))
        self.storages.sort(key=lambda s: -s.bytes)
        self.owners: list[GraphOwner] = []

    @property
    def bytes(self) -> int:
        """The bytes of all storages."""
        return sum(s.bytes for s in self.storages)

    @property
    def saved(self) -> int:
        """The bytes that nothing but the graph holds."""
        return sum(s.bytes for s in self.storages if not s.outside)

    @property
    def pending(self) -> int:
        """The bytes that results which are not computed yet will take, at least."""
        return sum(s.size for s in self.storages if s.pending)

    @property
    def outside(self) -> int:
        """The bytes that something else holds, too: parameters, inputs, results in variables."""
        return sum(s.bytes for s in self.storages if s.outside)

    @property
    def by_line(self) -> dict[Line, int]:
        """The bytes by line, the largest first."""
        return self._grouped(lambda s: s.line)

    @property
    def by_operation(self) -> dict[str, int]:
        """The bytes by the name of the node, the largest first."""
        return self._grouped(lambda s: s.operation)

    @property
    def by_module(self) -> dict[str | None, int]:
        """The bytes by module, the largest first; None stands for no module, or an unknown one."""
        return self._grouped(lambda s: s.module)

    def _grouped(self, key: Any) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for s in self.storages:
            found[key(s)] = found.get(key(s), 0) + s.bytes
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        count = f"{number(self.nodes)} nodes ({number(self.freed)} of them freed by backward)"
        held = f"{number(self.bytes)} bytes in {number(len(self.storages))} storages"
        saved = f"{number(self.saved)} bytes are saved for backward alone"
        lines = [
            f"A graph of {count} holds {held}",
            f"  {saved}, {number(self.outside)} are held elsewhere, too",
        ]
        if self.pending:
            lines.append(f"  {number(self.pending)} bytes more when pending results are computed")
        if self.bytes:
            lines.append(self._table("line", self.by_line))
            lines.append(self._table("operation", self.by_operation))
            if set(self.by_module) != {None}:
                lines.append(self._table("module", self.by_module))
        lines += [f"  kept alive: {owner}" for owner in self.owners]
        return "\n".join(lines)

    __repr__ = __str__

    def _table(self, name: str, groups: dict[Any, int]) -> str:
        rows = [
            [number(size), percent(size, self.bytes), "no module" if key is None else str(key)]
            for key, size in list(groups.items())[:20]
            if size
        ]
        left = len([size for size in groups.values() if size]) - len(rows)
        if left > 0:
            rows.append(["", "", f"and {number(left)} more"])
        return table(("bytes", "share", name), rows, left=(2,))


def _modules(rows: list[Any], names: Mapping[int, str]) -> list[str | None]:
    """The module of each node: as recorded, or that of a parameter which it reads, or a guess from its neighbours.

    What was recorded before the first or after the last such node belongs to none.
    """
    found: list[str | None] = []
    for row in rows:
        module = module_of(row[2])
        if module is None and names:
            for k in (len(found), *row[5]):
                own = next((names[at] for kind, at in rows[k][4] if kind == "leaf" and at in names), None)
                if own is not None:
                    module = own
                    break
        found.append(module)
    order = sorted((k for k in range(len(rows)) if rows[k][1] != "AccumulateGrad"), key=lambda k: rows[k][0])
    known = [i for i, k in enumerate(order) if found[k] is not None]
    if names and known:
        between = order[known[0] : known[-1] + 1]
        paths = [None if (name := found[k]) is None else tuple(name.split(".")) for k in between]
        for k, path in zip(between, guessed(paths), strict=True):
            found[k] = ".".join(path) or _WHOLE
    return found


def _tensors_in(value: Any, depth: int = 4) -> Iterable[Tensor]:
    """The tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _tensors_in(item, depth - 1)
    elif depth and hasattr(value, "tensor") and isinstance(value.tensor, Tensor):
        yield value.tensor


def _nodes_of(root: Any, caller: str) -> list[Any]:
    if isinstance(root, Node):
        return [root]
    if isinstance(root, Tensor):
        node = root.grad_fn
        if node is None:
            why = "it is a leaf" if root.requires_grad else "it does not require grad"
            raise RuntimeError(
                f"{caller}: the tensor has no graph: {why}. Pass the result of operations on tensors that do"
            )
        return [node]
    if isinstance(root, tuple) and root and isinstance(root[0], Node):
        return [root[0]]
    if isinstance(root, list | tuple) and root:
        return [node for item in root for node in _nodes_of(item, caller)]
    raise TypeError(f"{caller}: expected a tensor, a node, an edge, or several of them, not {type(root).__name__}")


def memory_report(root: Any, *, model: Any = None, owners: bool = True) -> GraphMemoryReport:
    """Report what the graph behind a tensor keeps in memory. Nothing is computed or changed.

    Args:
        root: A tensor with a ``grad_fn``, a node, a :class:`GradientEdge`, or several of them.
        model: A module: nodes that read its parameters are of the parameter's module, and those between them of what
            their neighbours have in common, which is a guess. Modules are known, and without it nothing is guessed,
            where :func:`rgrad.memory.record` was running in forward.
        owners: Whether to look for the variables that keep the graph alive, which takes time with the number of Python
            objects.

    Returns:
        The report: print it, or read its attributes.

    Raises:
        RuntimeError: A tensor has no graph.
        TypeError: It is something else.

    Example:
        >>> x = rgrad.ones(1000, 1000, requires_grad=True)
        >>> loss = x.exp().sum()
        >>> _ = loss.item()
        >>> report = rgrad.autograd.graph.memory_report(loss)
        >>> report.nodes, report.saved, list(report.by_operation)[0]
        (3, 4194304, 'ExpBackward0')
    """
    roots = _nodes_of(root, "memory_report")
    names: dict[int, str] = {}
    if model is not None:
        storages = {row[0]: at for at, row in enumerate(_core._graph_memory(roots)[1])}
        for module_name, module in model.named_modules():
            for parameter in module.parameters(recurse=False):
                at = storages.get(_core._tensor_memory(parameter)[0])
                if at is not None:
                    names.setdefault(at, module_name or _WHOLE)
    made = GraphMemoryReport(roots, names)
    if owners:
        made.owners = graph_owners(holding={node._sequence_nr() for node in roots})
    return made
