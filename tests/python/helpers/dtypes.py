"""The dtypes that rgrad has, by name. A test that takes them from here covers a new one without a change."""

from __future__ import annotations

from typing import Any

import numpy as np

import rgrad

ALL = tuple(n for n, d in vars(rgrad).items() if isinstance(d, rgrad.dtype) and str(d) == f"rgrad.{n}")
FLOATS = tuple(n for n in ALL if getattr(rgrad, n).is_floating_point)
COMPLEX = tuple(n for n in ALL if getattr(rgrad, n).is_complex)
# Stored, converted and compared, and little else.
UNSIGNED = tuple(n for n in ALL if n in ("uint16", "uint32", "uint64"))
INTEGERS = tuple(n for n in ALL if n not in (*FLOATS, *COMPLEX, *UNSIGNED, "bool"))
# On every adapter; float64 needs one that has it.
ON_WGPU = tuple(n for n in ALL if n not in ("float64", *COMPLEX, *UNSIGNED))


def array(t: Any) -> Any:
    """The values of a tensor on any device in NumPy; floats of 16 bits as float32, for not every NumPy has bfloat16."""
    t = t.detach().cpu()
    return (t.float() if t.dtype in (rgrad.float16, rgrad.bfloat16) else t).numpy()


def tensor(values: Any, dtype: str) -> Any:
    """A tensor of NumPy's values in the dtype with this name."""
    return rgrad.tensor(np.asarray(values)).to(getattr(rgrad, dtype))


def of(names: tuple[str, ...]) -> list[rgrad.dtype]:
    """The dtypes with these names."""
    return [getattr(rgrad, n) for n in names]
