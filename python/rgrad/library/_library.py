"""``Library``: operators that are defined by a schema, and their kernels."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..ops import OpOverload, OpOverloadPacket, _define, _namespace, _refused_libraries, _undefine
from ._custom_op import OPDEFS, CustomOpDef, split_name
from ._operator import INSIDE, KEYS, FakeImplCtx, Operator
from ._schema import parse

_RESERVED = ("prim", "prims")
# The namespaces that a Library of kind DEF has.
_owned: set[str] = set()


def fallthrough_kernel() -> Any:
    """A kernel that stands for the next one; it is for `Library.impl`, and cannot be called.

    Raises:
        NotImplementedError: It is called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def operator_of(op: Any, what: str) -> Operator:
    """The operator that a name, an object of :mod:`rgrad.ops` or a :class:`CustomOpDef` stands for.

    Raises:
        RuntimeError: There is none of this name, and no native library was refused that could have defined it.
        NotImplementedError: It is one of PyTorch's own.
        ValueError: It is something else.
    """
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, str):
        namespace, name = split_name(op, what)
        base, _, form = name.partition(".")
        packet = _namespace(namespace).__dict__.get(base) or _packet_if_known(namespace, base)
        if packet is None and _refused_libraries:
            return _awaited(namespace, base, form)
        if packet is None:
            raise RuntimeError(f"operator {op} does not exist")
        op = packet._overloads.get(form or "default")
        if op is None:
            raise RuntimeError(f"operator {namespace}::{name} does not exist")
    if isinstance(op, OpOverloadPacket):
        op = op.default
    if isinstance(op, Operator):
        return op
    if isinstance(op, OpOverload):
        raise NotImplementedError(f"library.{what}: {op} is an operation of rgrad itself, whose rules are not replaced")
    raise ValueError(f"{what}({op}): got unexpected type for op: {type(op)}")


# Registrations for operators that a native library was to define, by namespace, name and overload.
_waiting: dict[tuple[str, str, str], Operator] = {}


def _awaited(namespace: str, name: str, form: str) -> Operator:
    """What takes registrations for an operator whose native library could not be loaded, until somebody defines it."""
    key = namespace, name, form or "default"
    if key not in _waiting:
        schema = parse(f"{namespace}::{name}() -> ()")
        _waiting[key] = Operator(OpOverloadPacket(namespace, name, ()), schema, recorded=False)
    return _waiting[key]


def _packet_if_known(namespace: str, name: str) -> Any:
    space = _namespace(namespace)
    return getattr(space, name) if name in space._known else None


class Library:
    """A set of operators in one namespace, or of kernels for them. When it is collected, what it registered goes.

    Args:
        ns: The namespace.
        kind: ``"DEF"`` for a namespace of its own, ``"FRAGMENT"`` for more operators of one, ``"IMPL"`` for kernels.
        dispatch_key: The key of kernels, if :meth:`impl` is given none.

    Raises:
        ValueError: There is no such kind, or the namespace is PyTorch's.
        RuntimeError: Another library has defined the namespace.

    Example:
        >>> lib = rgrad.library.Library("docs_library", "DEF")
        >>> lib.define("double(Tensor x) -> Tensor")
        'double'
        >>> lib.impl("double", lambda x: x * 2, "CPU")
        >>> rgrad.ops.docs_library.double(rgrad.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and (ns in _owned or ns == "aten"):
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                "definitions in a single TORCH_LIBRARY block. Use the kind FRAGMENT for more of them."
            )
        if dispatch_key not in KEYS:
            raise ValueError(
                f"Library: there is no dispatch key {dispatch_key!r} here; known are {', '.join(filter(None, KEYS))}"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[OpOverload] = []
        self._kernels: list[tuple[Operator, str, Any]] = []
        if kind == "DEF":
            _owned.add(ns)
        self._end = weakref.finalize(self, _forget, ns, kind, self._defined, self._kernels)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator.

        Args:
            schema: ``"name(Tensor x, int y=1) -> Tensor"``.
            alias_analysis: Has no effect.
            tags: Has no effect.

        Returns:
            Its name.

        Raises:
            RuntimeError: The schema is none, or there is such an operator.
            ValueError: The library is of kind ``"IMPL"``.
        """
        if self.kind == "IMPL":
            raise ValueError("Library.define: a library of kind IMPL defines no operators; use DEF or FRAGMENT")
        read = parse(schema)
        name = read.name.rpartition("::")[2]
        read.name = f"{self.ns}::{name}"
        packet = _packet_if_known(self.ns, name)
        if packet is not None and (read.overload_name or "default") in packet._overloads:
            raise RuntimeError(
                f"Tried to register an operator ({read}) with the same name and overload name multiple times. Each "
                "overload's schema should only be registered with a single call to def()."
            )
        if self.ns == "aten":
            raise NotImplementedError(
                "Library.define: operators of the namespace aten are rgrad's own; use another one"
            )
        made = _define(self.ns, name, lambda packet: Operator(packet, read, recorded=False))
        assert isinstance(made, Operator)
        made.tags = list(tags) if isinstance(tags, (tuple, list)) else [tags]
        awaited = _waiting.pop((self.ns, name, read.overload_name or "default"), None)
        if awaited is not None:
            made.take_over(awaited)
        self._defined.append(made)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Give an operator a kernel.

        Args:
            op_name: Its name, or the operator itself.
            fn: The function.
            dispatch_key: ``"CPU"``, ``"PrivateUse1"`` (wgpu), ``"Meta"``, ``"CompositeExplicitAutograd"`` (any device),
                ``"CompositeImplicitAutograd"`` (made of other operations), ``"Autograd"``.
            with_keyset: Refused.
            allow_override: Has no effect: a later kernel takes the place of an earlier one.

        Raises:
            TypeError: ``fn`` is no function.
            ValueError: There is no such key.
            RuntimeError: There is no such operator.
            NotImplementedError: It is one of rgrad's own, or ``with_keyset``.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError(
                "Library.impl: with_keyset is not supported: there are no sets of dispatch keys here"
            )
        key = dispatch_key or self.dispatch_key
        if key not in KEYS:
            raise ValueError(
                f"Library.impl: there is no dispatch key {key!r} here; known are {', '.join(filter(None, KEYS))}"
            )
        if isinstance(op_name, str) and "::" not in op_name:
            op_name = f"{self.ns}::{op_name}"
        if fn is fallthrough_kernel:
            return
        operator, kind = operator_of(op_name, "Library.impl"), KEYS[key]
        set_kernel(operator, kind, fn)
        self._kernels.append((operator, kind, fn))

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **kwargs: Any) -> None:
        set_kernel(operator_of(f"{self.ns}::{op_name}", "Library._register_fake"), "fake", fn)

    def _destroy(self) -> None:
        self._end()


