"""Special functions alone: values from SciPy, numeric derivatives of both orders, tangents, batches, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import rgrad
import rgrad.special as special

# Function: SciPy's, and where its arguments lie.
CASES: dict[str, tuple[Any, float, float]] = {
    "airy_ai": (lambda x: scipy.special.airy(x)[0], -12.0, 8.0),
    "bessel_j0": (scipy.special.j0, -40.0, 40.0),
    "bessel_j1": (scipy.special.j1, -40.0, 40.0),
    "bessel_y0": (scipy.special.y0, 0.1, 40.0),
    "bessel_y1": (scipy.special.y1, 0.1, 40.0),
    "digamma": (scipy.special.digamma, -4.3, 8.0),
    "entr": (scipy.special.entr, 0.1, 4.0),
    "erfcx": (scipy.special.erfcx, -2.0, 15.0),
    "erfinv": (scipy.special.erfinv, -0.9, 0.9),
    "gammaln": (scipy.special.gammaln, 0.05, 30.0),
    "i0": (scipy.special.i0, -25.0, 25.0),
    "i0e": (scipy.special.i0e, -25.0, 25.0),
    "i1": (scipy.special.i1, -25.0, 25.0),
    "i1e": (scipy.special.i1e, -25.0, 25.0),
    "log_ndtr": (scipy.special.log_ndtr, -20.0, 4.0),
    "modified_bessel_k0": (scipy.special.k0, 0.1, 30.0),
    "modified_bessel_k1": (scipy.special.k1, 0.1, 30.0),
    "ndtr": (scipy.special.ndtr, -6.0, 4.0),
    "ndtri": (scipy.special.ndtri, 0.05, 0.95),
    "scaled_modified_bessel_k0": (scipy.special.k0e, 0.1, 300.0),
    "scaled_modified_bessel_k1": (scipy.special.k1e, 0.1, 300.0),
    "sinc": (np.sinc, -3.0, 3.0),
    "spherical_bessel_j0": (lambda x: scipy.special.spherical_jn(0, x), -40.0, 40.0),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, device: str) -> None:
    reference, low, high = CASES[name]
    x = np.random.default_rng(0).uniform(low, high, 500).astype(np.float32)
    got = getattr(special, name)(rgrad.tensor(x, device=device))
    assert got.device.type == device.split(":", maxsplit=1)[0]
    np.testing.assert_allclose(got.cpu().numpy(), reference(x.astype(np.float64)), rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_values_of_doubles(name: str) -> None:
    reference, low, high = CASES[name]
    x = np.random.default_rng(1).uniform(low, high, 500)
    # Near its zeros a wave is known to a part of its height.
    near = 1e-13 if name.startswith(("bessel", "airy")) else 1e-14
    np.testing.assert_allclose(getattr(special, name)(rgrad.tensor(x)).numpy(), reference(x), rtol=2e-13, atol=near)


def test_edges_of_bessel_functions() -> None:
    x = rgrad.tensor(
        [0.0, -0.0, -1.5, float("inf"), -float("inf"), float("nan"), 25.0, 2.0, 1e-300], dtype=rgrad.float64
    )
    for name, reference in (
        ("bessel_j0", scipy.special.jv),
        ("bessel_j1", scipy.special.jv),
        ("bessel_y0", scipy.special.yv),
        ("bessel_y1", scipy.special.yv),
        ("modified_bessel_k0", scipy.special.kv),
        ("modified_bessel_k1", scipy.special.kv),
    ):
        wanted = np.array(reference(int(name[-1]), x.numpy()))
        if name.startswith("bessel"):
            wanted[np.isinf(x.numpy())] = 0.0
        if name[-2] != "j":
            wanted[x.numpy() < 0] = np.nan
        got = getattr(special, name)(x).numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15, err_msg=name)


def test_airy_ai_and_the_spherical_bessel_function_at_their_edges() -> None:
    infinity = float("inf")
    x = rgrad.tensor([infinity, -infinity, 1e250, -1e250, float("nan"), 0.0, -0.0], dtype=rgrad.float64)
    for function, at_zero in ((special.airy_ai, scipy.special.airy(0.0)[0]), (special.spherical_bessel_j0, 1.0)):
        got = function(x).numpy()
        np.testing.assert_allclose(got[:4], 0.0, atol=1e-60)
        assert np.isnan(got[4])
        np.testing.assert_allclose(got[5:], at_zero, rtol=1e-15)
    # Where formulas meet, there is no step.
    for function, places in ((special.airy_ai, (-10.0, 0.0, 2.0)), (rgrad._core._airy_ai_prime, (-10.0, 0.0, 2.0))):
        for place in places:
            low, high = np.nextafter(place, -9e9), np.nextafter(place, 9e9)
            a, b = function(rgrad.tensor([low, high], dtype=rgrad.float64)).tolist()
            np.testing.assert_allclose(a, b, rtol=0, atol=4e-15)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    _, low, high = CASES[name]
    x = np.random.default_rng(2).uniform(max(low, -4.0), min(high, 4.0), 6)
    function = getattr(special, name)
    leaf = rgrad.tensor(x, requires_grad=True)
    assert rgrad.autograd.gradcheck(function, leaf, check_forward_ad=True, check_batched_grad=True)
    assert rgrad.autograd.gradgradcheck(function, leaf)


@pytest.mark.parametrize("name", CASES)
def test_transforms(name: str) -> None:
    _, low, high = CASES[name]
    x = rgrad.tensor(np.random.default_rng(3).uniform(max(low, -4.0), min(high, 4.0), (2, 3)))
    function = getattr(special, name)
    slopes = rgrad.func.vmap(rgrad.func.vmap(rgrad.func.grad(function)))(x)
    moved = rgrad.func.jvp(function, (x,), (rgrad.ones_like(x),))[1]
    np.testing.assert_allclose(moved.numpy(), slopes.numpy(), rtol=1e-10)
    assert rgrad.func.vmap(function, 1, 1)(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma(n: int) -> None:
    x = np.random.default_rng(n).uniform(0.1, 12, 100)
    np.testing.assert_allclose(special.polygamma(n, rgrad.tensor(x)).numpy(), scipy.special.polygamma(n, x), rtol=1e-12)
    leaf = rgrad.tensor(np.append(x[:3], [-0.6, -2.3]), requires_grad=True)
    assert rgrad.autograd.gradcheck(lambda t: t.polygamma(n), leaf, check_forward_ad=True)


def test_incomplete_gamma() -> None:
    rng = np.random.default_rng(0)
    a, x = rng.uniform(0.01, 300, 400), rng.uniform(0.01, 300, 400)
    for name in ("gammainc", "gammaincc"):
        got = getattr(special, name)(rgrad.tensor(a), rgrad.tensor(x)).numpy()
        np.testing.assert_allclose(got, getattr(scipy.special, name)(a, x), rtol=2e-11, atol=1e-290)
    leaf = rgrad.tensor([0.5, 2.0, 9.0], dtype=rgrad.float64, requires_grad=True)
    order = rgrad.tensor([0.7, 2.5, 6.0], dtype=rgrad.float64)
    assert rgrad.autograd.gradcheck(lambda t: special.gammainc(order, t), leaf)
    assert rgrad.autograd.gradgradcheck(lambda t: special.gammaincc(order, t), leaf)
    for name in ("gammainc", "gammaincc"):
        order = rgrad.tensor([0.7, 2.5, 6.0, 250.0], dtype=rgrad.float64, requires_grad=True)
        end = rgrad.tensor([0.9, 2.0, 9.0, 260.0], dtype=rgrad.float64, requires_grad=True)
        assert rgrad.autograd.gradcheck(getattr(special, name), (order, end), check_forward_ad=True)
        (slope,) = rgrad.autograd.grad(getattr(special, name)(order, end).sum(), order, create_graph=True)
        with pytest.raises(NotImplementedError, match="_standard_gamma_grad"):
            slope.sum().backward()
    ends = rgrad.tensor([0.0, float("inf")], dtype=rgrad.float64)
    at = rgrad.tensor([0.5, 2.0], dtype=rgrad.float64, requires_grad=True)
    special.gammainc(at, ends).sum().backward()
    assert at.grad.tolist() == [0.0, 0.0]


def test_zeta_and_mvlgamma() -> None:
    s, q = np.array([1.5, 2, 3, 20.0]), np.array([0.3, 1, 7.5, 40.0])
    got = special.zeta(rgrad.tensor(s), rgrad.tensor(q)).numpy()
    np.testing.assert_allclose(got, scipy.special.zeta(s, q), rtol=1e-14)
    leaf = rgrad.tensor(q, requires_grad=True)
    assert rgrad.autograd.gradcheck(lambda t: special.zeta(2.5, t), leaf)
    x = np.array([2.5, 3.0, 9.0])
    wanted = [scipy.special.multigammaln(v, 4) for v in x]
    np.testing.assert_allclose(special.multigammaln(rgrad.tensor(x), 4).numpy(), wanted, rtol=1e-13)


def test_in_place_forms_keep_the_gradient() -> None:
    x = rgrad.tensor([0.3, 1.7], dtype=rgrad.float64, requires_grad=True)
    made = (x * 2).lgamma_()
    made.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * scipy.special.digamma([0.6, 3.4]), rtol=1e-13)
    with pytest.raises(RuntimeError, match="leaf"):
        x.lgamma_()


def test_out() -> None:
    out = rgrad.empty(0)
    assert rgrad.lgamma(rgrad.tensor([3.0]), out=out) is out
    np.testing.assert_allclose(out.numpy(), [np.log(2.0)], rtol=1e-6)
