"""Every distribution of the table: densities, distribution functions, samples, entropies, shapes, gradients, errors."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import rgrad
from distribution_table import CASES, COVARIANCE, UNIVARIATE, Case
from rgrad import distributions as D

CONTINUOUS = [name for name in UNIVARIATE if not CASES[name].discrete]
BY_QUANTILE = [name for name, case in CASES.items() if case.by_quantile]
N = 20_000


def differentiable(case: Case) -> list[str]:
    """The parameters that may be moved one number at a time."""
    floats = [n for n, v in case.parameters.items() if isinstance(v, np.ndarray) and n != "total_count"]
    return list(floats if case.differentiable is None else case.differentiable)


def with_leaves(case: Case, leaves: Any, **options: Any) -> Any:
    """The distribution with some parameters given as tensors."""
    made = {n: rgrad.tensor(v) if isinstance(v, np.ndarray) else v for n, v in case.parameters.items()}
    return getattr(D, case.kind)(**(made | dict(zip(differentiable(case), leaves, strict=True))), **options)


def leaves_of(case: Case) -> list[rgrad.Tensor]:
    return [rgrad.tensor(case.parameters[n], requires_grad=True) for n in differentiable(case)]


def values(name: str) -> np.ndarray:
    """Values all over the support, and far out."""
    case, levels = CASES[name], np.array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-6])[:, None]
    return np.array(case.scipy().ppf(levels), dtype=float)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_densities_are_those_of_scipy(name: str) -> None:
    d, reference, x = CASES[name].make(rgrad), CASES[name].scipy(), values(name)
    wanted = reference.logpmf(x) if CASES[name].discrete else reference.logpdf(x)
    np.testing.assert_allclose(d.log_prob(rgrad.tensor(x)).numpy(), wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_functions(name: str) -> None:
    d, reference, x = CASES[name].make(rgrad), CASES[name].scipy(), values(name)
    try:
        made = d.cdf(rgrad.tensor(x))
    except NotImplementedError:
        assert name in ("beta", "student", "fisher snedecor", "von mises")
        return
    np.testing.assert_allclose(made.numpy(), reference.cdf(x), rtol=1e-7, atol=1e-12)
    try:
        np.testing.assert_allclose(d.icdf(made)[1:-1].numpy(), x[1:-1], rtol=1e-7, atol=1e-10)
    except NotImplementedError:
        assert name in ("gamma", "chi2", "inverse gamma")


@pytest.mark.parametrize("name", ["continuous bernoulli", "kumaraswamy"])
def test_densities_that_scipy_has_not(name: str) -> None:
    d, ends = CASES[name].make(rgrad), np.array([0.05, 0.3, 0.5, 0.9])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for low, high in itertools.pairwise(ends):
        x = rgrad.tensor(low + (high - low) * (nodes[:, None] + 1) / 2)
        mass = (d.log_prob(x).exp().numpy() * weights[:, None]).sum(0) * (high - low) / 2
        wanted = d.cdf(rgrad.tensor(high)) - d.cdf(rgrad.tensor(low))
        np.testing.assert_allclose(mass, wanted.numpy(), rtol=1e-9)
    edges = rgrad.tensor([0.0, 1.0], dtype=rgrad.float64).unsqueeze(-1)
    np.testing.assert_allclose(d.cdf(edges).numpy(), np.array([[0.0] * 3, [1.0] * 3]), atol=1e-12)
    u = rgrad.tensor([1e-3, 0.4, 0.999], dtype=rgrad.float64).unsqueeze(-1)
    np.testing.assert_allclose(d.cdf(d.icdf(u)).numpy(), u.expand(3, 3).numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", [*CONTINUOUS, "continuous bernoulli", "kumaraswamy"])
def test_entropies_are_integrals(name: str) -> None:
    case, d = CASES[name], CASES[name].make(rgrad, validate_args=False)
    try:
        made = d.entropy()
    except NotImplementedError:
        assert name in ("fisher snedecor", "von mises")
        return
    # The mean of -log p over the quantiles; in their logits the trapezoid rule is exact.
    s = np.linspace(-32, 32, 1200)[:, None]
    if case.reference is None:
        x = d.icdf(rgrad.tensor(1 / (1 + np.exp(-s)))).numpy()
    else:
        x = np.where(s < 0, case.scipy().ppf(1 / (1 + np.exp(-s))), case.scipy().isf(1 / (1 + np.exp(s))))
    logs = np.nan_to_num(d.log_prob(rgrad.tensor(x)).numpy(), neginf=0, posinf=0)
    density = 1 / (2 * np.cosh(s / 2)) ** 2
    np.testing.assert_allclose(made.numpy(), integrate.trapezoid(-logs * density, s, axis=0), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.discrete])
def test_discrete_values_can_be_counted(name: str) -> None:
    d = CASES[name].make(rgrad)
    if not d.has_enumerate_support or name == "binomial of logits":
        with pytest.raises(NotImplementedError):
            d.enumerate_support()
        return
    every, once = d.enumerate_support(), d.enumerate_support(expand=False)
    assert every.shape[1:] == d.batch_shape + d.event_shape
    assert once.shape == (every.shape[0], *[1] * len(d.batch_shape), *d.event_shape)
    logs = d.log_prob(every)
    np.testing.assert_allclose(logs.exp().sum(0).numpy(), np.ones(d.batch_shape), rtol=1e-9)
    np.testing.assert_allclose(d.entropy().numpy(), -(logs.exp() * logs).sum(0).numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_moments(name: str) -> None:
    case, d = CASES[name], CASES[name].make(rgrad)
    rgrad.manual_seed(3)
    x = d.sample((N,))
    assert x.shape == (N, *d.batch_shape, *d.event_shape)
    assert not x.requires_grad
    assert bool(d.support.check(x).all())
    if not case.moments:
        return
    x = x.double()
    mean, variance = d.mean.expand(x.shape[1:]), d.variance.expand(x.shape[1:])
    assert bool(((x.mean(0) - mean).abs() <= 5 * (variance / N).sqrt()).all())
    squares = (x - mean) ** 2
    assert bool(((squares.mean(0) - variance).abs() <= 5 * (squares.var(0) / N).sqrt() + 1e-12).all())
    np.testing.assert_allclose(d.stddev.numpy() ** 2, d.variance.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_have_the_distribution(name: str) -> None:
    d, reference = CASES[name].make(rgrad), CASES[name].scipy()
    rgrad.manual_seed(5)
    # SciPy's own distributions of angles are on another turn of the circle.
    x = d.sample((N,)).numpy() if name != "von mises" else (d.sample((N,)) - d.loc).remainder(2 * math.pi).numpy()
    if name == "von mises":
        reference, x = stats.vonmises(CASES[name].parameters["concentration"]), (x + np.pi) % (2 * np.pi) - np.pi
    for k in range(x.shape[1]):
        made = stats.kstest(reference.cdf(x)[:, k], "uniform")
        assert made.pvalue > 1e-4, k


def test_small_concentrations() -> None:
    rgrad.manual_seed(0)
    weights = rgrad.full((2000, 3), 1e-3, dtype=rgrad.float64)
    x = D.Dirichlet(weights).sample()
    # Nearly all lies in one class, each of them as often.
    assert float(x.max(-1)[0].mean()) > 0.99
    assert np.all(np.abs((x > 0.5).double().mean(0).numpy() - 1 / 3) < 0.05)
    gamma = D.Gamma(rgrad.full((100,), 1e-4), 1.0).sample()
    assert bool((gamma > 0).all())
    assert bool(D.NegativeBinomial(0.0, 0.5).sample((10,)).eq(0).all())


def test_correlations_are_uniform() -> None:
    rgrad.manual_seed(1)
    factor = D.LKJCholesky(3, rgrad.tensor(1.0, dtype=rgrad.float64)).sample((N,))
    matrix = factor @ factor.mT
    # Each correlation of an LKJ distribution has that of 2 * Beta - 1 (Lewandowski and others, 2009).
    for i, j in ((0, 1), (0, 2), (1, 2)):
        made = stats.kstest((matrix[:, i, j].numpy() + 1) / 2, stats.beta(1.5, 1.5).cdf)
        assert made.pvalue > 1e-4


@pytest.mark.parametrize("name", CASES)
def test_expanded(name: str) -> None:
    d = CASES[name].make(rgrad)
    shape = (4, *d.batch_shape)
    made = d.expand(shape)
    assert type(made) is type(d)
    assert made.batch_shape == shape
    assert made.event_shape == d.event_shape
    rgrad.manual_seed(0)
    x = made.sample((2,))
    assert x.shape == (2, *shape, *d.event_shape)
    log_prob = made.log_prob(x)
    assert log_prob.shape == (2, *shape)
    np.testing.assert_allclose(log_prob.numpy(), d.log_prob(x).numpy(), rtol=1e-12)
    if name != "correlations":
        np.testing.assert_array_equal(made.mean[2].numpy(), d.mean.numpy())
    assert repr(made).startswith(type(d).__name__)

    class Derived(type(d)):  # type: ignore[misc]
        def __init__(self) -> None:
            raise AssertionError

    derived = copy.copy(d)
    derived.__class__ = Derived
    if name != "von mises":
        with pytest.raises(NotImplementedError, match=r"custom \.expand"):
            derived.expand(shape)


@pytest.mark.parametrize("name", CASES)
def test_pickled(name: str) -> None:
    d = CASES[name].make(rgrad)
    made = pickle.loads(pickle.dumps(d))
    assert repr(made) == repr(d)
    x = d.sample()
    np.testing.assert_array_equal(made.log_prob(x).numpy(), d.log_prob(x).numpy())


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_densities(name: str) -> None:
    case = CASES[name]
    rgrad.manual_seed(7)
    d = case.make(rgrad)
    x = d.sample().double()
    if case.discrete or name.startswith(("wishart", "correlations", "uniform")):
        inputs: list[rgrad.Tensor] = []
    else:
        inputs = [x.clone().requires_grad_()]

    def log_prob(*given: rgrad.Tensor) -> rgrad.Tensor:
        at = given[: len(inputs)] or (x,)
        made: rgrad.Tensor = with_leaves(case, given[len(inputs) :], validate_args=False).log_prob(at[0])
        return made

    assert rgrad.autograd.gradcheck(log_prob, (*inputs, *leaves_of(case)))
    assert rgrad.autograd.gradgradcheck(log_prob, (*inputs, *leaves_of(case)))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_entropies(name: str) -> None:
    case = CASES[name]

    def entropy(*given: rgrad.Tensor) -> rgrad.Tensor:
        made: rgrad.Tensor = with_leaves(case, given, validate_args=False).entropy()
        return made

    try:
        made = entropy(*leaves_of(case))
    except NotImplementedError:
        return
    if made.requires_grad:
        assert rgrad.autograd.gradcheck(entropy, leaves_of(case))
        assert rgrad.autograd.gradgradcheck(entropy, leaves_of(case))


@pytest.mark.parametrize("name", BY_QUANTILE)
def test_gradients_of_samples_keep_the_quantile(name: str) -> None:
    case = CASES[name]
    rgrad.manual_seed(11)
    leaves = leaves_of(case)
    x = with_leaves(case, leaves).rsample((40,))
    made = [rgrad.autograd.grad(x[k].sum(), leaves, retain_graph=True) for k in range(40)]
    with rgrad.no_grad():
        at = x.detach()

        def quantiles(which: str, step: float) -> np.ndarray:
            """The values at which the moved distribution has the same probability below."""
            moved = case.parameters[which] + step
            if case.reference is None:
                u = case.make(rgrad).cdf(at)
                return np.asarray(getattr(D, case.kind)(**{**tensors, which: rgrad.tensor(moved)}).icdf(u).numpy())
            before, after = case.scipy(), case.reference(**(case.parameters | {which: moved}))
            points = at.numpy()
            lower = np.asarray(before.cdf(points)) < 0.5
            return np.where(lower, after.ppf(before.cdf(points)), after.isf(before.sf(points)))

        tensors = {n: rgrad.tensor(v) for n, v in case.parameters.items()}
        for k, which in enumerate(differentiable(case)):
            wanted = (quantiles(which, 1e-5) - quantiles(which, -1e-5)) / 2e-5
            got = np.stack([grads[k].numpy() for grads in made])
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.make(rgrad).has_rsample])
def test_samples_have_gradients(name: str) -> None:
    case = CASES[name]
    rgrad.manual_seed(2)
    leaves = leaves_of(case)
    x = with_leaves(case, leaves).rsample((5,))
    for grad in rgrad.autograd.grad((x * x).sum(), leaves):
        assert bool(grad.isfinite().all())
        assert bool((grad != 0).any())


def test_gradients_of_vectors() -> None:
    # The mean of x.T A x is trace(A cov) + loc.T A loc.
    rgrad.manual_seed(0)
    loc, tril = rgrad.tensor([0.5, -1.0, 2.0]).double(), rgrad.linalg.cholesky(rgrad.tensor(COVARIANCE[0]))
    loc.requires_grad_()
    tril.requires_grad_()
    x = D.MultivariateNormal(loc, scale_tril=tril).rsample((N,))
    grads = rgrad.autograd.grad(x.pow(2).sum(-1).mean(), (loc, tril))
    np.testing.assert_allclose(grads[0].numpy(), 2 * loc.detach().numpy(), atol=0.3)
    np.testing.assert_allclose(grads[1].tril().numpy(), 2 * tril.detach().numpy(), atol=0.3)


@pytest.mark.parametrize("kind", ["normal vectors", "normal vectors of one precision", "normal vectors of low rank"])
def test_forms_of_a_covariance(kind: str) -> None:
    d = CASES[kind].make(rgrad)
    covariance = d.covariance_matrix.numpy()
    np.testing.assert_allclose((d.scale_tril @ d.scale_tril.mT).numpy(), covariance, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.inv(covariance), d.precision_matrix.numpy(), rtol=1e-9)
    rgrad.manual_seed(0)
    x = d.sample((4,))
    for k in range(2):
        reference = stats.multivariate_normal(d.loc[k].numpy(), covariance[k])
        np.testing.assert_allclose(d.log_prob(x)[:, k].numpy(), reference.logpdf(x[:, k].numpy()), rtol=1e-10)
        np.testing.assert_allclose(d.entropy()[k].item(), reference.entropy(), rtol=1e-10)


def test_vectors_and_matrices_of_scipy() -> None:
    rgrad.manual_seed(0)
    wishart, dirichlet, counts = (CASES[name].make(rgrad) for name in ("wishart", "dirichlet", "multinomial"))
    x = wishart.sample((3,))
    for k in range(2):
        reference = stats.wishart(CASES["wishart"].parameters["df"][k], COVARIANCE[k])
        wanted = [reference.logpdf(v) for v in x[:, k].numpy()]
        np.testing.assert_allclose(wishart.log_prob(x)[:, k].numpy(), wanted, rtol=1e-9)
        np.testing.assert_allclose(wishart.entropy()[k].item(), reference.entropy(), rtol=1e-9)
        reference = stats.dirichlet(CASES["dirichlet"].parameters["concentration"][k])
        p = dirichlet.sample((3,))
        wanted = [reference.logpdf(v / v.sum()) for v in p[:, k].numpy()]
        np.testing.assert_allclose(dirichlet.log_prob(p)[:, k].numpy(), wanted, rtol=1e-8)
        np.testing.assert_allclose(dirichlet.entropy()[k].item(), reference.entropy(), rtol=1e-9)
        reference = stats.multinomial(4, CASES["multinomial"].parameters["probs"][k])
        n = counts.sample((3,))
        np.testing.assert_allclose(counts.log_prob(n)[:, k].numpy(), reference.logpmf(n[:, k].numpy()), rtol=1e-8)
        np.testing.assert_allclose(counts.entropy()[k].item(), reference.entropy(), rtol=1e-9)


def far(kind: str, x: float, **parameters: float) -> float:
    """The density or distribution function of one number in double precision."""
    made = {name: rgrad.tensor(v, dtype=rgrad.float64) for name, v in parameters.items()}
    found: float = getattr(D, kind)(**made).cdf(rgrad.tensor(x, dtype=rgrad.float64)).item()
    return found


def test_lower_tails_have_their_digits() -> None:
    tails = {
        ("Normal", -20.0): (far("Normal", -20.0, loc=0.0, scale=1.0), stats.norm.cdf(-20.0)),
        ("Cauchy", -1e12): (far("Cauchy", -1e12, loc=0.0, scale=1.0), 1 / (math.pi * 1e12)),
        ("Laplace", -50.0): (far("Laplace", -50.0, loc=0.0, scale=1.0), math.exp(-50.0) / 2),
        ("Exponential", 1e-20): (far("Exponential", 1e-20, rate=2.0), 2e-20),
        ("GeneralizedPareto", 1e-20): (far("GeneralizedPareto", 1e-20, loc=0.0, scale=2.0, concentration=0.3), 5e-21),
        ("ContinuousBernoulli", 1e-20): (far("ContinuousBernoulli", 1e-20, probs=0.2), 1e-20 * math.log(4) / 0.75),
    }
    for name, (made, wanted) in tails.items():
        np.testing.assert_allclose(made, wanted, rtol=1e-12, err_msg=str(name))


def test_large_logits() -> None:
    d = D.ContinuousBernoulli(logits=rgrad.tensor([-800.0, 800.0], dtype=rgrad.float64))
    x = rgrad.tensor([0.001, 0.999], dtype=rgrad.float64)
    np.testing.assert_allclose(d.cdf(x).numpy(), [1 - math.exp(-0.8), math.exp(-0.8)], rtol=1e-9)
    np.testing.assert_allclose(d.icdf(d.cdf(x)).numpy(), x.numpy(), rtol=1e-9)
    big = D.VonMises(0.0, rgrad.tensor(1e4, dtype=rgrad.float64))
    np.testing.assert_allclose(big.log_prob(rgrad.tensor(0.01)).item(), stats.vonmises(1e4).logpdf(0.01), rtol=1e-6)
    certain = D.Geometric(rgrad.tensor(1.0)).log_prob(rgrad.tensor([0.0, 1.0]))
    assert certain.tolist() == [0.0, -math.inf]
    none = rgrad.tensor(0.0, requires_grad=True)
    made = D.NegativeBinomial(none, 0.5).log_prob(rgrad.tensor([0.0]))
    assert made.item() == 0.0
    assert math.isfinite(rgrad.autograd.grad(made.sum(), none)[0].item())


MODES: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "kumaraswamy": (lambda: D.Kumaraswamy(2.0, 3.0), [math.sqrt(1 / 5)]),
    "weibull without one": (lambda: D.Weibull(1.0, rgrad.tensor([0.5, 1.0, 2.0])), [0.0, 0.0, math.sqrt(0.5)]),
    "bernoulli": (lambda: D.Bernoulli(rgrad.tensor([0.2, 0.7])), [0.0, 1.0]),
    "dirichlet": (lambda: D.Dirichlet(rgrad.tensor([2.0, 3.0])), [1 / 3, 2 / 3]),
    "corners": (lambda: D.Dirichlet(rgrad.tensor([0.2, 0.3])), [1.0, 0.0]),
    "beta": (lambda: D.Beta(3.0, 2.0), [2 / 3]),
    "fisher snedecor": (lambda: D.FisherSnedecor(4.0, 2.0), [0.25]),
    "binomial": (lambda: D.Binomial(5, rgrad.tensor([0.0, 0.5, 1.0])), [0.0, 3.0, 5.0]),
    "inverse gamma": (lambda: D.InverseGamma(1.0, 4.0), [2.0]),
}


@pytest.mark.parametrize("name", MODES)
def test_modes(name: str) -> None:
    make, wanted = MODES[name]
    np.testing.assert_allclose(make().mode.reshape(-1).tolist(), wanted, rtol=1e-6)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "scale": (lambda: D.Laplace(0.0, -1.0), ValueError, "Expected parameter scale"),
    "rate": (lambda: D.Exponential(0.0), ValueError, "Expected parameter rate"),
    "weights": (lambda: D.Dirichlet(rgrad.tensor(1.0)), ValueError, "at least one-dimensional"),
    "concentration": (lambda: D.Beta(rgrad.tensor([-1.0]), 1.0), ValueError, "concentration"),
    "both": (lambda: D.Geometric(0.5, 0.5), ValueError, "Either `probs` or `logits`"),
    "never": (lambda: D.Geometric(0.0), ValueError, "to be positive"),
    "count": (lambda: D.Multinomial(rgrad.tensor([3, 4]), rgrad.ones(2)), NotImplementedError, "inhomogeneous"),
    "counts": (lambda: D.Binomial(rgrad.tensor([1, 2]), 0.5).entropy(), NotImplementedError, "Inhomogeneous total"),
    "half": (lambda: D.Binomial(2, 0.5).log_prob(rgrad.tensor(0.5)), ValueError, "within the support"),
    "sum": (lambda: D.Multinomial(3, rgrad.ones(2)).log_prob(rgrad.tensor([2.0, 2.0])), ValueError, "support"),
    "no matrix": (lambda: D.MultivariateNormal(rgrad.zeros(2)), ValueError, "Exactly one of"),
    "no vector": (lambda: D.MultivariateNormal(rgrad.tensor(0.0), rgrad.eye(2)), ValueError, "one-dimensional"),
    "vector": (lambda: D.MultivariateNormal(rgrad.zeros(2), rgrad.ones(2)), ValueError, "two-dimensional"),
    "indefinite": (lambda: D.MultivariateNormal(rgrad.zeros(2), -rgrad.eye(2)), ValueError, "covariance_matrix"),
    "factor": (
        lambda: D.LowRankMultivariateNormal(rgrad.zeros(3), rgrad.ones(2, 1), rgrad.ones(3)),
        ValueError,
        "cov_factor must be a batch of matrices",
    ),
    "no matrices": (lambda: D.Wishart(rgrad.tensor(3.0)), AssertionError, "Exactly one of"),
    "freedom": (lambda: D.Wishart(1.0, rgrad.eye(3)), ValueError, "greater than ndim - 1"),
    "dim": (lambda: D.LKJCholesky(1), ValueError, "greater than or equal to 2"),
    "probability": (lambda: D.ContinuousBernoulli(1.5, validate_args=True), ValueError, "invalid values"),
    "text": (lambda: D.Gamma("a", 1.0), ValueError, "must all be instances of"),
    "shapes": (lambda: D.Normal(rgrad.zeros(2), rgrad.ones(3)), RuntimeError, "size"),
    "value": (lambda: D.Exponential(1.0).log_prob(rgrad.tensor(-1.0)), ValueError, "within the support"),
    "below": (lambda: D.Pareto(1.0, 1.0).log_prob(rgrad.tensor(0.5)), ValueError, "within the support"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.filterwarnings("default")
def test_few_degrees_of_freedom() -> None:
    with pytest.warns(UserWarning, match="Low df"):
        d = D.Wishart(rgrad.tensor(2.5, dtype=rgrad.float64), rgrad.eye(3, dtype=rgrad.float64))
    assert d.rsample((3,)).shape == (3, 3, 3)


@pytest.mark.parametrize("name", CASES)
def test_single_precision(name: str) -> None:
    case = CASES[name]
    made = {n: rgrad.tensor(v).float() if isinstance(v, np.ndarray) else v for n, v in case.parameters.items()}
    d = getattr(D, case.kind)(**made)
    rgrad.manual_seed(0)
    x = d.sample((3,))
    assert x.dtype in (rgrad.float32, rgrad.int64)
    log_prob = d.log_prob(x)
    assert log_prob.dtype == rgrad.float32
    wide = with_leaves(case, [rgrad.tensor(case.parameters[n]) for n in differentiable(case)], validate_args=False)
    np.testing.assert_allclose(log_prob.numpy(), wide.log_prob(x.double()).numpy(), rtol=2e-3, atol=2e-3)
