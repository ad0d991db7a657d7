"""Distributions that are made of others: transformed, independent, mixed, relaxed and halved ones."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import rgrad
from rgrad import Tensor
from rgrad import distributions as D
from rgrad.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from rgrad.distributions.relaxed_categorical import ExpRelaxedCategorical

A, B = np.array([0.3, -0.5]), np.array([0.7, 1.6])


class Case(NamedTuple):
    """A distribution of two parameters with two elements each, of which the second is positive."""

    make: Callable[[Tensor, Tensor], Any]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    text: str
    # How SciPy makes the first, second, ... of the batch.
    scipy: Callable[[float, float], Any] | None = None
    support: tuple[float, float] | None = None
    has_rsample: bool = True


def loglogistic(a: float, b: float) -> Any:
    """exp(a + b * logit(u)) for a uniform u."""
    return stats.fisk(1 / b, scale=math.exp(a))


CASES = {
    "half_normal": Case(
        lambda a, b: D.HalfNormal(b), ((2,), ()), "HalfNormal()", lambda a, b: stats.halfnorm(scale=b), (0, 12)
    ),
    "half_cauchy": Case(
        lambda a, b: D.HalfCauchy(b), ((2,), ()), "HalfCauchy()", lambda a, b: stats.halfcauchy(scale=b)
    ),
    "log_normal": Case(
        D.LogNormal, ((2,), ()), "LogNormal()", lambda a, b: stats.lognorm(b, scale=math.exp(a)), (1e-9, 400)
    ),
    "log_logistic": Case(
        lambda a, b: D.TransformedDistribution(
            D.Uniform(a.new_zeros(2), 1), [D.SigmoidTransform().inv, D.AffineTransform(a, b), D.ExpTransform()]
        ),
        ((2,), ()),
        "TransformedDistribution()",
        loglogistic,
    ),
    "decreasing": Case(
        lambda a, b: D.TransformedDistribution(D.Normal(a, b), D.AffineTransform(1.0, -2.0)),
        ((2,), ()),
        "TransformedDistribution()",
        lambda a, b: stats.norm(1 - 2 * a, 2 * b),
        (-20, 20),
    ),
    "mixture": Case(
        lambda a, b: D.MixtureSameFamily(D.Categorical(b), D.Normal(a, b)),
        ((), ()),
        "MixtureSameFamily(\n  Categorical(probs: torch.Size([2]), logits: torch.Size([2])),\n"
        "  Normal(loc: torch.Size([2]), scale: torch.Size([2])))",
        None,
        (-12, 12),
        False,
    ),
    "mixture of vectors": Case(
        lambda a, b: D.MixtureSameFamily(
            D.Categorical(b), D.Independent(D.Normal(a.expand(3, 2, 2), b.expand(3, 2, 2)), 1)
        ),
        ((3,), (2,)),
        "MixtureSameFamily(\n  Categorical(probs: torch.Size([2]), logits: torch.Size([2])),\n"
        "  Independent(Normal(loc: torch.Size([3, 2, 2]), scale: torch.Size([3, 2, 2])), 1))",
        None,
        None,
        False,
    ),
    "independent": Case(
        lambda a, b: D.Independent(D.Normal(a, b), 1),
        ((), (2,)),
        "Independent(Normal(loc: torch.Size([2]), scale: torch.Size([2])), 1)",
    ),
    "logistic_normal": Case(D.LogisticNormal, ((), (3,)), "LogisticNormal()"),
    "logit_relaxed_bernoulli": Case(
        lambda a, b: LogitRelaxedBernoulli(0.7, logits=a + b),
        ((2,), ()),
        "LogitRelaxedBernoulli(logits: torch.Size([2]))",
        lambda a, b: stats.logistic((a + b) / 0.7, 1 / 0.7),
        (-40, 40),
        False,
    ),
    "relaxed_bernoulli": Case(
        lambda a, b: D.RelaxedBernoulli(a.new_tensor(2.2), logits=a + b),
        ((2,), ()),
        "RelaxedBernoulli()",
        None,
        (1e-9, 1 - 1e-9),
    ),
    "exp_relaxed_categorical": Case(
        lambda a, b: ExpRelaxedCategorical(b[0], logits=a), ((), (2,)), "ExpRelaxedCategorical()"
    ),
    "relaxed_categorical": Case(
        lambda a, b: D.RelaxedOneHotCategorical(1.5, b), ((), (2,)), "RelaxedOneHotCategorical()"
    ),
    "coupled": Case(
        lambda a, b: D.TransformedDistribution(
            D.Independent(D.Normal(a, b), 1), [D.ReshapeTransform((2,), (2, 1)), D.TanhTransform()]
        ),
        ((), (2, 1)),
        "TransformedDistribution()",
    ),
}
SCALAR = [name for name, case in CASES.items() if case.scipy]
BOUNDED = [name for name, case in CASES.items() if case.support]
CLASSES = {name: case for name, case in CASES.items() if case.has_rsample}


def made(name: str, grad: bool = False) -> Any:
    a, b = (rgrad.tensor(x, requires_grad=grad) for x in (A, B))
    return CASES[name].make(a, b)


def draw(d: Any, *shape: int) -> Tensor:
    rgrad.manual_seed(3)
    drawn: Tensor = d.sample(shape)
    return drawn


@pytest.mark.parametrize("name", CASES)
def test_shapes_texts_and_copies(name: str) -> None:
    case, d = CASES[name], made(name)
    batch, event = case.shapes
    # A parameter that is made of the other one is shown from then on.
    assert repr(d).replace("rgrad.Size", "torch.Size") == case.text
    x = draw(d, 4)
    for v in (d, pickle.loads(pickle.dumps(d))):
        assert (v.batch_shape, v.event_shape) == case.shapes
        np.testing.assert_array_equal(v.log_prob(x).numpy(), d.log_prob(x).numpy())
    assert x.shape == (4, *batch, *event)
    assert d.log_prob(x).shape == (4, *batch)
    assert d.support.check(x).all()
    assert d.has_rsample is case.has_rsample
    wide = d.expand((5, *batch))
    assert type(wide) is type(d)
    assert (wide.batch_shape, wide.event_shape) == ((5, *batch), event)
    y = draw(wide, 2)
    assert y.shape == (2, 5, *batch, *event)
    assert len({repr(v) for v in y.reshape(10, -1)}) == 10
    np.testing.assert_allclose(wide.log_prob(y).numpy(), d.log_prob(y).numpy(), rtol=1e-12)

    class Own(type(d)):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

    own = Own()
    own.__dict__.update(d.__dict__)
    with pytest.raises(NotImplementedError, match=r"must also define a custom .expand\(\) method"):
        own.expand((5, *batch))


@pytest.mark.parametrize("name", SCALAR)
def test_densities_are_those_of_scipy(name: str) -> None:
    d = made(name)
    x = draw(d, 50)
    wanted = [CASES[name].scipy(a, b) for a, b in zip(A, B, strict=True)]  # type: ignore[misc]
    for k, of_scipy in enumerate(wanted):
        np.testing.assert_allclose(d.log_prob(x)[:, k].numpy(), of_scipy.logpdf(x[:, k].numpy()), rtol=1e-9, atol=1e-9)
        for what in ("mean", "variance"):
            try:
                moment = getattr(d, what)
            except NotImplementedError:
                continue
            there = of_scipy.stats("m" if what == "mean" else "v")
            np.testing.assert_allclose(moment[k].item(), there, rtol=1e-9)
    if name == "logit_relaxed_bernoulli":
        return
    p = rgrad.tensor([[1e-9] * 2, [0.2] * 2, [0.5] * 2, [0.93] * 2], dtype=rgrad.float64)
    for k, of_scipy in enumerate(wanted):
        np.testing.assert_allclose(d.cdf(x)[:, k].numpy(), of_scipy.cdf(x[:, k].numpy()), rtol=1e-9)
        np.testing.assert_allclose(d.icdf(p)[:, k].numpy(), of_scipy.ppf(p[:, k].numpy()), rtol=1e-6)
    np.testing.assert_allclose(d.cdf(d.icdf(p)).numpy(), p.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", BOUNDED)
def test_densities_integrate_to_one(name: str) -> None:
    d, (low, high) = made(name), CASES[name].support or (0, 0)
    x = rgrad.linspace(low, high, 400_001, dtype=rgrad.float64)[(slice(None), *[None] * len(d.batch_shape))]
    density = d.log_prob(x).exp()
    np.testing.assert_allclose(rgrad.trapezoid(density, x[:, 0] if x.dim() > 1 else x, dim=0).numpy(), 1, atol=2e-3)
    try:
        entropy = d.entropy()
    except NotImplementedError:
        return
    part = rgrad.special.entr(density)
    numeric = rgrad.trapezoid(part, x[:, 0] if x.dim() > 1 else x, dim=0)
    np.testing.assert_allclose(entropy.numpy(), numeric.numpy(), atol=5e-3)


@pytest.mark.parametrize("name", SCALAR)
def test_samples_have_the_distribution(name: str) -> None:
    x = draw(made(name), 20_000).numpy()
    for k, (a, b) in enumerate(zip(A, B, strict=True)):
        assert stats.kstest(x[:, k], CASES[name].scipy(a, b).cdf).pvalue > 1e-4  # type: ignore[misc]


@pytest.mark.parametrize("name", ["mixture", "mixture of vectors", "independent", "half_normal"])
def test_samples_have_the_moments(name: str) -> None:
    d = made(name)
    n = 20_000
    x = draw(d, n)
    error = (d.variance / n).sqrt()
    assert ((x.mean(0) - d.mean).abs() < 5 * error).all()
    np.testing.assert_allclose(x.var(0).numpy(), d.variance.numpy(), rtol=0.08)


def test_relaxed_classes_have_the_probabilities() -> None:
    """The largest element is that of a class as often as the class's probability says, at every temperature."""
    p = rgrad.tensor([0.2, 0.5, 0.3])
    for t in (0.1, 3.0):
        chosen = draw(D.RelaxedOneHotCategorical(t, p), 20_000).argmax(-1)
        found = rgrad.bincount(chosen, minlength=3) / 20_000
        assert ((found - p).abs() < 5 * (p * (1 - p) / 20_000).sqrt()).all()
        ones = (draw(D.RelaxedBernoulli(t, p), 20_000) > 0.5).float().mean(0)
        assert ((ones - p).abs() < 5 * (p * (1 - p) / 20_000).sqrt()).all()


