"""Graphs: nodes in the order in which they run."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from ._code import PythonCode, python_code
from .node import Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


# Names that the text uses itself.
_TAKEN = ("self", "rgrad", "math", "operator", "inf", "neg_inf", "nan")


class CodeGen:
    """How arguments and results of a graph's function look. There is the plain form alone."""


class _NodeList:
    """The nodes of a graph, which may be changed while they are walked through."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        now = getattr(self.graph._root, self.direction)
        while now is not self.graph._root:
            if not now._erased:
                yield now
            now = getattr(now, self.direction)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A program as nodes.

    Args:
        owning_module: The module that has its parameters and modules.
        tracer_cls: The class of the tracer that made it.
        tracer_extras: Has no effect.

    Example:
        >>> graph = rgrad.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.output(graph.call_function(rgrad.relu, (x,)))
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            relu = rgrad.relu(x);  x = None
            return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names: dict[str, int] = {}
        self._used: set[str] = set()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _NodeList:
        """The nodes in their order."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Target = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind.

        Args:
            op: The kind.
            target: What they call, if not any.
            sort: Has no effect: they come in their order.
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node of the result.

        Raises:
            StopIteration: There is none.
        """
        return next(n for n in reversed(self.nodes) if n.op == "output")

    # ------------------------------------------------------------------------------------------------- making

    def _fresh(self, candidate: str) -> str:
        name = re.sub(r"\W+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        found = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (found[1], int(found[2])) if found else (name, 0)
        number = number or self._names.get(base, 0)
        while name in self._used or keyword.iskeyword(name) or hasattr(builtins, name) or name in _TAKEN:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._names[base] = number
        return name

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the place where nodes are inserted, at first the end.

        Args:
            op: Its kind.
            target: What it calls.
            args: Its arguments.
            kwargs: Its keyword arguments.
            name: A name to begin with.
            type_expr: A type to remember.

        Raises:
            AssertionError: The kind is unknown.
            ValueError: The target does not fit the kind.
        """
        base = name
        if base is None:
            base = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
            base = _snake(base.replace(".", "_") if op != "placeholder" else base.lstrip("*"))
        made = Node(self, self._fresh(base), op, target, args or (), kwargs or {}, type_expr)
        self._insert(made)
        self._len += 1
        return made

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input.

        Args:
            name: Its name.
            type_expr: A type to remember.
            default_value: What it is if the caller gives nothing.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a module of the module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: Any = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph.

        Args:
            node: The node.
            arg_transform: Gives the node of this graph for one of the other.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of another graph but its output.

        Args:
            g: The other graph.
            val_map: Takes the copy of each node; what is in it is not copied.
            return_output_node: Give the output's node, too.

        Returns:
            What the output of the other graph is here, or None.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, {}, return_output_node=True)
        if found is not None:
            result, old = found
            made.output(result, old.type).meta = dict(old.meta)
        return made

    # ----------------------------------------------------------------------------------------------- changing

    def erase_node(self, to_erase: Node) -> None:
        """Take a node away that nobody uses.

        Raises:
            RuntimeError: It is used, or of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._set((), {})
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """A context in which new nodes come before a node, or at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """A context in which new nodes come after a node, or at the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        at = n

        def insert(new: Node) -> None:
            nonlocal at
            at.append(new)
            at = new

        return _InsertPoint(self, insert)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take away what nobody uses and what has no other effect.

        Args:
            is_impure_node: Whether a node must stay.

        Returns:
            Whether there was any.
        """
        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len != before

    def lint(self) -> None:
        """Check that the graph can run.

        Raises:
            RuntimeError: A node is used before it is made, is of another graph, has another's name, or names what the
                module lacks.
        """
        seen: set[str] = set()
        known: set[Node] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph")
                if used not in known:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in seen:
                raise RuntimeError(f"Node redefined name {node.name}!")
            known.add(node)
            seen.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                value: Any = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part}")
                    value = getattr(value, part)

    # ------------------------------------------------------------------------------------------------ showing

    def python_code(self, root_module: str, *, verbose: bool = False, **kwargs: Any) -> PythonCode:
        """A function ``forward`` in Python.

        Args:
            root_module: What the module is called in it.
            verbose: Has no effect.
            kwargs: Has no effect.
        """
        return python_code(self, root_module)

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        body = "\n    ".join(line for line in lines if line)
        return f"graph({', '.join(names)}):\n    {body}" if body else f"graph({', '.join(names)}):"

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))  # type: ignore[arg-type]
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())

    def on_generate_code(self, make_transformer: Any) -> Any:
        """Refused: the code of a graph is not rewritten as text.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("fx.Graph.on_generate_code: change the nodes of the graph instead of its text")


def _snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return words.lower() if words.lower() != "forward" else "forward_1"
