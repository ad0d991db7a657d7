"""Parts of a graph that look like a pattern, replaced by another graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._core import Tensor
from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr, _get_attr
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where the pattern was found.

    Attributes:
        anchor: The node of the graph that gives the pattern's first result.
        nodes_map: The node of the graph for each node of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """A place where the pattern was replaced.

    Attributes:
        anchor: The node of the graph that gave the pattern's first result.
        nodes_map: The node of the graph for each node of the pattern.
        replacements: The nodes that came in their place.
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


class InternalMatch(NamedTuple):
    """A place where the pattern was found, as filters see it.

    Attributes:
        anchors: The nodes of the graph that give the pattern's results.
        nodes_map: The node of the graph for each node of the pattern.
        placeholder_nodes: What stands in the graph for the pattern's inputs, in their order.
        returning_nodes: The nodes of the graph for the pattern's results, in their order.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node]
    placeholder_nodes: list[Any]
    returning_nodes: list[Node]


_Filter = Callable[[InternalMatch, Graph, Graph], bool]


def _graph_of(what: Any) -> Graph:
    if isinstance(what, Graph):
        return what
    return what.graph if isinstance(what, GraphModule) else symbolic_trace(what).graph


def _results(graph: Graph) -> list[Node]:
    """The nodes that a graph gives, without repetitions."""
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    return list(dict.fromkeys(output.all_input_nodes))


class _Matcher:
    """Looks for a pattern in a graph. Placeholders of the pattern stand for anything, each for one thing everywhere."""

    def __init__(self, pattern: Graph, module: GraphModule, pattern_module: Any, ignore_literals: bool) -> None:
        self.pattern, self.module, self.owner = pattern, module, pattern_module
        self.ignore_literals = ignore_literals
        self.inputs = [n for n in pattern.nodes if n.op == "placeholder"]
        self.results = _results(pattern)
        if not self.results or all(n.op == "placeholder" for n in self.results):
            raise ValueError("fx.replace_pattern: the pattern gives back its inputs; it has no operation to look for")

    def _same_value(self, a: Node, b: Node) -> bool:
        if self.owner is None:
            return bool(a.target == b.target)
        mine, other = _get_attr(self.owner, str(a.target)), _get_attr(self.module, str(b.target))
        if isinstance(mine, Tensor) or isinstance(other, Tensor):
            return type(mine) is type(other)
        return bool(mine == other)

    def _fits(self, wanted: Any, found: Any, bound: dict[Node, Any]) -> bool:
        """Whether a part of an argument fits. Not recursive over nodes: those are in `_node_fits`'s list."""
        if isinstance(wanted, Node):
            if wanted in bound:
                return bool(bound[wanted] is found if isinstance(found, Node) else bound[wanted] == found)
            if wanted.op == "placeholder":
                if not isinstance(found, Node) and not self.ignore_literals:
                    return False
            elif not isinstance(found, Node) or wanted.op != found.op:
                return False
            elif wanted.op == "get_attr":
                if not self._same_value(wanted, found):
                    return False
            elif wanted.target != found.target:
                return False
            bound[wanted] = found
            if wanted.op != "placeholder":
                self.waiting.append((wanted, found))
            return True
        if isinstance(wanted, (tuple, list)):
            return (
                isinstance(found, (tuple, list))
                and len(wanted) == len(found)
                and all(self._fits(w, f, bound) for w, f in zip(wanted, found, strict=True))
            )
        if isinstance(wanted, dict):
            return (
                isinstance(found, dict)
                and wanted.keys() == found.keys()
                and all(self._fits(value, found[key], bound) for key, value in wanted.items())
            )
        if isinstance(found, Node):
            return False
        return self.ignore_literals or (type(wanted) is type(found) and bool(wanted == found))

    def _bind(self, wanted: Node, found: Node, bound: dict[Node, Any]) -> bool:
        """Bind a node of the pattern and all that it is computed from."""
        self.waiting: list[tuple[Node, Node]] = []
        fits = self._fits(wanted, found, bound)
        while fits and self.waiting:
            a, b = self.waiting.pop()
            fits = self._fits(a.args, b.args, bound) and self._fits(dict(a.kwargs), dict(b.kwargs), bound)
        return fits

    def _inside(self, bound: dict[Node, Any]) -> bool:
        """Whether what lies between inputs and results is used by nobody else, so that it can go."""
        taken = {found for wanted, found in bound.items() if wanted.op != "placeholder"}
        kept = {bound[n] for n in self.results}
        return all(found in kept or all(user in taken for user in found.users) for found in taken)

    def matches(self, graph: Graph) -> list[InternalMatch]:
        """All matches in the order of the graph, of those that overlap the first."""
        first, *others = [n for n in self.results if n.op != "placeholder"]
        nodes, found, used = list(graph.nodes), [], set[Node]()

        def extend(left: list[Node], bound: dict[Node, Any]) -> dict[Node, Any] | None:
            """What else the pattern gives may be anywhere in the graph."""
            if not left:
                return bound if self._inside(bound) else None
            if left[0] in bound:
                return extend(left[1:], bound)
            for node in nodes:
                made = dict(bound)
                if self._bind(left[0], node, made):
                    whole = extend(left[1:], made)
                    if whole is not None:
                        return whole
            return None

        for node in nodes:
            bound: dict[Node, Any] = {}
            if node.op in ("placeholder", "output") or not self._bind(first, node, bound):
                continue
            whole = extend(others, bound)
            if whole is None:
                continue
            taken = {n for wanted, n in whole.items() if wanted.op != "placeholder"}
            if taken & used:
                continue
            used |= taken
            returned = [whole[n] for n in self.results]
            placeholders = [whole[n] for n in self.inputs if n in whole]
            found.append(InternalMatch([whole[first]], whole, placeholders, returned))
        return found


