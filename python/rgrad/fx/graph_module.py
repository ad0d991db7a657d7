"""Modules whose ``forward`` is a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from .._core import Tensor
from ..nn import Module
from .graph import Graph, PythonCode

__all__ = ["GraphModule"]

_numbers = itertools.count()
# PyTorch's key of attributes in `meta` that copies keep.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module that has what a dictionary has, to copy from."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module what another one has under a dotted name."""
    *prefix, field = target.split(".")
    for item in prefix:
        found = getattr(from_module, item)
        made = getattr(to_module, item, None)
        if found is made:
            return  # shared already
        if made is None:
            made = Module()
            setattr(to_module, item, made)
        from_module, to_module = found, made
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and field in from_module._buffers:
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _get_attr(model: Module, attr_name: str) -> Any:
    """What a module has under a dotted name."""
    value: Any = model
    for part in attr_name.split("."):
        value = getattr(value, part)
    return value


def _assign_attr(value: Any, to_module: Module, target: str) -> None:
    """Give a module a value under a dotted name."""
    *prefix, field = target.split(".")
    for item in prefix:
        made = getattr(to_module, item, None)
        if made is None:
            made = Module()
            setattr(to_module, item, made)
        to_module = made
    if isinstance(value, Tensor) and not isinstance(value, Module) and type(value).__name__ != "Parameter":
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


class GraphModule(Module):
    """A module that runs a graph. Its ``forward`` is made of the graph's text, which :attr:`code` shows.

    Args:
        root: The module, or a dictionary, that has what the graph names; that is taken over.
        graph: The graph.
        class_name: The name of the module's class.

    Raises:
        RuntimeError: ``root`` lacks something that the graph names.

    Example:
        >>> traced = rgrad.fx.symbolic_trace(rgrad.nn.Sequential(rgrad.nn.Linear(2, 1), rgrad.nn.ReLU()))
        >>> print(traced.code.strip())
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            return _1
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A class of its own for each, since it gets a `forward`.
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__}) if "_of_one" not in vars(cls) else cls
        own._of_one = True  # type: ignore[attr-defined]
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            if isinstance(root, Module):
                _copy_attr(root, self, node.target)
            elif node.target in root:
                _assign_attr(root[node.target], self, node.target)
            else:
                raise RuntimeError(
                    f"Node {node} referenced target {node.target} but that target was not provided in `root`!"
                )
        self.__dict__["meta"] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. After it was changed, :meth:`recompile`."""
        graph: Graph = self.__dict__["_graph"]
        return graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        g.owning_module = self
        self.__dict__["_graph"] = g
        self.recompile()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph":
            type(self).graph.fset(self, value)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    @property
    def code(self) -> str:
        """The text of ``forward``."""
        text: str = self.__dict__["_code"]
        return text

    def recompile(self) -> PythonCode:
        """Make ``forward`` of the graph.

        Returns:
            Its text, and the objects that it names.
        """
        made = self.graph.python_code(root_module="self")
        self.__dict__["_code"] = made.src
        name = f"<eval_with_key>.{next(_numbers)}"
        # So that tracebacks show its lines.
        linecache.cache[name] = len(made.src), None, made.src.splitlines(keepends=True), name
        scope = dict(made.globals)
        exec(compile(made.src, name, "exec"), scope)
        type(self).forward = scope["forward"]
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module under a dotted name; modules on the way are made.

        Returns:
            False if something else stands in the way.
        """
        *prefix, field = target.split(".")
        owner: Module = self
        for item in prefix:
            found = getattr(owner, item, None)
            if found is None:
                found = Module()
                setattr(owner, item, found)
            if not isinstance(found, Module):
                return False
            owner = found
        owner.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take a module away.

        Returns:
            Whether there was one.
        """
        *prefix, field = target.split(".")
        try:
            owner = self.get_submodule(".".join(prefix))
        except AttributeError:
            return False
        if not isinstance(getattr(owner, field, None), Module):
            return False
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:k]) for k in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    used |= {
                        f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules() if name
                    }
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **kwargs: Any) -> str:
        """The text of ``forward`` in a class.

        Args:
            print_output: Print it, too.
            kwargs: Has no effect.
        """
        body = "\n".join(f"    {line}" if line else line for line in self.code.strip("\n").split("\n"))
        text = f"class {type(self).__name__}(rgrad.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Refused: graphs are not written as packages.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "fx.GraphModule.to_folder: save state_dict() with rgrad.save, and trace the module anew"
        )

    def _deepcopy_init(self) -> Any:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = GraphModule.__new__(GraphModule)
        memo[id(self)] = made
        Module.__init__(made)
        type(made).__name__ = type(self).__name__
        for name, value in self.__dict__.items():
            if name not in ("_graph", "_code"):
                made.__dict__[name] = copy.deepcopy(value, memo)
        made.graph = copy.deepcopy(self.graph)
        copied: GraphModule = made
        return copied

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)

    def __reduce__(self) -> Any:
        raise NotImplementedError(
            "fx: a GraphModule is not pickled, since it is code. Save state_dict() with rgrad.save, and trace the "
            "module anew"
        )

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{self.code}"
