"""Who keeps a tensor alive: the chain of Python objects from a variable to it, and the graphs that tensors hold."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Collection
from inspect import CO_OPTIMIZED
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._runtime.lines import Line, line_of, number

__all__ = ["GraphOwner", "graph_owners"]

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_DEPTH = 6
# So many owners are looked for of one object, and so many of the tensors that hold the largest graphs are explained.
_OWNERS = 4
_EXPLAINED = 8


class GraphOwner(NamedTuple):
    """What keeps a graph alive.

    As text: "loss_sum in main() at train.py:31 in main holds 412 graphs: 1,236 nodes, 824 bytes".

    Attributes:
        owners: The chains of Python names that lead to the tensor, such as "trainer.losses[3] in main()"; empty if
            none was found.
        line: Where the tensor that holds the graph was computed.
        graphs: How many graphs hang together below it: those that backward has freed, or else how often the line that
            made the tensor is in its graph.
        nodes: The number of nodes.
        bytes: The bytes that nothing but graphs holds, each storage once.

    Example:
        >>> x = rgrad.ones(3, requires_grad=True)
        >>> loss = (x * x).sum()
        >>> rgrad.autograd.graph.memory_report(loss).owners[0].nodes
        3
    """

    owners: tuple[str, ...]
    line: Line
    graphs: int
    nodes: int
    bytes: int

    def __str__(self) -> str:
        who = " and ".join(self.owners) or "a tensor without a name"
        many = "1 graph" if self.graphs == 1 else f"{number(self.graphs)} graphs"
        nodes = "1 node" if self.nodes == 1 else f"{number(self.nodes)} nodes"
        return f"{who} at {self.line} holds {many}: {nodes}, {number(self.bytes)} bytes"


def _user_frames() -> list[FrameType]:
    """The frames of the user's code in all threads."""
    found = []
    frames = list(sys._current_frames().values())
    while frames:
        at: FrameType | None = frames.pop()
        while at is not None:
            if not at.f_code.co_filename.startswith(_PACKAGE):
                found.append(at)
            at = at.f_back
    # No variable is left with the frame of this function: such a cycle would keep the callers' variables until a
    # collection.
    return found


