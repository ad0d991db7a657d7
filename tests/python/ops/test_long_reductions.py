"""Reductions of many elements, which take shortcuts: norms in single precision, extremes that see nan by eights."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad

LENGTHS = [255, 256, 257, 2048, 2049, 5000]
LAYOUTS = {"rows": 1, "columns": 0}


def laid(values: np.ndarray, dim: int) -> rgrad.Tensor:
    """Three rows, or three columns, of the same values in other orders."""
    rows = np.stack([values, values[::-1], np.roll(values, 77)])
    return rgrad.tensor(np.ascontiguousarray(rows if dim == 1 else rows.T))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-30, 1e-13, 1e-12, 1.0, 1e17, 1e18, 1e19, 1e30, 1e36])
def test_a_norm_neither_overflows_nor_vanishes(scale: float, n: int, layout: str) -> None:
    x = (np.random.default_rng(n).standard_normal(n) * scale).astype(np.float32)
    got = laid(x, LAYOUTS[layout]).norm(dim=LAYOUTS[layout]).numpy()
    want = np.sqrt((x.astype(np.float64) ** 2).sum())
    np.testing.assert_allclose(got, np.full(3, want), rtol=1e-6, atol=1.5e-45)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38, 0.0])
def test_a_norm_of_special_values(odd: float, layout: str) -> None:
    x = np.zeros(3000, np.float32)
    x[1234] = odd
    got = laid(x, LAYOUTS[layout]).norm(dim=LAYOUTS[layout]).numpy()
    np.testing.assert_array_equal(got, np.full(3, abs(np.float32(odd))))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_extremes_wherever_they_are(dtype: str, n: int, layout: str) -> None:
    rng, dim = np.random.default_rng(n), LAYOUTS[layout]
    for at in (0, 7, 31, 32, 254, n // 2, n - 2, n - 1):
        x = rng.integers(-1000, 1000, n).astype(dtype)
        for odd in (5000, -5000) if dtype == "int32" else (5000, -5000, np.inf, -np.inf, np.nan):
            x[at] = odd
            t = laid(x, dim)
            np.testing.assert_array_equal(t.amax(dim).numpy(), np.full(3, x.max()))
            np.testing.assert_array_equal(t.amin(dim).numpy(), np.full(3, x.min()))
            np.testing.assert_array_equal((t + 1).amax(dim).numpy(), np.full(3, x.max() + 1))


def test_extremes_of_infinities_alone() -> None:
    for value in (np.inf, -np.inf):
        x = rgrad.full((2, 3000), value)
        assert x.amax(1).tolist() == x.amin(1).tolist() == [value, value]


def test_a_norm_has_the_same_bits_of_a_program() -> None:
    x = rgrad.randn(40, 5000)
    with rgrad.fusion(True):
        fused = (x * 3 + 1).norm(dim=1).numpy()
    with rgrad.fusion(False):
        plain = (x * 3 + 1).norm(dim=1).numpy()
    np.testing.assert_array_equal(fused, plain)
