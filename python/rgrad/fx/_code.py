"""Source text of a graph, and the objects that are named in it."""

from __future__ import annotations

import builtins
import importlib
import math
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .node import Node

if TYPE_CHECKING:
    from .graph import Graph


class PythonCode(NamedTuple):
    """A function in Python.

    Attributes:
        src: Its text.
        globals: The objects that the text names.
    """

    src: str
    globals: dict[str, Any]


_BINARY = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_UNARY = {operator.neg: "-", operator.invert: "~", operator.pos: "+"}
# Where functions are looked for, so that the text has the name that a user would write.
_PUBLIC = ("rgrad", "rgrad.nn.functional", "rgrad.linalg", "rgrad.special", "rgrad.fft", "math", "operator")


class _Namer:
    """Names of objects in the text."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}

    def of(self, value: Any) -> str:
        """An expression for a function or class."""
        name = getattr(value, "__name__", type(value).__name__)
        if getattr(builtins, name, None) is value:
            return str(name)
        owner = getattr(value, "__objclass__", None)
        if owner is _core.Tensor and getattr(owner, name, None) is not None:
            self.globals["rgrad"] = importlib.import_module("rgrad")
            return f"rgrad.Tensor.{name}"
        for module in _PUBLIC:
            found = importlib.import_module(module)
            if getattr(found, name, None) is value:
                top = module.partition(".")[0]
                self.globals[top] = importlib.import_module(top)
                return f"{module}.{name}"
        return self.bind(re.sub(r"\W", "_", f"{getattr(value, '__module__', '') or ''}_{name}").strip("_"), value)

    def bind(self, base: str, value: Any) -> str:
        """A name for an object that has no expression."""
        name, k = base, 0
        while name in self.globals and self.globals[name] is not value:
            k += 1
            name = f"{base}_{k}"
        self.globals[name] = value
        return name

    def text(self, a: Any) -> str:
        """Arguments as an expression."""
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            inside = ", ".join(map(self.text, a))
            if hasattr(a, "_fields"):
                return f"{self.of(type(a))}({inside})"
            return f"({inside},)" if len(a) == 1 else f"({inside})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.text, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{self.text(k)}: {self.text(x)}" for k, x in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        if a is None or a is Ellipsis or isinstance(a, (bool, int, str, bytes)):
            return repr(a)
        if isinstance(a, float):
            return repr(a) if math.isfinite(a) else self.bind("inf" if a > 0 else "neg_inf" if a < 0 else "nan", a)
        if isinstance(a, (_core.dtype, _core.device, _core.memory_format)):
            self.globals["rgrad"] = importlib.import_module("rgrad")
            return f"rgrad.{a!r}" if isinstance(a, _core.device) else str(a)
        if callable(a):
            return self.of(a)
        return self.bind(f"_object_{type(a).__name__}", a)


def _call(namer: _Namer, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    parts = [namer.text(a) for a in args]
    parts += [f"{k} = {namer.text(v)}" for k, v in kwargs.items()]
    return f"{function}({', '.join(parts)})"


def _attribute_of(root: str, target: str) -> str:
    text = root
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


def _line(namer: _Namer, node: Node, root: str) -> str:
    if node.op == "get_attr":
        return _attribute_of(root, node.target)
    if node.op == "call_module":
        return _call(namer, _attribute_of(root, node.target), node.args, node.kwargs)
    if node.op == "call_method":
        owner = namer.text(node.args[0])
        owner = owner if owner.isidentifier() else f"({owner})"
        return _call(namer, f"{owner}.{node.target}", node.args[1:], node.kwargs)
    if node.target in _BINARY and len(node.args) == 2 and not node.kwargs:
        return f"{namer.text(node.args[0])} {_BINARY[node.target]} {namer.text(node.args[1])}"
    if node.target in _UNARY and len(node.args) == 1:
        return f"{_UNARY[node.target]}{namer.text(node.args[0])}"
    if node.target is operator.getitem and len(node.args) == 2:
        return f"{namer.text(node.args[0])}[{namer.text(node.args[1])}]"
    if node.target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
        return f"{namer.text(node.args[0])}.{node.args[1]}"
    return _call(namer, namer.of(node.target), node.args, node.kwargs)


def python_code(graph: Graph, root: str) -> PythonCode:
    """The function of a graph; each name is dropped after its last use."""
    namer = _Namer()
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        for used in node.all_input_nodes:
            last[used] = node
    parameters, lines = [root], []
    returned = False
    for node in graph.nodes:
        dropped = [n.name for n, user in last.items() if user is node]
        end = f";  {' = '.join(dropped)} = None" if dropped else ""
        if node.op == "placeholder":
            star = node.target[: len(node.target) - len(node.target.lstrip("*"))]
            default = f" = {namer.text(node.args[0])}" if node.args else ""
            parameters.append(f"{star}{node.name if star else node.target}{default}")
            if not star and node.name != node.target:
                lines.append(f"{node.name} = {node.target}")
        elif node.op == "output":
            lines.append(f"return {namer.text(node.args[0])}")
            returned = True
            break
        else:
            unused = "" if node.users else f";  {node.name} = None"
            lines.append(f"{node.name} = {_line(namer, node, root)}{end}{unused}")
    if not returned:
        lines.append("return None")
    body = "\n    ".join(lines)
    return PythonCode(f"\ndef forward({', '.join(parameters)}):\n    {body}\n", namer.globals)