def test_density_of_two_relaxed_classes() -> None:
    """On the line of the first probability it integrates to 1."""
    d = made("relaxed_categorical")
    x = rgrad.linspace(1e-6, 1 - 1e-6, 200_001, dtype=rgrad.float64)
    density = d.log_prob(rgrad.stack([x, 1 - x], -1)).exp()
    assert abs(rgrad.trapezoid(density, x) - 1) < 2e-3
    d = made("logistic_normal")
    d = D.LogisticNormal(d.loc[:1], d.scale[:1])
    density = d.log_prob(rgrad.stack([x, 1 - x], -1)).exp()
    assert abs(rgrad.trapezoid(density, x) - 1) < 2e-3


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_densities(name: str) -> None:
    x = draw(made(name), 3)
    leaves = [rgrad.tensor(v, requires_grad=True) for v in (A, B)]

    def f(a: Tensor, b: Tensor) -> Tensor:
        # Parameters are never used alone by some.
        return CASES[name].make(a, b).log_prob(x) + 0 * (a.sum() + b.sum())  # type: ignore[no-any-return]

    assert rgrad.autograd.gradcheck(f, leaves)
    assert rgrad.autograd.gradgradcheck(f, leaves)


@pytest.mark.parametrize("name", CLASSES)
def test_gradients_of_samples(name: str) -> None:
    leaves = [rgrad.tensor(v, requires_grad=True) for v in (A, B)]

    def f(a: Tensor, b: Tensor) -> Tensor:
        rgrad.manual_seed(11)
        return CASES[name].make(a, b).rsample((2,)) + 0 * (a.sum() + b.sum())  # type: ignore[no-any-return]

    assert rgrad.autograd.gradcheck(f, leaves)
    assert not made(name, grad=True).sample().requires_grad


