"""What a pickle has made: whether somebody else has it, too, and what it is, without running any of its code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .default_globals import FRESH


class _Plain:
    pass


def _references(made: Any) -> int:
    return sys.getrefcount(made)


def called(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, int]:
    """What a call gives, and how many references there are to it."""
    made = call(*args)
    return made, _references(made)


def attributes_of(target: Any) -> tuple[Any, int]:
    """The ``__dict__`` of an object, and how many references there are to it."""
    found = getattr(target, "__dict__", None)
    return found, _references(found)


_example = _Plain()
# What these count for an object that nobody else has. The numbers differ from Python to Python.
ALONE = called(_Plain, ())[1]
ALONE_DICT = attributes_of(_example)[1]


def is_class(value: Any) -> bool:
    """Whether it is one, and does not only say so."""
    return issubclass(type(value), type)


def is_dict(value: Any) -> bool:
    return issubclass(type(value), dict)


def makes_new_ones(by: Any) -> bool:
    """Whether each call of a class gives a new object; those of singletons and enumerations need not."""
    return is_class(by) and type(by).__call__ is type.__call__ and any(by.__new__ is new for new in FRESH)


def said(value: Any) -> str:
    """A short name of an object, which runs none of its code."""
    if is_class(value):
        return f"the class {type.__dict__['__name__'].__get__(value)}"
    name = type.__dict__["__name__"].__get__(type(value))
    return f"a function or object of type {name}" if callable(value) else f"an object of type {name}"
