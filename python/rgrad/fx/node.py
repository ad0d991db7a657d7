"""Nodes of a graph."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core import Tensor
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Any

OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effects: set[Any] = {operator.setitem, builtins.print}


def has_side_effect(fn: Any) -> Any:
    """Keep calls of a function when their results are not used.

    Args:
        fn: The function.

    Returns:
        The function.
    """
    _side_effects.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Arguments with ``fn`` applied to all leaves: lists, tuples, dictionaries and slices are taken apart."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list(map_aggregate(x, fn) for x in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(x, fn)) for k, x in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Arguments with ``fn`` applied to all nodes.

    Args:
        a: The arguments.
        fn: The function.

    Raises:
        AssertionError: ``fn`` cannot be called.
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One call, input, attribute or output of a graph.

    Args:
        graph: The graph.
        name: A name that no other node has.
        op: ``"placeholder"``, ``"get_attr"``, ``"call_function"``, ``"call_module"``, ``"call_method"`` or
            ``"output"``.
        target: What is called: a function, or a name.
        args: Its arguments, with nodes for the values of others.
        kwargs: Its keyword arguments.
        return_type: A type to remember.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"expected one of {', '.join(OPS)} for the op of a node, but got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable is "
                "expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(n: Node) -> Node:
            self._input_nodes.setdefault(n)
            n.users.setdefault(self)
            return n

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._set(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._set(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """What ``meta`` has under this name."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put an argument before the one at ``idx``.

        Raises:
            AssertionError: There are fewer arguments.
        """
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node in place of one among the arguments."""

        def one(n: Node) -> Node:
            return new_input if n is old_input else n

        self._set(map_arg(self.args, one), map_arg(self.kwargs, one))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Use another node wherever this one is used.

        Args:
            replace_with: The other node.
            delete_user_cb: Whether a user shall be changed.
            propagate_meta: Give it this node's ``meta``; its own must be empty.

        Returns:
            The nodes that were changed.

        Raises:
            AssertionError: ``propagate_meta``, and it has some.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta = dict(self.meta)
        changed = []
        for user in list(self.users):
            if user is not replace_with and delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Put a node of the same graph before this one.

        Raises:
            AssertionError: It is of another graph.
        """
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Put a node of the same graph after this one."""
        self._next.prepend(x)

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay when its result is not used.

        Args:
            impure_random: Has no effect.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or _writes(getattr(self.target, "__name__", ""))
        if self.op == "call_method":
            return _writes(self.target)
        if self.op == "call_module":
            root = self.graph.owning_module
            if root is None:
                return True
            return bool(getattr(root.get_submodule(self.target), "_is_impure", False))
        return False

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: Any = None) -> str | None:
        """A line that describes it.

        Args:
            placeholder_names: A list that takes the names of placeholders.
            maybe_return_typename: A list that takes the type of the output.
        """
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"%{self.name}")
                return None
            uses = f"num_users={len(self.users)}"
            return f"%{self.name} : [{uses}] = {self.op}[target={self.target}]" + (
                f"(default={self.args[0]})" if self.args else ""
            )
        if self.op == "output":
            return f"return {self.args[0]}"
        name = self.target if isinstance(self.target, str) else _pretty(self.target)
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={name}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        order = {n: k for k, n in enumerate(self.graph.nodes)}
        return order[self] < order[other]


def _writes(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _shown(a: Any) -> str:
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return f"({', '.join(map(_shown, a))}{',' if len(a) == 1 else ''})"
    if isinstance(a, list):
        return f"[{', '.join(map(_shown, a))}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_shown(x)}" for k, x in a.items()) + "}"
    return repr(a)


def _pretty(func: Any) -> str:
    name = getattr(func, "__name__", None) or repr(func)
    module = getattr(func, "__module__", None)
    if isinstance(func, types.BuiltinFunctionType) and getattr(builtins, name, None) is func:
        return str(name)
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)) or isinstance(
        getattr(func, "__objclass__", None), type
    ):
        return f"rgrad.{Tensor.__name__}.{name}"
    return f"{module}.{name}" if module else str(name)
