"""Whether values are of the types that annotations say, and arguments made from annotations."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import itertools
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union

import numpy as np

import rgrad

Tensor = rgrad.Tensor


def holds(value: Any, hint: Any) -> bool:
    """Whether a value is of the type; an int is no float, and a bool is no int."""
    if hint is Any or hint is object:
        return True
    if hint is None or hint is type(None):
        return value is None
    if isinstance(hint, TypeVar):
        kinds = hint.__constraints__ or ((hint.__bound__,) if hint.__bound__ is not None else (Any,))
        return any(holds(value, kind) for kind in kinds)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        assert isinstance(hint, type), hint
        if hasattr(hint, "_fields"):
            fields = typing.get_type_hints(hint)
            return isinstance(value, hint) and all(holds(getattr(value, name), kind) for name, kind in fields.items())
        exact = hint in (bool, int, float, complex, str) and not isinstance(value, enum.Enum)
        return type(value) is hint if exact else isinstance(value, hint)
    if origin in (Union, types.UnionType):
        return any(holds(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if origin is collections.abc.Callable:
        return callable(value)
    if not isinstance(value, origin):
        return False
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(holds(v, parts[0]) for v in value)
        return len(value) == len(parts) and all(holds(v, part) for v, part in zip(value, parts, strict=True))
    if issubclass(origin, dict):
        return all(holds(k, parts[0]) and holds(v, parts[1]) for k, v in value.items())
    if issubclass(origin, collections.abc.Collection):
        return all(holds(v, parts[0]) for v in value)
    return True


@dataclass(frozen=True)
class Form:
    """One form of a function or method: its parameters with their types, and the type of its result."""

    parameters: tuple[inspect.Parameter, ...]
    result: Any


def forms_of(function: Callable[..., Any]) -> list[Form]:
    """The forms that the annotations of a function of Python give it."""
    function = inspect.unwrap(function)
    found = []
    for form in typing.get_overloads(function) or [function]:
        # What modules import for type checkers alone are classes of networks.
        hints = typing.get_type_hints(form, localns=vars(rgrad.nn))
        parameters = [p.replace(annotation=hints[p.name]) for p in inspect.signature(form).parameters.values()]
        found.append(Form(tuple(parameters), hints["return"]))
    return found


@dataclass(frozen=True)
class World:
    """What arguments are: the first tensor, the others, dimensions and other ints, sizes."""

    first: Callable[[], Tensor]
    other: Callable[[], Tensor]
    number: int
    sizes: tuple[int, ...]


def _grid(*shape: int) -> Tensor:
    """Distinct numbers between 0 and 1."""
    count = int(np.prod(shape))
    return (rgrad.arange(1.0, count + 1.0) * 0.618 % 1.0 * 0.9 + 0.05).reshape(shape)


def _ints(*shape: int) -> Tensor:
    return rgrad.arange(int(np.prod(shape))).reshape(shape) % 2


def _symmetric() -> Tensor:
    return _grid(3, 3) * 0.1 + _grid(3, 3).mT * 0.1 + 2 * rgrad.eye(3)


_TENSORS: list[Callable[[], Tensor]] = [
    lambda: _grid(3, 3),
    lambda: _grid(3),
    lambda: _grid(2, 3, 3),
    lambda: _grid(1, 2, 4, 4),
    lambda: _grid(1, 2, 4, 4, 4),
    lambda: _grid(1),
    lambda: rgrad.tensor(0.5),
    lambda: _ints(3, 3),
    lambda: _ints(3),
    lambda: _ints(3, 3) > 0,
    _symmetric,
]


def _worlds() -> Iterator[World]:
    """Those that most functions take come first."""
    for number, sizes in ((1, (3, 3)), (0, (3,)), (2, (2, 2)), (3, (1, 9)), (4, (1,))):
        for first in _TENSORS:
            yield World(first, first, number, sizes)
    for (first, other), number in itertools.product(itertools.permutations(_TENSORS, 2), (0, 1, 2)):
        yield World(first, other, number, (3, 3))


WORLDS = list(_worlds())


def argument(hint: Any, name: str, world: World, is_first: bool) -> Any:
    """A value of the type; of several types the first one."""
    if isinstance(hint, TypeVar):
        hint = (hint.__constraints__ or (hint.__bound__ or Tensor,))[0]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Tensor or hint is object:
        return world.first() if is_first else world.other()
    if hint is bool:
        return False
    if hint is int:
        return world.number
    if hint is float or hint is complex:
        return 0.5
    if hint is None or hint is type(None):
        return None
    if hint is str:
        return {"reduce": "sum", "device_type": "cpu", "norm_type": "fro"}.get(name, "mean")
    if hint is rgrad.dtype:
        return rgrad.float32
    if hint is rgrad.device:
        return rgrad.device("cpu")
    if hint is rgrad.memory_format:
        return rgrad.contiguous_format
    if hint is rgrad.Generator:
        return rgrad.Generator()
    if hint is typing.SupportsIndex:
        return world.number
    if origin is type:
        return Tensor
    if origin in (Union, types.UnionType):
        # Of a union that has a tensor this one, else the first.
        chosen = Tensor if Tensor in parts else parts[0]
        return argument(chosen, name, world, is_first)
    if origin is Literal:
        return parts[0]
    if origin is collections.abc.Sequence:
        if parts[0] is int:
            return world.sizes
        return [argument(parts[0], name, world, True), argument(parts[0], name, world, False)]
    if origin is tuple:
        return tuple(argument(part, name, world, False) for part in parts if part is not Ellipsis)
    if origin is collections.abc.Callable:
        return lambda *_: 1.0
    if hint is Any:
        return _ANYTHING.get(name, [[1.0, 2.0], [3.0, 4.0]])
    if origin is np.ndarray:
        return np.ones((2, 2))
    raise NotImplementedError(f"no example of {hint}")


# Of any type, or without one.
_ANYTHING: dict[str, Any] = {"key": 0, "memo": {}, "func": None, "types": (), "dtype": None, "layout": None}


def arguments(form: Form, world: World) -> tuple[list[Any], dict[str, Any]]:
    """What must be given, and what decides the form: parameters that take few values, and not their default."""
    args, kwargs = [], {}
    seen_tensor = False
    for p in form.parameters:
        hint = p.annotation
        decides = typing.get_origin(hint) is Literal and typing.get_args(hint) != (p.default,)
        if p.default is not p.empty and not decides:
            continue
        if p.kind is p.VAR_KEYWORD:
            continue
        value = argument(hint, p.name, world, not seen_tensor)
        seen_tensor = seen_tensor or isinstance(value, Tensor)
        if p.kind is p.KEYWORD_ONLY or (kwargs and p.kind is p.POSITIONAL_OR_KEYWORD):
            kwargs[p.name] = value
        elif p.kind is p.VAR_POSITIONAL:
            args += [value, argument(hint, p.name, world, not seen_tensor)] if isinstance(value, Tensor) else [value]
        elif args is not None and len(args) < _place(form, p):
            kwargs[p.name] = value
        else:
            args.append(value)
    return args, kwargs


def _place(form: Form, parameter: inspect.Parameter) -> int:
    return [p.name for p in form.parameters].index(parameter.name)


class Unseen(RuntimeError):
    """No arguments were found with which a form gives a result."""


def result(function: Callable[..., Any], form: Form) -> tuple[Any, Any]:
    """The first result that a form gives for arguments made from its types, and its first argument."""
    last: BaseException | None = None
    for world in WORLDS:
        args, kwargs = arguments(form, world)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(*args, **kwargs), args[0] if args else None
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError, KeyError) as error:
            last = error
    raise Unseen(str(last))
