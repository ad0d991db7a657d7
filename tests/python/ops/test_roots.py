"""Square roots are the nearest numbers, whatever instructions compute them, at every length and offset."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad

SPECIAL = [0.0, -0.0, 1.0, 2.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 1e-310, 3e38, 4.0, 1e-20]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 3, 8, 15, 16, 17, 40, 1000, 70_001])
def test_roots_are_the_nearest_numbers(kind: str, size: int) -> None:
    values = np.random.default_rng(size).lognormal(0, 20, size).astype(kind)
    values[: len(SPECIAL)] = np.array(SPECIAL[:size]).astype(kind)
    with np.errstate(all="ignore"):
        root = np.sqrt(values)
        inverse = values.dtype.type(1) / root
    for start in (0, 1, 3):
        x = rgrad.tensor(values)[start:]
        np.testing.assert_array_equal(x.sqrt().numpy(), root[start:])
        np.testing.assert_array_equal(x.rsqrt().numpy(), inverse[start:])
        np.testing.assert_array_equal((x * 1).sqrt().mul(1).numpy(), root[start:])


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 1000, 300_001])
def test_a_step_of_many_rows_has_the_bits_of_its_rows(kind: str, size: int) -> None:
    dtype = getattr(rgrad, kind)
    rgrad.manual_seed(0)
    p, g = rgrad.randn(size, dtype=dtype), rgrad.randn(size, dtype=dtype)
    own = rgrad.nn.Parameter(p.clone())
    own.grad = g.clone()
    optimizer = rgrad.optim.Adam([own], lr=0.1, amsgrad=True, weight_decay=0.1)
    optimizer.step()
    with rgrad.fusion(False):
        grad = g.add(p, alpha=0.1)
        mean = rgrad.zeros_like(p).lerp(grad, 1 - 0.9)
        square = rgrad.zeros_like(p).mul(0.999).addcmul(grad, grad, value=1 - 0.999)
        largest = rgrad.zeros_like(p).maximum(square)
        expected = p.addcdiv(mean, largest.sqrt().div((1 - 0.999) ** 0.5).add(1e-8), value=-0.1 / (1 - 0.9))
    state = optimizer.state[own]
    assert rgrad.equal(state["exp_avg"], mean)
    assert rgrad.equal(state["exp_avg_sq"], square)
    assert rgrad.equal(own.detach(), expected)
