"""Graphs that are run node by node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclasses override what a kind of node does.

    Args:
        module: The module that has what the graph names.
        garbage_collect_values: Drop values after their last use.
        graph: The graph, if it is not the module's.

    Example:
        >>> traced = rgrad.fx.symbolic_trace(lambda x: x + 1)
        >>> rgrad.fx.Interpreter(traced).run(rgrad.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.extra_traceback = True
        self._last: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self._last.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """What the graph gives.

        Args:
            args: Its inputs.
            initial_env: Values of nodes, which are not run then.
            enable_io_processing: Has no effect.

        Raises:
            RuntimeError: There are too few inputs.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if node.op == "output":
                return self.env[node]
            for used in self._last.get(node, ()):
                self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As :meth:`run`, with the inputs in a list that is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input.

        Raises:
            RuntimeError: There is none.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the module has under a name."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function gives."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a method of the first argument gives."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a module of the module gives."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a dotted name.

        Raises:
            RuntimeError: It has nothing there.
        """
        value: Any = self.module
        for k, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(target.split('.')[: k + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with values in place of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return tuple(args), dict(kwargs)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in place of nodes.

        Raises:
            RuntimeError: A value is not there.
        """

        def load(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return map_arg(args, load)


class _TransformerTracer(TracerBase):
    def __init__(self, graph: Graph, root: Module) -> None:
        self.graph, self.root = graph, root


class Transformer(Interpreter):
    """Makes a new graph of one, node by node; subclasses override what a kind of node becomes.

    Args:
        module: A :class:`GraphModule`.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        default = next(iter(args)) if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module with the new graph."""
        result = super().run()
        if result is not None:
            self.new_graph.output(map_proxies(result))
        return GraphModule(self.module, self.new_graph)


def map_proxies(a: Any) -> Any:
    """A result with nodes in place of proxies."""
    from .node import map_aggregate

    return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)
