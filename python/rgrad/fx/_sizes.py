"""Sizes that remember where they come from, while a program is recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._record import Value


class Dimension(NamedTuple):
    """The size of a value along a dimension."""

    value: Value
    axis: int


class Computed(NamedTuple):
    """A size made of others: ``name`` is one of :data:`OPERATIONS`, ``terms`` are expressions and numbers."""

    name: str
    terms: tuple[Any, ...]


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
}


def expression(value: Any) -> Any:
    """How a number came about: an expression, or the number itself."""
    return value.expression if isinstance(value, SymbolicInt) else value


class SymbolicInt(int):
    """An int that knows its expression. What is no arithmetic of integers (a float, a string) gives plain numbers."""

    expression: Any

    def __new__(cls, value: int, expression: Any) -> SymbolicInt:
        made = super().__new__(cls, value)
        made.expression = expression
        return made

    def __index__(self) -> int:
        return self

    def __reduce__(self) -> Any:
        return int, (int(self),)

    def __copy__(self) -> SymbolicInt:
        return self

    def __deepcopy__(self, memo: Any) -> SymbolicInt:
        return self

    def __neg__(self) -> int:
        return SymbolicInt(-int(self), Computed("neg", (self.expression,)))

    def __pos__(self) -> int:
        return self


def _binary(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def known(other: Any) -> bool:
        return isinstance(other, int) and not isinstance(other, bool)

    def forward(self: Any, other: Any) -> Any:
        found = getattr(int, f"__{name}__")(self, other)
        if not known(other) or not isinstance(found, int):
            return found
        return SymbolicInt(found, Computed(name, (self.expression, expression(other))))

    def reflected(self: Any, other: Any) -> Any:
        found = getattr(int, f"__r{name}__")(self, other)
        if not known(other) or not isinstance(found, int):
            return found
        return SymbolicInt(found, Computed(name, (expression(other), self.expression)))

    return forward, reflected


for _name in OPERATIONS.keys() - {"neg"}:
    _forward, _reflected = _binary(_name)
    setattr(SymbolicInt, f"__{_name}__", _forward)
    setattr(SymbolicInt, f"__r{_name}__", _reflected)
