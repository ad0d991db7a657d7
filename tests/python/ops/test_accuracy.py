"""Functions of one float64 are as accurate as they say, over all exponents: beside the extended precision.

The extended type of x86 has eleven bits more than float64, and its functions are within a few of their own units.
Machines without it have the true values of `tests/data/f64_functions.txt`. `tests/rust/accuracy.rs` looks at all inputs
of float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from places import ROOT
from rgrad.nn import functional as F

DOCS = ROOT / "docs"
needs_extended = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="this machine's long double is no wider than float64"
)

Wide = np.ndarray[Any, np.dtype[np.longdouble]]
ONE = np.longdouble(1)


def sigmoid(x: Wide) -> Wide:
    e = np.exp(-np.abs(x))
    return np.where(x > 0, ONE / (ONE + e), e / (ONE + e))


def softplus(x: Wide) -> Wide:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu_tanh(x: Wide) -> Wide:
    factor = 2 * np.sqrt(2 / np.arctan(ONE) / 4)
    return x * sigmoid(factor * (x + np.longdouble(np.float64(0.044715)) * x**3))


# The function, its truth, and how many units in the last place of float64 it may be off, from the input.
Row = tuple[Callable[[rgrad.Tensor], rgrad.Tensor], Callable[[Wide], Wide], Callable[[Wide], Any]]


def elementary(name: str, truth: Callable[[Wide], Wide]) -> Row:
    return getattr(rgrad, name), truth, lambda x: 1.0


ROWS: dict[str, Row] = {
    name: elementary(name, truth)
    for name, truth in {
        "exp": np.exp,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "log": np.log,
        "log2": np.log2,
        "log10": np.log10,
        "log1p": np.log1p,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "tanh": np.tanh,
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
        "sigmoid": sigmoid,
        "sqrt": np.sqrt,
        "reciprocal": lambda x: ONE / x,
        "square": lambda x: x * x,
    }.items()
} | {
    "rsqrt": (rgrad.rsqrt, lambda x: ONE / np.sqrt(x), lambda x: 1.5),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x), lambda x: 2.0),
    "softplus": (
        lambda t: F.softplus(t, threshold=1e300),
        softplus,
        lambda x: 3.0 + np.abs(x),
    ),
    "silu": (F.silu, lambda x: x * sigmoid(x), lambda x: 2.0),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x)), lambda x: 4.0),
    "gelu_tanh": (lambda t: F.gelu(t, approximate="tanh"), gelu_tanh, lambda x: 4 + 4 * np.abs(x) + x**4),
}


def inputs(seed: int) -> np.ndarray:
    """Values of all exponents, with random bits and with few, and many where functions bend or vanish."""
    rng = np.random.default_rng(seed)
    exponents = np.arange(0, 2047, dtype=np.uint64)
    bits = []
    for _ in range(24):
        mantissa = rng.integers(0, 1 << 52, exponents.size, dtype=np.uint64)
        bits.append(exponents << np.uint64(52) | mantissa)
        bits.append(exponents << np.uint64(52) | mantissa & np.uint64(0xF << 48))
    bits.extend(exponents << np.uint64(52) | np.uint64(edge) for edge in (0, 1, 2, (1 << 52) - 1))
    spread = np.concatenate(bits).view(np.float64)
    near = [centre + rng.standard_normal(2000) * 10.0 ** rng.uniform(-16, 1, 2000) for centre in (0.0, 1.0, -1.0, 0.5)]
    turns = rng.integers(1, 1 << 40, 4000) * (np.pi / 2)
    common = np.concatenate([rng.uniform(-40, 40, 20_000), rng.uniform(-750, 720, 4000)])
    special = np.array([0.0, np.inf, np.nan])
    some = np.concatenate([spread, *near, turns, common, special])
    return np.concatenate([some, -some])


def units(got: np.ndarray, want: Wide) -> Wide:
    """How far `got` is from `want`, in units in the last place of float64."""
    near = want.astype(np.float64)
    same = (near == got) | np.isnan(near) & np.isnan(got)
    # Beyond the largest number is one unit.
    largest = np.finfo(np.float64).max
    beyond = np.isinf(got) & (np.abs(near) == largest) & (np.sign(got) == np.sign(near))
    size = np.spacing(np.minimum(np.abs(near), largest / 2)).astype(np.longdouble) * np.where(
        np.abs(near) > largest / 2, 2, 1
    )
    off = np.abs(got.astype(np.longdouble) - want) / size
    off = np.where(np.isnan(off), np.inf, off)
    return np.where(same, 0, np.where(beyond, 1, off))


@needs_extended
@pytest.mark.parametrize("name", ROWS)
def test_float64_is_as_accurate_as_it_says(name: str) -> None:
    call, truth, bound = ROWS[name]
    x = inputs(sum(map(ord, name)))
    with np.errstate(all="ignore"):
        want = truth(x.astype(np.longdouble))
        got = call(rgrad.from_numpy(x)).numpy()
        # A factor of a product that is subnormal has few bits; the truth is off by a few of its own units.
        few = name in ("silu", "mish", "gelu_tanh")
        least = np.abs(x) * 2.0**-1074 / np.spacing(np.abs(want.astype(np.float64))) if few else 0
        off = units(got, want)
        share = np.where(off == 0, 0, off / (bound(x) + np.nan_to_num(least, posinf=0) + 0.01))
    worst = int(np.argmax(share))
    assert share[worst] <= 1, f"{name}({x[worst]!r}) is {got[worst]!r}, {off[worst]:.3f} units off"
    if name in ("logsigmoid", "softplus", "gelu_tanh"):
        return  # Zeros by underflow: their signs are those of the formulas.
    zeros = (got == 0) & (want == 0)
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
