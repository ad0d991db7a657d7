"""The dtypes that rgrad has, by name. A test that takes them from here covers a new one without a change."""

from __future__ import annotations

import rgrad

ALL = tuple(n for n, d in vars(rgrad).items() if isinstance(d, rgrad.dtype) and str(d) == f"rgrad.{n}")
FLOATS = tuple(n for n in ALL if getattr(rgrad, n).is_floating_point)
INTEGERS = tuple(n for n in ALL if n not in FLOATS and n != "bool")
# On every adapter; float64 needs one that has it.
ON_WGPU = tuple(n for n in ALL if n != "float64")


def of(names: tuple[str, ...]) -> list[rgrad.dtype]:
    """The dtypes with these names."""
    return [getattr(rgrad, n) for n in names]
