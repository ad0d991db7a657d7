"""Proxies: what stands for the values of a program while it is traced."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .. import _core
from .._core import Tensor
from .graph import Graph
from .node import Node, map_aggregate

__all__ = ["Attribute", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """A program that depends on values, which proxies do not have."""


_PLAIN = (int, float, bool, complex, str, bytes, type(None), type(...), _core.dtype, _core.device, _core.memory_format)


class TracerBase:
    """Makes nodes and proxies. :class:`rgrad.fx.Tracer` traces modules."""

    graph: Graph
    root: Any = None

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Add a node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node, and give what stands for its value."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes have them: proxies become nodes.

        Raises:
            NotImplementedError: It is nothing that a graph can have.
        """

        def one(x: Any) -> Any:
            if isinstance(x, Proxy):
                return x.node
            if isinstance(x, (*_PLAIN, Node)) or callable(x):
                return x
            if isinstance(x, range):
                return range(*(self.create_arg(v) for v in (x.start, x.stop, x.step)))
            raise NotImplementedError(f"argument of type: {type(x)}")

        return map_aggregate(a, one)

    def to_bool(self, obj: Proxy) -> bool:
        """What a proxy is where a truth value is needed.

        Raises:
            TraceError: Always, unless a subclass knows better.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What a proxy gives where it is walked through: parts, if it is unpacked to a known number of names.

        Raises:
            TraceError: The number is not known.
        """
        count = _unpacked()
        if count is not None:
            parts: Any = obj
            return (parts[k] for k in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the documentation of rgrad.fx"
        )

    def keys(self, obj: Proxy) -> Any:
        """What a proxy gives for ``keys()``."""
        return Attribute(obj, "keys")()


def _unpacked() -> int | None:
    """How many names the line that iterates unpacks to."""
    import dis

    frame = inspect.currentframe()
    for _ in range(3):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        return None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
            return int(instruction.argval)
    return None


class Proxy:
    """Stands for the value of a node: operations on it add nodes.

    Args:
        node: The node.
        tracer: What adds nodes; by default one that adds them to the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if tracer is None:
            tracer = TracerBase()
            tracer.graph = node.graph
        self.tracer = tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys of a dictionary."""
        return self.tracer.keys(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "rgrad.fx.wrap('len') at module scope"
        )

    def _no_number(self) -> NoReturn:
        raise TraceError("the value of a symbolically traced variable is not known, so it cannot become a number")

    __index__ = __int__ = __float__ = __complex__ = _no_number

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise TraceError("a symbolically traced variable cannot be copied; clone() it")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[Any, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Proxy):
                tracers[x.tracer] = None
            return x

        map_aggregate((args, kwargs), note)
        if len(tracers) != 1:
            raise RuntimeError(f"Found {len(tracers)} different tracers while trying to trace operations {orig_method}")
        tracer = next(iter(tracers))
        name = getattr(orig_method, "__name__", "")
        if name == "__get__":
            return tracer.create_proxy("call_function", getattr, (args[0], orig_method.__self__.__name__), {})
        if getattr(orig_method, "__objclass__", None) is Tensor or getattr(Tensor, name, None) is orig_method:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name or None)


class Attribute(Proxy):
    """An attribute of a proxy. Called, it is a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node, which is added when the attribute is used other than by a call."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter: its sizes are known.

    Args:
        tracer: What adds nodes.
        node: The node.
        name: The parameter's name.
        param: The parameter.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """The parameter's size."""
        return self.param.size(*args)

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.dim()


def _operator(name: str, function: Any, reflected: bool) -> Any:
    def method(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    method.__name__ = name
    return method


_TWO = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "pos", "abs", "getitem")

for _name in (*_TWO, *_OTHERS):
    _plain = _name.strip("_")
    setattr(Proxy, f"__{_plain}__", _operator(f"__{_plain}__", getattr(operator, _name), False))
for _name in _TWO:
    _plain = _name.strip("_")
    setattr(Proxy, f"__r{_plain}__", _operator(f"__r{_plain}__", getattr(operator, _name), True))
_more: Any = Proxy
_more.__hash__ = object.__hash__
_more.__setitem__ = _operator("__setitem__", operator.setitem, False)
