"""Distributions alone: samples follow them, gradients pass through samples, densities integrate to 1."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad
from rgrad.distributions import Bernoulli, Categorical, Distribution, Normal, Uniform, kl, kl_divergence, register_kl


def test_samples_have_the_moments() -> None:
    rgrad.manual_seed(0)
    for d in (
        Normal(rgrad.tensor([1.0, -2.0]), rgrad.tensor([0.5, 3.0])),
        Uniform(rgrad.tensor([0.0, -1.0]), 4.0),
        Bernoulli(rgrad.tensor([0.2, 0.7])),
    ):
        x = d.sample((20000,))
        np.testing.assert_allclose(x.mean(0).numpy(), d.mean.numpy(), atol=0.08)
        np.testing.assert_allclose(x.std(0).numpy(), d.stddev.numpy(), rtol=0.05)
        assert not x.requires_grad
    weights = rgrad.tensor([[1.0, 2.0, 7.0], [3.0, 3.0, 4.0]])
    x = Categorical(weights).sample((20000,))
    for k in range(3):
        np.testing.assert_allclose((x == k).float().mean(0).numpy(), weights[:, k].numpy() / 10, atol=0.02)


def test_gradients_pass_through_samples() -> None:
    rgrad.manual_seed(0)
    loc, scale = rgrad.tensor(0.5, requires_grad=True), rgrad.tensor(2.0, requires_grad=True)
    d = Normal(loc, scale)
    x = d.rsample((100,))
    x.sum().backward()
    np.testing.assert_allclose(loc.grad.item(), 100.0)
    np.testing.assert_allclose(scale.grad.item(), ((x.detach() - 0.5) / 2).sum().item(), rtol=1e-5)
    with pytest.raises(NotImplementedError):
        Bernoulli(0.5).rsample()


def test_densities_integrate_to_one() -> None:
    x = rgrad.linspace(-12, 12, 4801, dtype=rgrad.float64)
    assert abs(rgrad.trapezoid(Normal(0.5, 1.5).log_prob(x).exp(), x).item() - 1) < 1e-6
    u = Uniform(rgrad.tensor(-1.0, dtype=rgrad.float64), 3.0, validate_args=False)
    assert abs(rgrad.trapezoid(u.log_prob(x).exp(), x).item() - 1) < 1e-2
    inner, d = x[2000:2800], Normal(0.5, 1.5)
    np.testing.assert_allclose(d.icdf(d.cdf(inner)).numpy(), inner.numpy(), atol=1e-6)


def test_parameters_have_gradients() -> None:
    value = rgrad.tensor([0.0, 1.0, 1.0], dtype=rgrad.float64)
    p = rgrad.tensor([0.3, 0.6, 0.9], dtype=rgrad.float64, requires_grad=True)
    assert rgrad.autograd.gradcheck(lambda p: Bernoulli(p).log_prob(value), p)
    assert rgrad.autograd.gradcheck(lambda p: Categorical(p, validate_args=False).entropy(), p)
    assert rgrad.autograd.gradcheck(lambda p: Normal(p, p + 1).entropy(), p)
    assert rgrad.autograd.gradgradcheck(lambda p: kl_divergence(Normal(p, p + 1), Normal(0.0, 1.0)), p)


def test_own_divergences() -> None:
    class Point(Distribution):
        arg_constraints = {}  # noqa: RUF012

    with pytest.raises(NotImplementedError):
        kl_divergence(Point(), Normal(0.0, 1.0))
    register_kl(Point, Normal)(lambda p, q: q.mean)
    assert kl_divergence(Point(), Normal(3.0, 1.0)).item() == 3.0
    with pytest.raises(TypeError):
        register_kl(Normal(0.0, 1.0), Normal)


def test_under_vmap() -> None:
    made = rgrad.func.vmap(lambda m, v: Normal(m, 1.0).log_prob(v))(rgrad.zeros(3), rgrad.arange(3.0))
    np.testing.assert_allclose(made.numpy(), Normal(0.0, 1.0).log_prob(rgrad.arange(3.0)).numpy(), rtol=1e-6)


def test_the_closest_divergence_is_taken() -> None:
    class P(Normal):
        pass

    class Q(Normal):
        pass

    table = dict(kl._KL_REGISTRY)
    try:
        register_kl(P, Normal)(lambda p, q: 1)
        assert kl_divergence(P(0.0, 1.0), Q(0.0, 1.0)) == 1
        register_kl(Normal, Q)(lambda p, q: 2)
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(P, Q\). Please register_kl\(P, Q\)"):
            assert kl_divergence(P(0.0, 1.0), Q(0.0, 1.0)) == 1
        register_kl(P, Q)(lambda p, q: 3)
        assert kl_divergence(P(0.0, 1.0), Q(0.0, 1.0)) == 3
    finally:
        kl._KL_MEMOIZE.clear()
        kl._KL_REGISTRY.clear()
        kl._KL_REGISTRY.update(table)


def test_the_other_parameter_is_made_once() -> None:
    for made in (Bernoulli(0.25), Categorical(rgrad.ones(3))):
        assert made.logits is made.logits
        assert made.probs is made.probs
