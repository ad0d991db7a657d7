"""Random numbers by rejection: distributions, gradients of samples, threads, batches, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import rgrad

COUNT = 20000


@pytest.mark.parametrize("order", [0.05, 0.7, 1.0, 3.5, 80.0])
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64])
def test_gamma(order: float, dtype: Any) -> None:
    g = rgrad.Generator().manual_seed(3)
    drawn = rgrad._standard_gamma(rgrad.full((COUNT,), order, dtype=dtype), g)
    assert drawn.dtype == dtype
    assert bool((drawn > 0).all())
    # The smallest float takes the place of what is less.
    drawn = drawn.numpy()[drawn.numpy() > 1e-37]
    least = scipy.stats.gamma.cdf(1e-37, order)
    u = (scipy.stats.gamma.cdf(drawn.astype(float), order) - least) / (1 - least)
    assert scipy.stats.kstest(u, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.1, 4.0, 11.0, 250.0])
def test_poisson(rate: float) -> None:
    g = rgrad.Generator().manual_seed(5)
    check_counts(rgrad.poisson(rgrad.full((COUNT,), rate), g), scipy.stats.poisson(rate))


@pytest.mark.parametrize(("n", "p"), [(4, 0.3), (50, 0.05), (60, 0.4), (400, 0.93)])
def test_binomial(n: int, p: float) -> None:
    g = rgrad.Generator().manual_seed(9)
    drawn = rgrad.binomial(rgrad.full((COUNT,), float(n)), rgrad.tensor(p), g)
    check_counts(drawn, scipy.stats.binom(n, np.float32(p)))


def check_counts(drawn: Any, law: Any) -> None:
    """A test of how often each count comes; rare ones are taken together."""
    values = drawn.numpy()
    assert (values == np.floor(values)).all()
    low, high = int(law.ppf(0.001)), int(law.ppf(0.999))
    ends = np.arange(low, high)
    wanted = np.diff(np.concatenate([[0.0], law.cdf(ends), [1.0]])) * COUNT
    seen = np.bincount(np.searchsorted(ends, values), minlength=len(ends) + 1)
    full = wanted > 5
    rest = wanted[~full].sum()
    wanted, seen = (np.append(v[full], v[~full].sum()) for v in (wanted, seen))
    if rest < 5:
        wanted, seen = np.append(wanted[:-2], wanted[-2:].sum()), np.append(seen[:-2], seen[-2:].sum())
    assert scipy.stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-4


def test_dirichlet() -> None:
    alpha = rgrad.tensor([0.5, 2.0, 0.01, 4.0], dtype=rgrad.float64)
    drawn = rgrad._sample_dirichlet(alpha.expand(COUNT, 4), rgrad.Generator().manual_seed(1)).numpy()
    np.testing.assert_allclose(drawn.sum(-1), 1.0, rtol=1e-14)
    for k, a in enumerate(alpha.tolist()):
        if a > 0.1:
            law = scipy.stats.beta(a, alpha.sum().item() - a)
            assert scipy.stats.kstest(drawn[:, k], law.cdf).pvalue > 1e-4
    # All orders are so small that only logarithms of the gamma numbers differ: one component is 1.
    tiny = rgrad._sample_dirichlet(rgrad.full((500, 3), 1e-4), rgrad.Generator().manual_seed(2))
    assert float((tiny.max(-1).values > 0.999).float().mean()) > 0.98


def test_gradient_of_gamma_is_that_of_the_quantile() -> None:
    alpha = rgrad.logspace(-1, 3, 40, dtype=rgrad.float64).requires_grad_()
    drawn = rgrad._standard_gamma(alpha, rgrad.Generator().manual_seed(4))
    (got,) = rgrad.autograd.grad(drawn.sum(), alpha)
    a, x = alpha.detach().numpy(), drawn.detach().numpy()
    lower = scipy.special.gammainc(a, x)
    h = 1e-4 * a
    quantile = scipy.special.gammaincinv
    wanted = (
        8 * (quantile(a + h, lower) - quantile(a - h, lower)) - quantile(a + 2 * h, lower) + quantile(a - 2 * h, lower)
    ) / (12 * h)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-7)
    with pytest.raises(NotImplementedError, match="_standard_gamma_grad"):
        rgrad._core._standard_gamma_grad(alpha, drawn).sum().backward()


def test_gamma_in_transforms() -> None:
    def draw(a: Any) -> Any:
        return rgrad._standard_gamma(a)

    a = rgrad.full((3, 2), 2.0, dtype=rgrad.float64)
    rgrad.manual_seed(0)
    y, t = rgrad.func.jvp(draw, (a,), (rgrad.ones_like(a),))
    np.testing.assert_allclose(t.numpy(), rgrad._core._standard_gamma_grad(a, y).numpy(), rtol=1e-14)
    different = rgrad.func.vmap(draw, randomness="different")(a)
    assert different.unique().numel() == 6
    with pytest.raises(RuntimeError, match="randomness"):
        rgrad.func.vmap(draw)(a)


def test_bits_do_not_depend_on_threads() -> None:
    alpha = rgrad.linspace(0.1, 9.0, 5000)
    found = []
    before = rgrad.get_num_threads()
    try:
        for threads in (1, 2, 3):
            rgrad.set_num_threads(threads)
            rgrad.manual_seed(6)
            found.append([rgrad._standard_gamma(alpha), rgrad.poisson(alpha), rgrad.binomial(alpha.ceil(), alpha / 10)])
    finally:
        rgrad.set_num_threads(before)
    assert all(rgrad.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_edges_and_refusals() -> None:
    edges = rgrad.tensor([0.0, float("inf"), float("nan"), -1.0])
    made = rgrad._standard_gamma(edges)
    assert made[0].item() == np.finfo(np.float32).tiny
    assert made.isnan().tolist() == [False, False, True, True]
    assert rgrad.poisson(rgrad.zeros(2)).tolist() == [0.0, 0.0]
    assert rgrad.binomial(rgrad.tensor([3.0, 3.0]), rgrad.tensor([0.0, 1.0])).tolist() == [0.0, 3.0]
    x = rgrad.ones(2, requires_grad=True)
    rgrad.poisson(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    for call, error, words in [
        (lambda: rgrad._standard_gamma(rgrad.ones(2, dtype=rgrad.int64)), NotImplementedError, "gamma_cpu"),
        (lambda: rgrad.poisson(rgrad.tensor([-1.0])), RuntimeError, "invalid Poisson rate"),
        (lambda: rgrad.binomial(rgrad.ones(1), rgrad.tensor([1.5])), RuntimeError, "probabilities from 0 to 1"),
        (lambda: rgrad.binomial(rgrad.ones(1), rgrad.ones(1, dtype=rgrad.float64)), RuntimeError, "Found dtype"),
    ]:
        with pytest.raises(error, match=words):
            call()
