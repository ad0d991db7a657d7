"""Dimensions whose sizes inputs decide."""

from __future__ import annotations

from typing import Any

__all__ = ["Dim", "dims"]


class _Hint:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class Dim:
    """A name for sizes that may differ from input to input. What has the same name has the same size.

    Args:
        name: A name as Python has them.
        min: The least size.
        max: The largest size.

    Raises:
        AssertionError: It is no name, or ``max`` is below ``min``.

    Example:
        >>> rgrad.export.Dim("batch", min=1, max=64)
        Dim('batch', min=1, max=64)
    """

    AUTO = _Hint("AUTO")
    DYNAMIC = _Hint("DYNAMIC")
    STATIC = _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low = 0 if min is None else min
        if not (isinstance(name, str) and name.isidentifier()):
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        if max is not None and max <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__ = name
        self.min, self.max = low, max
        self.factor, self.offset, self.root = 1, 0, self

    def _derived(self, factor: int, offset: int) -> Dim:
        made = object.__new__(Dim)
        made.factor, made.offset, made.root = self.factor * factor, self.offset * factor + offset, self.root
        made.min = self.min * factor + offset
        made.max = None if self.max is None else self.max * factor + offset
        of = self.root.__name__
        scaled = of if made.factor == 1 else f"{made.factor}*{of}"
        made.__name__ = scaled if made.offset == 0 else f"{scaled} {'+' if made.offset > 0 else '-'} {abs(made.offset)}"
        return made

    def __add__(self, other: int) -> Dim:
        return self._derived(1, self._number(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self._derived(1, -self._number(other))

    def __mul__(self, other: int) -> Dim:
        if self._number(other) <= 0:
            raise NotImplementedError(f"Attempted to multiply {self.__name__} by {other}, which is not positive")
        return self._derived(other, 0)

    __rmul__ = __mul__

    def _number(self, other: Any) -> int:
        if not isinstance(other, int):
            raise NotImplementedError(
                f"Attempted to combine {self.__name__} with {other}, where an integer was expected"
            )
        return other

    def __repr__(self) -> str:
        if self.root is not self:
            return f"Dim({self.__name__})"
        return f"Dim({self.__name__!r}, min={self.min}" + (")" if self.max is None else f", max={self.max})")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several :class:`Dim` with the same bounds.

    Args:
        names: Their names.
        min: The least size.
        max: The largest size.
    """
    return tuple(Dim(name, min=min, max=max) for name in names)
