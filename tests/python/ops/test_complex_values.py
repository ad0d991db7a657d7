"""Functions of complex numbers at special values, and far from any: beside NumPy's, which follow C99 in most places."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rgrad

INF, NAN = math.inf, math.nan
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, math.pi / 2, 1000.0, INF, -INF, NAN, 1e-310, 1e308, -1e308]
POINTS = list(itertools.product(PARTS, PARTS))

NAMES = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
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
}

# The sign of a zero or an infinity is not specified where the angle is not known, and libraries differ.
UNKNOWN_ANGLE = {"exp", "sin", "cos", "tan", "sinh", "cosh", "tanh"}
# Nor is it where a part of the number is nan (C99 G.6: casinh(nan + i inf) is "+-inf + i nan"); builds of NumPy differ.
UNKNOWN_AT_NAN = {"sqrt", "asin", "acos", "atan", "asinh", "atanh"}


def complex_array(points: list[tuple[float, float]]) -> np.ndarray:
    """The points as complex numbers; the sign of each zero stays."""
    return np.array(points, dtype=np.float64).view(np.complex128).reshape(-1)


def same(got: float, want: float, signed: bool) -> bool:
    """Equal up to rounding, with the same sign of zero if `signed`."""
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if not signed:
        got, want = abs(got), abs(want)
    if math.isinf(want) or math.isinf(got):
        return got == want
    return abs(got - want) <= max(1e-13 * abs(want), 1e-320) and math.copysign(1, got) == math.copysign(1, want)


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_numpys(name: str) -> None:
    z = complex_array(POINTS)
    with np.errstate(all="ignore"):
        want = NAMES[name](z)
    got = getattr(rgrad, name)(rgrad.tensor(z)).numpy()
    assert got.dtype == np.complex128
    for point, g, w in zip(POINTS, got, want, strict=True):
        if name == "acosh" and point[0] == 0 and math.isnan(point[1]):
            # nan + i pi / 2 since C17, nan + i nan before.
            assert math.isnan(g.real)
            assert math.isclose(abs(g.imag), math.pi / 2)
            continue
        known = name not in UNKNOWN_ANGLE or all(map(math.isfinite, point))
        known &= name not in UNKNOWN_AT_NAN or not any(map(math.isnan, point))
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            assert same(float(a), float(b), known), f"{name}{point}: {g}, not {w}"


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_do_not_matter(name: str) -> None:
    """The same element gives the same bits, in any place and beside any others."""
    rng = np.random.default_rng(0)
    z = complex_array(POINTS)
    order = rng.permutation(len(z))
    f = getattr(rgrad, name)
    whole = f(rgrad.tensor(z)).numpy()
    shuffled = f(rgrad.tensor(z[order])).numpy()
    single = np.concatenate([f(rgrad.tensor(z[i : i + 1])).numpy() for i in range(len(z))])
    for other in (shuffled, single[order]):
        both_nan = np.isnan(whole[order].view(np.float64)) & np.isnan(other.view(np.float64))
        assert (both_nan | (whole[order].view(np.int64) == other.view(np.int64))).all()


def test_quotients_of_all_sizes() -> None:
    """No quotient in range is lost to an intermediate result that is not."""
    rng = np.random.default_rng(1)
    parts = rng.uniform(0.5, 1, (2, 500, 2)) * rng.choice([-1, 1], (2, 500, 2))
    shift = rng.integers(-1000, 1000, 500)
    a, b = parts * 2.0 ** shift[:, None]
    quotient = (rgrad.tensor(complex_array(a.tolist())) / rgrad.tensor(complex_array(b.tolist()))).numpy()
    small = complex_array(parts[0].tolist()) / complex_array(parts[1].tolist())
    np.testing.assert_allclose(quotient, small, rtol=1e-14)


def test_powers_of_zero_and_whole_powers() -> None:
    zero = rgrad.tensor([0j, 0j, 0j, 0j])
    got = rgrad.pow(zero, rgrad.tensor([0j, 2 + 1j, -1 + 0j, 1j])).numpy()
    assert got[0] == 1
    assert got[1] == 0
    assert np.isposinf(got[2].real)
    assert np.isnan([got[2].imag, got[3].real, got[3].imag]).all()
    z = rgrad.tensor(complex_array([(0.6, -0.8), (-1.5, 0.25)]))
    for k in (2, 3, -1, 7, 40):
        want = np.array([complex(v) ** k for v in z.numpy()])
        np.testing.assert_allclose(
            rgrad.pow(z, rgrad.tensor([complex(k)] * 2, dtype=z.dtype)).numpy(), want, rtol=1e-13
        )
