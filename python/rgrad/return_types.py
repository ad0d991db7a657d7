"""What functions with several results return: tuples whose fields have names."""

from __future__ import annotations

from collections import namedtuple

__all__ = ["aminmax", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"]


class _Fields:
    """Shows the fields as PyTorch does, one on each line."""

    __slots__ = ()

    def __repr__(self) -> str:
        fields = ",\n".join(f"{name}={getattr(self, name)!r}" for name in self._fields)  # type: ignore[attr-defined]
        return f"rgrad.return_types.{type(self).__name__}(\n{fields})"


class max(_Fields, namedtuple("max", ("values", "indices"))):
    """The largest values along a dimension and where they stand."""

    __slots__ = ()


class min(_Fields, namedtuple("min", ("values", "indices"))):
    """The smallest values along a dimension and where they stand."""

    __slots__ = ()


class median(_Fields, namedtuple("median", ("values", "indices"))):
    """The medians along a dimension and where they stand."""

    __slots__ = ()


class nanmedian(_Fields, namedtuple("nanmedian", ("values", "indices"))):
    """The medians of what is not nan along a dimension and where they stand."""

    __slots__ = ()


class mode(_Fields, namedtuple("mode", ("values", "indices"))):
    """The most frequent values along a dimension and where they stand."""

    __slots__ = ()


class cummax(_Fields, namedtuple("cummax", ("values", "indices"))):
    """The largest values so far along a dimension and where they stand."""

    __slots__ = ()


class cummin(_Fields, namedtuple("cummin", ("values", "indices"))):
    """The smallest values so far along a dimension and where they stand."""

    __slots__ = ()


class kthvalue(_Fields, namedtuple("kthvalue", ("values", "indices"))):
    """The k-th smallest values along a dimension and where they stand."""

    __slots__ = ()


class sort(_Fields, namedtuple("sort", ("values", "indices"))):
    """Sorted values and where they came from."""

    __slots__ = ()


class topk(_Fields, namedtuple("topk", ("values", "indices"))):
    """The k largest or smallest values along a dimension and where they stand."""

    __slots__ = ()


class aminmax(_Fields, namedtuple("aminmax", ("min", "max"))):
    """The smallest and the largest values."""

    __slots__ = ()