def _forget(ns: str, kind: str, defined: list[OpOverload], kernels: list[tuple[Operator, str, Any]]) -> None:
    for operator, key, fn in kernels:
        if key == "autograd":
            if operator._autograd is fn:
                operator._autograd = None
        elif operator._kernels.get(key) is fn:
            del operator._kernels[key]
    for form in defined:
        _undefine(form)
    if kind == "DEF":
        _owned.discard(ns)


def set_kernel(operator: Operator, kind: str, fn: Callable[..., Any]) -> None:
    """Enter a kernel, a fake implementation or an Autograd kernel."""
    if kind == "autograd":
        operator._autograd = fn
    elif kind == "fake":
        operator._fake = fn
    else:
        operator._kernels[kind] = fn


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


# Of functions that are given no library.
_fragments: dict[str, Library] = {}


def _fragment(namespace: str, lib: Library | None) -> Library:
    if lib is not None:
        return lib
    if namespace not in _fragments:
        _fragments[namespace] = Library(namespace, "FRAGMENT")
    return _fragments[namespace]


def define(qualname: Any, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator, as :meth:`Library.define` does.

    Args:
        qualname: ``"namespace::name"``. A :class:`Library` in its place makes a decorator that defines the operator,
            and takes the function for its kernel.
        schema: ``"(Tensor x) -> Tensor"``.
        alias_analysis: Has no effect.
        lib: The library that it belongs to.
        tags: Has no effect.

    Raises:
        ValueError: The name has no namespace, or the schema begins with a name.
        RuntimeError: The schema is none, or there is such an operator.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis)

        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, function)
            return function

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = split_name(qualname, "define")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f"{schema!r}"
        )
    _fragment(namespace, lib).define(name + schema, tags=tags)
    return None


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Callable[..., Any] | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an operator a kernel.

    Args:
        qualname: ``"namespace::name"``. With a :class:`Library` in its place, ``types`` is a name and ``func`` a key,
            and the call is a decorator.
        types: ``"default"`` for all devices, or kinds of devices.
        func: The function; without it the call is a decorator.
        lib: The library that the kernel belongs to.

    Raises:
        RuntimeError: There is no such operator.
        ValueError: The name has no namespace.
    """
    if isinstance(qualname, Library):
        key = func if isinstance(func, str) else ""

        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(types, function, key)
            return function

        return wrap
    operator = operator_of(qualname, "impl")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in (types,) if isinstance(types, str) else types:
            key = {"CompositeExplicitAutograd": "default"}.get(kind, KEYS.get(kind, kind))
            set_kernel(operator, key, function)
            if lib is not None:
                lib._kernels.append((operator, key, function))
        return function

    return register if func is None or isinstance(func, str) else register(func)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake implementation that runs; None outside of one."""
    return INSIDE.fake[-1] if INSIDE.fake else None


__all__ = ["OPDEFS", "Library", "define", "fallthrough_kernel", "get_ctx", "impl", "operator_of", "set_kernel"]
