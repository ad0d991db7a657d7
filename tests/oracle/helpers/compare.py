"""Runs one call on rgrad and on torch and compares all that can be seen of the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import rgrad

KINDS = (NotImplementedError, IndexError, MemoryError, OverflowError, TypeError, ValueError, RuntimeError)
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}


@dataclass
class Outcome:
    """What a call did: its value, or the builtin type of its error; and whether it warned the user."""

    value: Any = None
    error: type[Exception] | None = None
    message: str = ""
    warned: bool = False


def attempt(f: Callable[[], Any]) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value, error, message = f(), None, ""
        except Exception as e:
            value, message = None, str(e)
            error = next((k for k in KINDS if isinstance(e, k)), type(e))
            error = RuntimeError if error is MemoryError else error  # torch has no class of its own for it on CPU
    return Outcome(value, error, message, "UserWarning" in {w.category.__name__ for w in caught})


def dtype_name(t: Any) -> str:
    return str(t.dtype).rsplit(".", 1)[-1]


def is_tensor(x: Any) -> bool:
    return isinstance(x, (torch.Tensor, rgrad.Tensor))


def values(t: Any) -> np.ndarray:
    return np.array(t.detach().clone().numpy())


def same(got: Any, want: Any, factor: float = 1.0, strides: bool = True, history: bool = True) -> None:
    """got is rgrad's, want torch's: structure, shape, dtype, strides, flags, node, values."""
    if isinstance(want, (tuple, list)) and not isinstance(want, torch.Size):
        assert isinstance(got, (tuple, list)), f"got {type(got)}, expected a tuple"
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, factor, strides, history)
        return
    if not is_tensor(want):
        if isinstance(want, torch.dtype):
            assert str(got).rsplit(".", 1)[-1] == str(want).rsplit(".", 1)[-1]
        elif isinstance(want, float):
            np.testing.assert_allclose(got, want, rtol=1e-6, equal_nan=True)
        else:
            assert got == want or (got is None and want is None)
        return
    assert is_tensor(got), f"got {type(got)}, expected a tensor"
    assert tuple(got.shape) == tuple(want.shape)
    name = dtype_name(want)
    assert dtype_name(got) == name
    if strides:
        assert visible_strides(got) == visible_strides(want), "strides differ"
        assert got.is_contiguous() == want.is_contiguous()
    if history:
        assert got.requires_grad == want.requires_grad
        assert got.is_leaf == want.is_leaf
    a, b = values(got), values(want)
    if name in TOLERANCE:
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        tol = TOLERANCE[name] * factor
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * scale, equal_nan=True)
    else:
        np.testing.assert_array_equal(a, b)


def visible_strides(t: Any) -> tuple[int, ...]:
    """Strides that decide where an element lies: none for empty tensors, none for dimensions of size 1."""
    if 0 in tuple(t.shape):
        return ()
    return tuple(s for n, s in zip(t.shape, t.stride(), strict=True) if n != 1)


def both(f: Callable[[Any], Any], more: bool = False, **kw: Any) -> tuple[Outcome, Outcome]:
    """f(library) on both; the outcomes must agree in kind, warnings and value.

    Our error must be caught by who catches torch's. With `more`, rgrad may have what torch has not implemented.
    """
    mine, theirs = attempt(lambda: f(rgrad)), attempt(lambda: f(torch))
    if more and mine.error is None and theirs.error is NotImplementedError:
        return mine, theirs
    agree = issubclass(mine.error or object, theirs.error or object) and (mine.error is None) == (theirs.error is None)
    assert agree, f"rgrad: {mine.error} {mine.message!r}; torch: {theirs.error} {theirs.message!r}"
    if theirs.error is None:
        same(mine.value, theirs.value, **kw)
    assert mine.warned == theirs.warned, f"rgrad warned {mine.warned}, torch {theirs.warned}"
    return mine, theirs


def torch_like(T: Any, array: np.ndarray) -> Any:
    return T.tensor(array)


def zeros_for_none(T: Any, grads: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    return [T.zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True)]
