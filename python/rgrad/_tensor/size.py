"""``Size``: what a tensor's shape is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple of ints.

    Raises:
        TypeError: An element is no integer.
    """

    __slots__ = ()
    __module__ = "rgrad"

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        checked = []
        for i, s in enumerate(sizes):
            index = getattr(type(s), "__index__", None)
            if index is None or getattr(s, "ndim", 0) != 0:
                raise TypeError(f"rgrad.Size() takes an iterable of 'int' (item {i} is '{type(s).__name__}')")
            checked.append(index(s))
        return super().__new__(cls, checked)

    def numel(self) -> int:
        """The product of the sizes: how many elements such a tensor has."""
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"rgrad.Size([{', '.join(map(repr, self))}])"

    __str__ = __repr__

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: Any, /) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(item, tuple) else item

    def __add__(self, other: Any, /) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any, /) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: SupportsIndex, /) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        return (Size, (tuple(self),))