def _insert_point(graph: Graph, match: InternalMatch) -> Node:
    """The node before which the replacement goes: its inputs come before, what uses its results after."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    users = {user for n in match.returning_nodes for user in n.users}
    last = max(match.returning_nodes, key=order.__getitem__)
    return min(users, key=order.__getitem__) if users else last.next


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    filters: list[_Filter],
    ignore_literals: bool = False,
    callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    graph, wanted = gm.graph, _graph_of(pattern)
    owner = pattern if isinstance(pattern, Module) else None
    matcher = _Matcher(wanted, gm, owner, ignore_literals)
    matches = [m for m in matcher.matches(graph) if all(f(m, graph, wanted) for f in filters)]
    common = None if replacement is None else _graph_of(replacement)
    if common is None and callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    # A result that was replaced may be an input of a later match.
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        made = callback(match, graph, wanted) if callback is not None else common
        assert made is not None
        inputs = [n for n in made.nodes if n.op == "placeholder"]
        if len(inputs) != len(match.placeholder_nodes):
            raise AssertionError(
                f"fx.replace_pattern: the pattern has {len(match.placeholder_nodes)} inputs that are used, and the "
                f"replacement {len(inputs)}: Placeholder count mismatch"
            )
        given = [changed.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
        values: dict[Node, Any] = dict(zip(inputs, given, strict=True))
        with graph.inserting_before(_insert_point(graph, match)):
            copied = graph.graph_copy(made, values)
        results = [copied] if isinstance(copied, Node) else list(copied)
        if len(results) != len(match.returning_nodes):
            raise AssertionError(
                f"fx.replace_pattern: the pattern gives {len(match.returning_nodes)} results, and the replacement "
                f"{len(results)}: Returning nodes count mismatch"
            )
        for old, new in zip(match.returning_nodes, results, strict=True):
            old.replace_all_uses_with(new)
            changed[old] = new
        for node in reversed(list(wanted.nodes)):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        new_nodes = [v for k, v in values.items() if k.op != "placeholder"]
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes))
    if isinstance(replacement, Module):
        _take_over(gm, replacement)
    gm.recompile()
    return done


def _take_over(gm: GraphModule, replacement: Module) -> None:
    """Give the module what the nodes of the replacement name, and drop what no node names any more."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            target = str(node.target)
            try:
                _get_attr(gm, target)
            except AttributeError:
                _copy_attr(replacement, gm, target)
    gm.delete_all_unused_submodules()


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each part of a module's graph that computes what a pattern does.

    The pattern's inputs stand for any values. A part is replaced if nobody outside of it uses what it computes between
    its inputs and its results; of parts that overlap, the first one is.

    Args:
        gm: The module, whose graph is changed.
        pattern: A function, module or graph.
        replacement: A function, module or graph with as many inputs and results.

    Returns:
        Where the pattern was found.

    Raises:
        AssertionError: The numbers of inputs or results differ.

    Example:
        >>> def f(x, y):
        ...     return (x * y + y).relu()
        >>> traced = rgrad.fx.symbolic_trace(f)
        >>> found = rgrad.fx.replace_pattern(traced, lambda a, b: a * b + b, lambda a, b: (a + 1) * b)
        >>> len(found), traced(rgrad.tensor(2.0), rgrad.tensor(3.0))
        (1, tensor(9.))
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace(gm, pattern, replacement, [])]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[_Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As :func:`replace_pattern`, where filters agree.

    Args:
        gm: The module, whose graph is changed.
        pattern: A function, module or graph.
        replacement: A function, module or graph with as many inputs and results.
        match_filters: Functions of the match, the graph and the pattern's graph that say whether to replace it.
        ignore_literals: Let numbers and other constants of the pattern stand for any.
        replacement_callback: Gives the replacement for a match, in place of ``replacement``.

    Returns:
        What was replaced, and the new nodes.

    Raises:
        AssertionError: There is no replacement, or the numbers of inputs or results differ.

    Example:
        >>> traced = rgrad.fx.symbolic_trace(lambda x: x.relu().relu())
        >>> made = rgrad.fx.subgraph_rewriter.replace_pattern_with_filters(
        ...     traced, lambda x: x.relu(), lambda x: x.tanh(), [lambda match, graph, pattern: False]
        ... )
        >>> len(made)
        0
    """
    return _replace(gm, pattern, replacement, list(match_filters or []), ignore_literals, replacement_callback)