class _Search:
    """Looks for the names of objects. It keeps nothing alive afterwards."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {}
        self.ignored: set[int] = {id(self.names), id(self.__dict__)}
        seen: set[int] = set()
        for frame in _user_frames():
            is_module = frame.f_locals is frame.f_globals
            scope = frame.f_locals
            self._add(scope, "" if is_module else f" in {frame.f_code.co_name}()")
            if type(scope) is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.gettrace() is None:
                # A copy of the variables, which would keep their values alive until the function returns. (A debugger
                # may be using it, and newer versions of Python make no copy.)
                scope.clear()
            if id(frame.f_globals) not in seen:
                seen.add(id(frame.f_globals))
                self._add(frame.f_globals, "")
        self.modules = {id(vars(m)): name for name, m in list(sys.modules.items()) if isinstance(m, ModuleType)}

    def _add(self, scope: Any, where: str) -> None:
        for name, value in list(scope.items()):
            if isinstance(name, str) and not name.startswith("__"):
                names = self.names.setdefault(id(value), [])
                text = f"{name}{where}"
                if text not in names:
                    names.append(text)

    def chains(self, target: object, depth: int = _DEPTH, path: frozenset[int] = frozenset()) -> list[str]:
        """The ways to ``target``, outermost name first."""
        direct = self.names.get(id(target))
        if direct:
            return direct[:_OWNERS]
        if depth == 0:
            return []
        found: list[str] = []
        path = path | {id(target)}
        referrers = gc.get_referrers(target)
        path = path | {id(referrers)}
        for holder in referrers:
            if id(holder) in path or id(holder) in self.ignored or len(found) >= _OWNERS:
                continue
            step = self._step(holder, target)
            if step is None:
                continue
            if id(holder) in self.modules:
                name = self.modules[id(holder)]
                found.append(step[1:] if name == "__main__" else f"{name}{step}")
                continue
            found += [_joined(outer, step) for outer in self.chains(holder, depth - 1, path)]
        return list(dict.fromkeys(found))[:_OWNERS]

    def _step(self, holder: object, target: object) -> str | None:
        """How ``holder`` names ``target``; None if it is not a holder that a person would name."""
        if isinstance(holder, FrameType | _Search):
            return None
        if isinstance(holder, dict):
            if id(holder) in self.modules or _is_attributes(holder):
                return next((f".{k}" for k, v in holder.items() if v is target and isinstance(k, str)), None)
            return next((f"[{k!r}]" for k, v in list(holder.items()) if v is target), None)
        if isinstance(holder, list | tuple):
            return next((f"[{k}]" for k, v in enumerate(holder) if v is target), None)
        if isinstance(holder, CellType):
            return ""
        if isinstance(holder, FunctionType):
            return f" of the function {holder.__qualname__}"
        attributes = getattr(holder, "__dict__", None)
        if isinstance(attributes, dict):
            if attributes is target:
                return ""
            return next((f".{k}" for k, v in list(attributes.items()) if v is target), None)
        return None


def _is_attributes(holder: dict[Any, Any]) -> bool:
    """Whether a dict is the ``__dict__`` of an object."""
    return any(getattr(o, "__dict__", None) is holder for o in gc.get_referrers(holder) if not isinstance(o, FrameType))


def _joined(outer: str, step: str) -> str:
    """``trainer in main()`` and ``.loss`` make ``trainer.loss in main()``."""
    name, sep, where = outer.partition(" in ")
    return f"{name}{step}{sep}{where}"


class _Walk:
    """The nodes and storages behind several tensors, walked once."""

    def __init__(self, nodes: list[Any]) -> None:
        self.rows, self.storages = _core._graph_memory(nodes)

    def below(self, start: int) -> "_Below":
        """What is behind a node."""
        made = _Below(1, {start}, set())
        work = [start]
        entered: set[int] = set()
        places: Counter[tuple[str, int]] = Counter()
        while work:
            at = work.pop()
            _, name, site, was_run, holds, following, _, _ = self.rows[at]
            made.storages.update(k for _, k in holds if not self.storages[k][5])
            places[name, site] += 1
            for k in following:
                if self.rows[k][3] and not was_run:
                    entered.add(k)
                if k not in made.nodes:
                    made.nodes.add(k)
                    work.append(k)
        _, name, site, *_ = self.rows[start]
        return made._replace(graphs=max(len(entered), places[name, site]))


class _Below(NamedTuple):
    """The graphs, nodes and storages behind a node; storages that something else holds, too, are left out."""

    graphs: int
    nodes: set[int]
    storages: set[int]


def _of_any(name: str) -> str:
    """``losses[3] in main()`` as ``losses[...] in main()``: elements of a container that are one entry."""
    container, bracket, rest = name.rpartition("[")
    return f"{container}[...]{rest.partition(']')[2]}" if bracket else name


def graph_owners(holding: Collection[int] = ()) -> list[GraphOwner]:
    """What keeps graphs alive, the largest first. A tensor in the graph of another one is left out.

    Args:
        holding: Sequence numbers of nodes: only graphs with one of them. By default all.

    Returns:
        One entry for each tensor that holds a graph. Tensors of one line in one container are one entry:
        ``losses[...]``.

    Example:
        >>> from rgrad.autograd._owners import graph_owners
        >>> x = rgrad.ones(3, requires_grad=True)
        >>> loss = (x * x).sum()
        >>> [owner.graphs for owner in graph_owners({loss.grad_fn._sequence_nr()})]
        [1]
    """
    tensors = [o for o in gc.get_objects() if issubclass(type(o), Tensor)]
    holders = [(t, t.grad_fn) for t in tensors if not t.is_leaf]
    holders = [(t, node) for t, node in holders if node is not None]
    if not holders:
        return []
    # Roots are the first rows, each node once.
    position: dict[int, int] = {}
    roots: list[Any] = []
    for _, node in holders:
        if id(node) not in position:
            position[id(node)] = len(roots)
            roots.append(node)
    walk = _Walk(roots)
    inner = {k for row in walk.rows for k in row[5]}
    tops = [(t, position[id(node)]) for t, node in holders if position[id(node)] not in inner]
    measured = [(walk.below(at), t, at) for t, at in tops]
    if holding:
        wanted = {k for k, row in enumerate(walk.rows) if row[0] in holding}
        measured = [m for m in measured if not wanted.isdisjoint(m[0].nodes)]
    measured.sort(key=lambda m: len(m[0].nodes), reverse=True)
    search = _Search()
    search.ignored |= {id(holders), id(tops), id(measured), id(tensors)}
    search.ignored |= {id(row) for rows in (holders, tops, measured) for row in rows}
    found: dict[tuple[Any, ...], tuple[tuple[str, ...], _Below]] = {}
    joined: set[tuple[Any, ...]] = set()
    for k, (below, t, at) in enumerate(measured):
        owners = tuple(search.chains(t)) if k < _EXPLAINED else ()
        # Elements of one container, such as a list of losses, are one entry; so are those that were not looked for.
        outer = tuple(o.rpartition("[")[0] for o in owners)
        key = (line_of(walk.rows[at][2]), outer if any(outer) else owners)
        if key not in found and not owners:
            key = next((other for other in found if other[0] == key[0]), key)
        old = found.get(key)
        if old is not None:
            joined.add(key)
            found[key] = (
                old[0],
                _Below(old[1].graphs + below.graphs, old[1].nodes | below.nodes, old[1].storages | below.storages),
            )
        else:
            found[key] = (owners, below)
    return [
        GraphOwner(
            tuple(map(_of_any, owners)) if key in joined else owners,
            key[0],
            below.graphs,
            len(below.nodes),
            sum(walk.storages[k][3] for k in below.storages),
        )
        for key, (owners, below) in found.items()
    ]
