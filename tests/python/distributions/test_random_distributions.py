"""Random numbers have the distributions that they claim: Kolmogorov-Smirnov and chi-squared tests with fixed seeds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import rgrad

N = 100_000
# The seeds are fixed, so this either always passes or never; a true claim falls below it for one seed in ten thousand.
LEAST = 1e-4


def filled(dtype: rgrad.dtype, fill: Callable[[rgrad.Tensor], rgrad.Tensor]) -> np.ndarray:
    return fill(rgrad.empty(N, dtype=dtype)).double().numpy()


def like(n: rgrad.Tensor) -> np.ndarray:
    return n.double().numpy().reshape(-1)


def means(d: rgrad.dtype) -> rgrad.Tensor:
    return rgrad.full((N,), -1.0, dtype=d)


CONTINUOUS: dict[str, tuple[Callable[[rgrad.dtype], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "rand": (lambda d: like(rgrad.rand(N, dtype=d)), stats.uniform.cdf),
    "rand_like": (lambda d: like(rgrad.rand_like(rgrad.empty(400, 250, dtype=d))), stats.uniform.cdf),
    "uniform_": (lambda d: filled(d, lambda x: x.uniform_(-3, 5)), stats.uniform(-3, 8).cdf),
    "randn": (lambda d: like(rgrad.randn(N, dtype=d)), stats.norm.cdf),
    "randn of two dims": (lambda d: like(rgrad.randn(400, 251, dtype=d)), stats.norm.cdf),
    "normal_": (lambda d: filled(d, lambda x: x.normal_(2.5, 0.3)), stats.norm(2.5, 0.3).cdf),
    "normal_ into strides": (lambda d: like(rgrad.empty(N, 2, dtype=d)[:, 1].normal_()), stats.norm.cdf),
    "rgrad.normal": (lambda d: like(rgrad.normal(means(d), 2 * rgrad.ones_like(means(d)))), stats.norm(-1, 2).cdf),
    "exponential_": (lambda d: filled(d, lambda x: x.exponential_()), stats.expon.cdf),
    "exponential_ of rate 3": (lambda d: filled(d, lambda x: x.exponential_(3.0)), stats.expon(scale=1 / 3).cdf),
}


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 25])
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str, dtype: rgrad.dtype, seed: int) -> None:
    draw, cdf = CONTINUOUS[name]
    rgrad.manual_seed(seed)
    x = draw(dtype)
    assert stats.kstest(x, cdf).pvalue > LEAST
    # Neighbours, and numbers some lanes or a block apart, know nothing of each other.
    u = cdf(x)
    for lag in (1, 2, 3, 4, 16, 64, 1024):
        r = np.corrcoef(u[:-lag], u[lag:])[0, 1]
        assert abs(r) < 4.5 / math.sqrt(len(x)), lag


def test_the_tests_can_fail() -> None:
    rgrad.manual_seed(0)
    x = rgrad.randn(N).numpy()
    assert stats.kstest(x * 1.02 + 0.02, stats.norm.cdf).pvalue < LEAST


def chi_squared(counts: np.ndarray, p: np.ndarray) -> float:
    return float(stats.chisquare(counts, p * counts.sum()).pvalue)


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-5, 12), (0, 1000), (2**40, 2**40 + 37)])
def test_integers(low: int, high: int) -> None:
    rgrad.manual_seed(3)
    x = rgrad.randint(low, high, (N,)).numpy()
    assert low <= x.min()
    assert x.max() < high
    counts = np.bincount(x - low, minlength=high - low)
    assert chi_squared(counts, np.full(high - low, 1 / (high - low))) > LEAST


@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.5, 0.999, 1.0])
def test_bernoulli(p: float) -> None:
    rgrad.manual_seed(4)
    for x in (rgrad.empty(N).bernoulli_(p), rgrad.bernoulli(rgrad.full((N,), p, dtype=rgrad.float64))):
        ones = int(x.sum())
        assert set(x.unique().tolist()) <= {0.0, 1.0}
        assert stats.binomtest(ones, N, p).pvalue > LEAST


@pytest.mark.parametrize("n", [0, 7, (1 << 18) - 1, (1 << 18) + 1, 600_001])
def test_dtypes_draw_the_same_numbers(n: int) -> None:
    # Rare dtypes are drawn in another one, some at a time.
    def integers(dtype: rgrad.dtype) -> rgrad.Tensor:
        return rgrad.empty(n, dtype=dtype).random_(0, 100, generator=rgrad.Generator().manual_seed(5)).long()

    def coins(dtype: rgrad.dtype) -> rgrad.Tensor:
        return rgrad.empty(n, dtype=dtype).bernoulli_(0.3, generator=rgrad.Generator().manual_seed(5)).long()

    for dtype in (rgrad.uint8, rgrad.int8, rgrad.int16, rgrad.int32, rgrad.float16, rgrad.bfloat16, rgrad.float64):
        assert rgrad.equal(integers(dtype), integers(rgrad.int64)), dtype
        assert rgrad.equal(coins(dtype), coins(rgrad.float32)), dtype


def test_dropout() -> None:
    rgrad.manual_seed(5)
    y = rgrad.nn.functional.dropout(rgrad.ones(N), 0.3)
    assert y.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert stats.binomtest(int((y == 0).sum()), N, 0.3).pvalue > LEAST


def test_multinomial() -> None:
    rgrad.manual_seed(6)
    w = rgrad.tensor([1.0, 0.0, 3.0, 6.0])
    counts = np.bincount(rgrad.multinomial(w, 20_000, replacement=True).numpy(), minlength=4)
    assert counts[1] == 0
    assert chi_squared(counts[[0, 2, 3]], np.array([0.1, 0.3, 0.6])) > LEAST
    # Without giving back: the first of two.
    first = rgrad.multinomial(w.expand(20_000, 4), 2)[:, 0].numpy()
    assert chi_squared(np.bincount(first, minlength=4)[[0, 2, 3]], np.array([0.1, 0.3, 0.6])) > LEAST


def test_permutations() -> None:
    rgrad.manual_seed(7)
    x = rgrad.randperm(N).numpy()
    assert (np.sort(x) == np.arange(N)).all()
    assert stats.kstest(x[: N // 10] / N, stats.uniform.cdf).pvalue > LEAST
    # All 24 orders of four come up equally often.
    orders = np.array([rgrad.randperm(4).numpy() @ [64, 16, 4, 1] for _ in range(6000)])
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 24
    assert chi_squared(counts, np.full(24, 1 / 24)) > LEAST


def test_initial_values_of_layers() -> None:
    rgrad.manual_seed(8)
    w = rgrad.empty(300, 400)
    rgrad.nn.init.kaiming_uniform_(w, a=math.sqrt(5))
    bound = 1 / math.sqrt(400)
    assert stats.kstest(like(w), stats.uniform(-bound, 2 * bound).cdf).pvalue > LEAST
    rgrad.nn.init.xavier_normal_(w)
    assert stats.kstest(like(w), stats.norm(0, math.sqrt(2 / 700)).cdf).pvalue > LEAST
