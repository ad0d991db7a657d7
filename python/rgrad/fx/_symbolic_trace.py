"""Tracing: a module is run with proxies in place of its inputs."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from .._core import Tensor
from ..nn import Module, Parameter
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

# Functions that are recorded as one call: the globals in which they stand, and their names there.
_wrapped: list[tuple[dict[str, Any], str]] = []


class _State(local):
    depth = 0


_state = _State()


def is_fx_tracing() -> bool:
    """Whether this thread traces a module."""
    return _state.depth > 0


class _Placeholder:
    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()


class ProxyableClassMeta(type):
    """A metaclass: an object made of proxies is a call of its class."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _proxy_in((args, kwargs))
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _proxy_in(tree: Any) -> Proxy | None:
    if isinstance(tree, Proxy):
        return tree
    if isinstance(tree, dict):
        tree = tree.values()
    elif isinstance(tree, slice):
        tree = (tree.start, tree.stop, tree.step)
    elif not isinstance(tree, (tuple, list)):
        return None
    return next((found for found in map(_proxy_in, tree) if found is not None), None)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is recorded if a proxy is among its arguments."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _proxy_in((args, kwargs))
        if found is None:
            return function(*args, **kwargs)
        return found.tracer.create_proxy("call_function", function, args, kwargs)

    return wrapped


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of the calling module as they are, instead of tracing what it does.

    Args:
        fn_or_name: The function, or its name; so ``wrap("len")`` works for built-in ones.

    Returns:
        What was given.

    Raises:
        RuntimeError: It is neither, or this is not called at the top of a module.
        NotImplementedError: The same, inside of a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((caller.f_globals, name))
    return fn_or_name