def test_caches_give_samples_their_densities() -> None:
    """A sample that is rounded to 1 has no inverse but in the cache."""
    rgrad.manual_seed(0)
    base = D.Normal(rgrad.zeros(50), 20.0)
    plain = D.TransformedDistribution(base, [D.TanhTransform()], validate_args=False)
    cached = D.TransformedDistribution(base, [D.TanhTransform(cache_size=1)], validate_args=False)
    assert not plain.log_prob(plain.rsample()).isfinite().all()
    assert cached.log_prob(cached.rsample()).isfinite().all()


def test_the_batch_of_the_base_is_expanded() -> None:
    base = D.Normal(rgrad.tensor(0.0), 1.0)
    d = D.TransformedDistribution(base, [D.AffineTransform(rgrad.zeros(3), rgrad.ones(3))])
    assert d.base_dist.batch_shape == d.batch_shape == (3,)
    assert len(set(draw(d).tolist())) == 3
    d = D.TransformedDistribution(base.expand((4,)), [D.StickBreakingTransform()])
    assert (d.batch_shape, d.event_shape, d.base_dist.event_shape) == ((), (5,), (4,))
    assert D.TransformedDistribution(base, []).support is base.support


def test_mixtures() -> None:
    """Weights of one batch for components of several; and components that are not continuous."""
    logits = rgrad.tensor([0.2, -0.3, 0.9], dtype=rgrad.float64)
    parts = D.Normal(rgrad.arange(12.0, dtype=rgrad.float64).reshape(2, 2, 3), 1.0)
    d = D.MixtureSameFamily(D.Categorical(logits=logits), parts)
    x = draw(d, 3000)
    assert x.shape == (3000, 2, 2)
    weights = logits.softmax(-1)
    np.testing.assert_allclose(d.mean.numpy(), (parts.loc * weights).sum(-1).numpy())
    np.testing.assert_allclose(x.mean(0).numpy(), d.mean.numpy(), atol=0.1)
    density = (parts.log_prob(x[0].unsqueeze(-1)).exp() * weights).sum(-1).log()
    np.testing.assert_allclose(d.log_prob(x[0]).numpy(), density.numpy(), rtol=1e-10)
    np.testing.assert_allclose(d.cdf(x[0]).numpy(), (parts.cdf(x[0].unsqueeze(-1)) * weights).sum(-1).numpy())
    of_many = D.MixtureSameFamily(
        D.Categorical(logits=logits.expand(2, 2, 3)), D.Independent(parts.expand((4, 2, 2, 3)), 0)
    )
    assert of_many.mean.shape == (4, 2, 2)
    counts = D.MixtureSameFamily(D.Categorical(logits=logits), D.Poisson(rgrad.tensor([1.0, 5.0, 20.0])))
    assert counts.support.is_discrete
    total = counts.log_prob(rgrad.arange(60.0)).exp().sum()
    assert abs(total.item() - 1) < 1e-4


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "independent": (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ValueError, "Expected reinterpreted_batch_ndims <="),
    "transform": (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3), ValueError, "must be a Transform or list"),  # type: ignore[arg-type]
    "transforms": (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]), ValueError, "or a list of Transforms"),  # type: ignore[list-item]
    "few": (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [D.SoftmaxTransform()]),
        ValueError,
        "at least 1, but got",
    ),
    "weights": (
        lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)),
        ValueError,
        "The Mixture distribution",
    ),  # type: ignore[arg-type]
    "components": (
        lambda: D.MixtureSameFamily(D.Categorical(rgrad.ones(2)), 1),
        ValueError,
        "The Component distribution",
    ),  # type: ignore[arg-type]
    "number": (
        lambda: D.MixtureSameFamily(D.Categorical(rgrad.ones(2)), D.Normal(rgrad.zeros(3), 1)),
        ValueError,
        "does not equal",
    ),
    "batch": (
        lambda: D.MixtureSameFamily(D.Categorical(rgrad.ones(3, 2)), D.Normal(rgrad.zeros(2, 2), 1)),
        ValueError,
        "not compatible",
    ),
    "scale": (lambda: D.HalfNormal(-1.0), ValueError, "Expected parameter scale"),
    "both": (lambda: D.RelaxedBernoulli(1.0, 0.5, 0.5), ValueError, "but not both"),
    "probability": (lambda: D.RelaxedBernoulli(1.0, 1.5), ValueError, "Expected parameter probs"),
    "value": (lambda: D.LogNormal(0.0, 1.0).log_prob(rgrad.tensor(-1.0)), ValueError, "within the support"),
    "negative": (lambda: D.HalfNormal(1.0).cdf(rgrad.tensor(-1.0)), ValueError, "within the support"),
    "simplex": (
        lambda: D.RelaxedOneHotCategorical(1.0, rgrad.ones(2)).log_prob(rgrad.ones(2)),
        ValueError,
        "support .Simplex",
    ),
    "shape": (
        lambda: D.LogisticNormal(rgrad.zeros(3), 1.0).log_prob(rgrad.ones(3) / 3),
        ValueError,
        "must match event_shape",
    ),
    "no mode": (lambda: made("mixture").mode, NotImplementedError, "does not implement mode"),
    "counted": (
        lambda: D.Independent(D.Bernoulli(rgrad.ones(2)), 1).enumerate_support(),
        NotImplementedError,
        "cartesian product",
    ),
    "divergence": (
        lambda: D.kl_divergence(D.LogNormal(0.0, 1.0), D.HalfNormal(1.0)),
        NotImplementedError,
        "different transforms",
    ),
    "dimensions": (
        lambda: D.kl_divergence(
            D.Independent(D.Normal(rgrad.zeros(2), 1), 1), D.Independent(D.Normal(rgrad.zeros(2), 1), 0)
        ),
        NotImplementedError,
        "different reinterpreted_batch_ndims",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        make()


def test_values_outside_without_checks() -> None:
    for d in (D.HalfNormal(1.0, validate_args=False), D.HalfCauchy(1.0, validate_args=False)):
        assert d.log_prob(rgrad.tensor(-1.0)) == -math.inf
        assert d.log_prob(1.0).isfinite()


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("independent", lambda a, b: D.Independent(D.Normal(a, b), 1)),
        ("half_normal", lambda a, b: D.HalfNormal(b)),
        ("log_normal", D.LogNormal),
        ("logistic_normal", D.LogisticNormal),
    ],
)
def test_divergences_are_those_of_what_they_are_made_of(name: str, wrap: Callable[[Tensor, Tensor], Any]) -> None:
    a, b = rgrad.tensor(A), rgrad.tensor(B)
    p, q = wrap(a, b), wrap(a + 0.4, b * 1.3)
    shift = 0.0 if name == "half_normal" else 0.4
    wanted = D.kl_divergence(D.Normal(a, b), D.Normal(a + shift, b * 1.3))
    wanted = wanted.sum(-1) if p.event_shape else wanted
    np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), wanted.numpy(), rtol=1e-12)
    x = draw(p, 20_000)
    by_samples = p.log_prob(x) - q.log_prob(x)
    error = by_samples.std(0) / math.sqrt(20_000)
    assert ((by_samples.mean(0) - wanted).abs() < 5 * error).all()


def test_under_vmap() -> None:
    loc, x = rgrad.zeros(3, 2, dtype=rgrad.float64) + 0.1, rgrad.arange(6.0, dtype=rgrad.float64).reshape(3, 2) + 1
    for make in (D.LogNormal, lambda a, b: D.Independent(D.LogNormal(a, b), 1)):
        got = rgrad.func.vmap(lambda m, v: make(m, 1.5).log_prob(v))(loc, x)  # noqa: B023
        np.testing.assert_allclose(got.numpy(), make(loc, 1.5).log_prob(x).numpy(), rtol=1e-12)
