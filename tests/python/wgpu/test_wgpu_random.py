"""Random numbers: one seed gives the same numbers on both devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtypes
import rgrad
from rgrad import Tensor
from rgrad.nn import functional as F

DTYPES = dtypes.of(dtypes.ON_WGPU)
SIZES = [(), (1,), (3,), (1001,), (37, 41), (3, 0), (300_000,)]


def drawn(f: Callable[[str], Tensor], seed: int = 5) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What `f` gives on the CPU and on the device from one seed; both take as many numbers from the stream."""
    out = []
    for device in ("cpu", "wgpu"):
        rgrad.manual_seed(seed)
        t = f(device)
        assert t.device.type == device
        out.append((dtypes.array(t), rgrad.get_rng_state().numpy()))
    (here, state), (there, other) = out
    np.testing.assert_array_equal(state, other)
    assert (here.shape, here.dtype) == (there.shape, there.dtype)
    return here, there


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_uniform_numbers_are_equal_bits(size: tuple[int, ...]) -> None:
    here, there = drawn(lambda d: rgrad.rand(size, device=d))
    np.testing.assert_array_equal(there.view(np.uint32), here.view(np.uint32))
    here, there = drawn(lambda d: rgrad.empty(size, device=d).uniform_(-1.3, 2.7))
    np.testing.assert_array_equal(there.view(np.uint32), here.view(np.uint32))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_normal_and_exponential_numbers_are_close(size: tuple[int, ...]) -> None:
    here, there = drawn(lambda d: rgrad.randn(size, device=d))
    np.testing.assert_allclose(there, here, rtol=2e-6, atol=2e-7)
    here, there = drawn(lambda d: rgrad.empty(size, device=d).normal_(3.0, 0.5))
    np.testing.assert_allclose(there, here, rtol=1e-6)
    here, there = drawn(lambda d: rgrad.empty(size, device=d).exponential_(1.7))
    np.testing.assert_allclose(there, here, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("p", [0.0, 1e-300, 0.3, 1.0])
def test_coins_are_equal(p: float, dtype: Any) -> None:
    here, there = drawn(lambda d: rgrad.empty(5001, dtype=dtype, device=d).bernoulli_(p))
    np.testing.assert_array_equal(there, here)
    assert abs(here.mean() - p) < 0.03


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_integers_are_equal(dtype: Any) -> None:
    here, there = drawn(lambda d: rgrad.empty(3001, dtype=dtype, device=d).random_())
    np.testing.assert_array_equal(there, here)
    ends = {
        rgrad.uint8: [(0, 256), (3, 7)],
        rgrad.int8: [(-128, 128), (-5, 7)],
        rgrad.int16: [(-(2**15), 2**15), (-5, 7)],
        rgrad.bool: [(0, 2)],
        rgrad.int32: [(-(2**31), 2**31), (-5, 7)],
        rgrad.int64: [(-(2**63), 2**63 - 1), (-5, 7), (2**40, 2**41)],
        rgrad.float16: [(-5, 7), (0, 2049)],
        rgrad.bfloat16: [(-5, 7), (0, 257)],
        rgrad.float32: [(-5, 7), (-(2**60), 2**62)],
    }[dtype]
    for low, high in ends:
        here, there = drawn(lambda d: rgrad.empty(3001, dtype=dtype, device=d).random_(low, high))  # noqa: B023
        np.testing.assert_array_equal(there, here)
    if dtype != rgrad.bool:
        here, there = drawn(lambda d: rgrad.randint(0, 9, (100, 3), dtype=dtype, device=d))
        np.testing.assert_array_equal(there, here)


def test_chances_of_each_element() -> None:
    p = np.random.default_rng(0).random((70, 50)).astype(np.float32)
    p[0, :4] = [0, 1, 1e-40, 1e-12]
    p[1] *= 1e-3
    for see in (lambda t: t, lambda t: t.t(), lambda t: t[::2, 3:], lambda t: t[:1].expand(9, 50)):
        here, there = drawn(lambda d: rgrad.bernoulli(see(rgrad.tensor(p, device=d))))  # noqa: B023
        np.testing.assert_array_equal(there, here)
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
            rgrad.bernoulli(rgrad.tensor([0.5, bad], device="wgpu"))


def test_dropout_drops_the_same_and_so_does_its_gradient() -> None:
    def f(d: str) -> Tensor:
        x = rgrad.arange(1.0, 1001.0, device=d, requires_grad=True)
        y = F.dropout(x, 0.4, training=True)
        y.sum().backward()
        assert x.grad is not None
        return rgrad.stack([y.detach(), x.grad])

    here, there = drawn(f)
    np.testing.assert_allclose(there, here, rtol=1e-6)
    assert 0.3 < (here[0] == 0).mean() < 0.5


def test_kin() -> None:
    """Numbers like a tensor's, in its order of dimensions; permutations; choices; fills of parts."""
    x = rgrad.empty(6, 8).t()
    for f in (rgrad.rand_like, lambda t: rgrad.randint_like(t, 3, 90)):
        here, there = drawn(lambda d: f(x.to(d)))  # noqa: B023
        np.testing.assert_array_equal(there, here)
    here, there = drawn(lambda d: rgrad.randperm(501, device=d))
    np.testing.assert_array_equal(there, here)
    weights = rgrad.tensor([[0.1, 0.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    here, there = drawn(lambda d: rgrad.multinomial(weights.to(d), 30, True))
    np.testing.assert_array_equal(there, here)

    def part(d: str) -> Tensor:
        t = rgrad.zeros(9, 7, device=d)
        t[1:8:2, 2:].uniform_()
        return t

    here, there = drawn(part)
    np.testing.assert_array_equal(there, here)
    mean, std = rgrad.arange(4.0), rgrad.tensor([1.0, 0.0, 2.0, 3.0])
    here, there = drawn(lambda d: rgrad.normal(mean.to(d), std.to(d)))
    np.testing.assert_allclose(there, here, rtol=2e-6)


def test_layers_start_alike() -> None:
    def weights(d: str) -> Tensor:
        layer = rgrad.nn.Linear(30, 20, device=d)
        return rgrad.cat([layer.weight.detach().reshape(-1), layer.bias.detach()])

    here, there = drawn(weights)
    np.testing.assert_array_equal(there, here)