class Tracer(TracerBase):
    """Traces modules. Subclasses say what is recorded as one call.

    Args:
        autowrap_modules: Modules of Python whose functions are recorded as they are, if they are given proxies.
        autowrap_functions: Further functions.
        param_shapes_constant: Parameters have their sizes while they are traced.
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_modules = autowrap_modules
        self._autowrap_functions = autowrap_functions
        self.param_shapes_constant = param_shapes_constant
        self._paths: dict[int, str] = {}
        self._parameters: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self._kept: list[Any] = []

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node; else what it calls is recorded.

        Args:
            m: The module.
            module_qualified_name: Its name.

        Returns:
            True for the modules of :mod:`rgrad.nn` but Sequential.
        """
        own = type(m).__module__.startswith(("rgrad.nn", "torch.nn"))
        return own and type(m).__name__ != "Sequential"

    def path_of_module(self, mod: Module) -> str:
        """The name of a module.

        Raises:
            NameError: It is no part of the traced one.
        """
        path = self._paths.get(id(mod))
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of a module gives.

        Args:
            m: The module.
            forward: Calls it.
            args: The arguments.
            kwargs: The keyword arguments.
        """
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module gives: a proxy for a parameter, if its sizes are wanted.

        Args:
            attr: The attribute.
            attr_val: Its value.
            parameter_proxy_cache: Proxies that were made.
        """
        if not self.param_shapes_constant or not isinstance(attr_val, Parameter):
            return attr_val
        name = self._parameters.get(id(attr_val))
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            parameter_proxy_cache[name] = self.create_proxy(
                "get_attr", name, (), {}, proxy_factory_fn=lambda node: ParameterProxy(self, node, name, attr_val)
            )
        return parameter_proxy_cache[name]

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Parameter) or (isinstance(a, Tensor) and id(a) in self._parameters):
            name = self._parameters.get(id(a))
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, tuple) and not hasattr(a, "_fields"):
            return tuple(map(self.create_arg, a))
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {k: self.create_arg(x) for k, x in a.items()}
        if isinstance(type(a), ProxyableClassMeta):
            raise NotImplementedError(f"argument of type: {type(a)}, which was made outside of the traced call")
        return super().create_arg(a)

    def _constant(self, a: Tensor) -> str:
        if id(a) not in self._constants:
            k = 0
            while hasattr(self.root, f"_tensor_constant{k}"):
                k += 1
            name = f"_tensor_constant{k}"
            # As an attribute, no buffer: it is none of the module's state.
            object.__setattr__(self.root, name, a)
            self._constants[id(a)] = name
            self._kept.append(a)
        return self._constants[id(a)]

    def _inputs(
        self, function: Callable[..., Any], is_module: bool, concrete: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        named: dict[str, Any] = {}
        parameters = list(inspect.signature(function).parameters.values())
        for p in parameters:
            star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            if p.name in concrete and concrete[p.name] is not PH:
                value: Any = concrete[p.name]
            else:
                default = () if star or p.default is p.empty else (self.create_arg(p.default),)
                value = self.create_proxy("placeholder", star + p.name, default, {}, name=p.name)
            if star == "*":
                args += list(value) if not isinstance(value, Proxy) else [_Starred(value)]
            elif star == "**":
                named.update(value if not isinstance(value, Proxy) else {"**": value})
            elif p.kind is p.KEYWORD_ONLY:
                named[p.name] = value
            else:
                args.append(value)
        return args, named

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Args:
            root: The module or function.
            concrete_args: Values of arguments that are no inputs of the graph.

        Raises:
            TraceError: It depends on values of its inputs.
            NotImplementedError: It takes ``*args`` or ``**kwargs``, or an argument is nothing that a graph can have.
        """
        if isinstance(root, Module):
            self.root = root
            function: Callable[..., Any] = root.forward
            self._paths = {id(m): name for name, m in root.named_modules()}
            # A later name of a shared parameter is none that nodes use.
            named = [*root.named_parameters(), *root.named_buffers()]
            self._parameters = {id(p): name for name, p in reversed(named)}
        else:
            self.root, function = Module(), root
        self.graph = Graph(owning_module=None, tracer_cls=type(self))
        args, kwargs = self._inputs(function, isinstance(root, Module), concrete_args or {})
        if any(isinstance(a, _Starred) for a in args) or "**" in kwargs:
            raise NotImplementedError(
                "fx: functions with *args or **kwargs are traced with concrete_args={'args': (...)} for them"
            )
        _state.depth += 1
        try:
            with _patched(self, {}):
                result = function(*args, **kwargs)
            self.create_node("output", "output", (self.create_arg(result),), {})
        finally:
            _state.depth -= 1
        return self.graph


class _Starred:
    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy


@contextmanager
def _patched(tracer: Tracer, cache: dict[str, Any]) -> Iterator[None]:
    """A block in which calls of modules go to a tracer, and wrapped functions are recorded."""
    call, get = Module.__call__, Module.__getattr__
    changed: list[tuple[dict[str, Any], str, Any]] = []
    missing = object()

    @functools.wraps(call)
    def call_module(mod: Module, *args: Any, **kwargs: Any) -> Any:
        if id(mod) not in tracer._paths:
            return call(mod, *args, **kwargs)
        return tracer.call_module(mod, lambda *a, **k: call(mod, *a, **k), args, kwargs)

    @functools.wraps(get)
    def get_attribute(mod: Module, attr: str) -> Any:
        return tracer.getattr(attr, get(mod, attr), cache)

    def replace(scope: dict[str, Any], name: str, function: Any) -> None:
        changed.append((scope, name, scope.get(name, missing)))
        scope[name] = _recorded(function)

    Module.__call__ = call_module  # type: ignore[method-assign, assignment]
    Module.__getattr__ = get_attribute  # type: ignore[method-assign]
    try:
        for scope, name in _wrapped:
            found = scope.get(name, getattr(builtins, name, None))
            if found is not None:
                replace(scope, name, found)
        for module in tracer._autowrap_modules:
            for name, value in list(vars(module).items()):
                if not name.startswith("_") and callable(value):
                    replace(vars(module), name, value)
        for function in tracer._autowrap_functions:
            scope = getattr(function, "__globals__", {})
            if scope.get(function.__name__) is function:
                replace(scope, function.__name__, function)
        yield
    finally:
        Module.__call__ = call  # type: ignore[method-assign]
        Module.__getattr__ = get  # type: ignore[method-assign]
        for scope, name, before in reversed(changed):
            if before is missing:
                del scope[name]
            else:
                scope[name] = before


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that runs the graph of a module or function.

    Args:
        root: The module or function. What it does may not depend on the values of its inputs.
        concrete_args: Values of arguments that are no inputs of the graph.

    Returns:
        A :class:`GraphModule` with the parameters of ``root``.

    Raises:
        TraceError: It depends on values of its inputs.

    Example:
        >>> traced = rgrad.fx.symbolic_trace(lambda x: rgrad.relu(x) + 1)
        >>> print(traced.code.strip())
        def forward(self, x):
            relu = rgrad.relu(x);  x = None
            add = relu + 1;  relu = None
            return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "function")
    return GraphModule(tracer.root, graph, name)
