"""Transforms, constraints and combined distributions beside PyTorch: values, gradients, shapes, texts, errors."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 4))
S = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]


def t(T: Any, value: Any) -> Any:
    return T.tensor(np.asarray(value).tolist(), dtype=T.float64)


# A transform and its input.
TRANSFORMS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "abs": (lambda T, D: D.AbsTransform(), X),
    "affine": (lambda T, D: D.AffineTransform(1.0, -2.0), X),
    "affine of tensors": (lambda T, D: D.AffineTransform(t(T, X[0]), t(T, X[1]), event_dim=1), X),
    "affine of zero": (lambda T, D: D.AffineTransform(0, t(T, [1.0, 2.0, -3.0, 4.0])), X),
    "cat": (lambda T, D: D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)], 1, [1, 3]), X),
    "cat from the right": (lambda T, D: D.CatTransform([D.ExpTransform(), D.TanhTransform()], -1, [3, 1]), X),
    "stack": (lambda T, D: D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.AbsTransform()]), X),
    "stack of bijections": (lambda T, D: D.StackTransform([D.ExpTransform()] * 4, 1), X),
    "compose": (lambda T, D: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()]), X),
    "compose of events": (
        lambda T, D: D.ComposeTransform([D.StickBreakingTransform(), D.AffineTransform(0.0, 2.0, 1), D.ExpTransform()]),
        X,
    ),
    "compose of shapes": (lambda T, D: D.ComposeTransform([D.ExpTransform(), D.ReshapeTransform((4, 4), (2, 8))]), X),
    "identity": (lambda T, D: D.identity_transform, X),
    "corr_cholesky": (lambda T, D: D.CorrCholeskyTransform(), X[:, 0, :3]),
    "corr_cholesky of 1": (lambda T, D: D.CorrCholeskyTransform(), X[:, 0, :1]),
    "cdf": (lambda T, D: D.CumulativeDistributionTransform(D.Normal(t(T, 0.0), t(T, 2.0))), X),
    "exp": (lambda T, D: D.ExpTransform(), X),
    "independent": (lambda T, D: D.IndependentTransform(D.ExpTransform(), 2), X),
    "inverse": (lambda T, D: D.SigmoidTransform().inv, [0.2, 0.9]),
    "inverse of simplex": (lambda T, D: D.StickBreakingTransform().inv, S),
    "inverse of composed": (
        lambda T, D: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)]).inv,
        [2.0],
    ),
    "lower_cholesky": (lambda T, D: D.LowerCholeskyTransform(), X),
    "positive_definite": (lambda T, D: D.PositiveDefiniteTransform(), X),
    "power": (lambda T, D: D.PowerTransform(t(T, [2.0, -0.5])), [[0.5, 1.0], [2.0, 3.0]]),
    "power of a number": (lambda T, D: D.PowerTransform(2), [0.5, 3.0]),
    "reshape": (lambda T, D: D.ReshapeTransform((4, 4), (16,)), X),
    "sigmoid": (lambda T, D: D.SigmoidTransform(), [-30.0, -1.0, 0.0, 3.0, 12.0]),
    "softplus": (lambda T, D: D.SoftplusTransform(), [-10.0, 0.0, 3.0, 12.0]),
    "tanh": (lambda T, D: D.TanhTransform(), [-3.0, 0.0, 2.0]),
    "softmax": (lambda T, D: D.SoftmaxTransform(), X),
    "stick_breaking": (lambda T, D: D.StickBreakingTransform(), X),
}


def kind_of(e: Exception) -> str:
    return next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")


def told(f: Callable[[], Any]) -> Any:
    """What a call gives, in a form that can be compared, or the class of its error."""
    try:
        value = f()
    except Exception as e:
        return kind_of(e)
    if hasattr(value, "detach"):
        return value.detach().numpy()
    return tuple(value) if isinstance(value, (torch.Size, rgrad.Size)) else value


def same(wanted: Any, got: Any, what: str, rtol: float = 1e-8) -> None:
    if isinstance(wanted, np.ndarray):
        assert wanted.dtype == got.dtype, what
        assert wanted.shape == got.shape, what
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-10, err_msg=what)
    else:
        assert got == wanted, what


def facts_of_transform(T: Any, make: Callable[[Any, Any], Any], values: Any) -> dict[str, Any]:
    transform, x = make(T, T.distributions), t(T, values)
    y = transform(x)
    cached = transform.with_cache()

    def gradient(f: Callable[[Any], Any]) -> Any:
        z = x.clone().requires_grad_()
        made = f(z)
        return T.autograd.grad((made * made.cos()).sum(), z)[0]

    facts: dict[str, Callable[[], Any]] = {
        "output": lambda: y,
        "input": lambda: transform.inv(y),
        "determinant": lambda: transform.log_abs_det_jacobian(x, y),
        "determinant of the inverse": lambda: transform.inv.log_abs_det_jacobian(y, x),
        "gradient": lambda: gradient(transform),
        "gradient of the determinant": lambda: gradient(lambda z: transform.log_abs_det_jacobian(z, transform(z))),
        "text": lambda: repr(transform),
        "cached": lambda: (type(cached).__name__, cached._cache_size, repr(cached), cached.inv(cached(x)) is x),
        "equal": lambda: (transform == transform, transform == 1, transform == make(T, T.distributions)),
        "hash": lambda: isinstance(hash(transform), int),
        "inside": lambda: (transform.domain.check(x).tolist(), transform.codomain.check(y).tolist()),
    }
    for which, of in (("", transform), ("inverse ", transform.inv)):
        facts |= {
            which + "event_dim": lambda of=of: of.event_dim,
            which + "bijective": lambda of=of: of.bijective,
            which + "sign": lambda of=of: of.sign,
            which + "domain": lambda of=of: (repr(of.domain), of.domain.event_dim),
            which + "codomain": lambda of=of: (repr(of.codomain), of.codomain.event_dim),
        }
    for shape in ((), (3,), (4,), (2, 2), (2, 3), (7, 4, 4)):
        facts[f"forward {shape}"] = lambda shape=shape: transform.forward_shape(T.Size(shape))
        facts[f"back {shape}"] = lambda shape=shape: transform.inverse_shape(T.Size(shape))
    return {name: told(f) for name, f in facts.items()}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    wanted, got = (facts_of_transform(T, *TRANSFORMS[name]) for T in (torch, rgrad))
    for what, value in wanted.items():
        same(value, got[what], what)


def test_a_factor_of_several_elements() -> None:
    """On purpose: one factor of a vector counts once for each element, not once for all of them."""
    x = [0.5, 1.0, 2.0]
    found = [
        float(T.distributions.AffineTransform(0.0, t(T, 2.0), event_dim=1).log_abs_det_jacobian(t(T, x), t(T, x)))
        for T in (torch, rgrad)
    ]
    np.testing.assert_allclose(found, [np.log(2), 3 * np.log(2)])


# Combined distributions of three tensors, the second one positive and the third one between 0 and 1.
MADE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "half_normal": lambda D, a, b, p: D.HalfNormal(b),
    "half_cauchy": lambda D, a, b, p: D.HalfCauchy(b),
    "log_normal": lambda D, a, b, p: D.LogNormal(a, b),
    "logistic_normal": lambda D, a, b, p: D.LogisticNormal(a, b),
    "independent": lambda D, a, b, p: D.Independent(D.Normal(a, b), 1),
    "independent of none": lambda D, a, b, p: D.Independent(D.Bernoulli(p), 0),
    "independent classes": lambda D, a, b, p: D.Independent(D.Categorical(p), 1),
    "mixture": lambda D, a, b, p: D.MixtureSameFamily(D.Categorical(p), D.Normal(a, b)),
    "mixture of vectors": lambda D, a, b, p: D.MixtureSameFamily(
        D.Categorical(p[:, 0]), D.Independent(D.Laplace(a, b), 1)
    ),
    "mixture of truth values": lambda D, a, b, p: D.MixtureSameFamily(D.Categorical(p), D.Bernoulli(p)),
    "relaxed_bernoulli": lambda D, a, b, p: D.RelaxedBernoulli(b[0, 0], p),
    "relaxed_bernoulli of logits": lambda D, a, b, p: D.RelaxedBernoulli(b[0, 0], logits=a),
    "logit_relaxed_bernoulli": lambda D, a, b, p: D.relaxed_bernoulli.LogitRelaxedBernoulli(b[0, 0], p),
    "relaxed_categorical": lambda D, a, b, p: D.RelaxedOneHotCategorical(b[0, 0], p),
    "exp_relaxed_categorical": lambda D, a, b, p: D.relaxed_categorical.ExpRelaxedCategorical(b[0, 0], logits=a),
    "transformed": lambda D, a, b, p: D.TransformedDistribution(
        D.Normal(a, b), [D.AffineTransform(a, -b), D.ExpTransform()]
    ),
    "transformed by none": lambda D, a, b, p: D.TransformedDistribution(D.Normal(a, b), []),
    "decreasing": lambda D, a, b, p: D.TransformedDistribution(D.Uniform(a, a + b), D.AffineTransform(1.0, -b)),
    "coupled": lambda D, a, b, p: D.TransformedDistribution(
        D.Normal(a, b), [D.StickBreakingTransform(), D.ExpTransform().inv]
    ),
    "reshaped": lambda D, a, b, p: D.TransformedDistribution(
        D.Independent(D.Normal(a, b), 1), D.ReshapeTransform((3, 4), (2, 6))
    ),
}
A, B = RNG.normal(size=(3, 4)), RNG.uniform(0.3, 2, size=(3, 4))
P = RNG.uniform(0.05, 0.95, size=(3, 4))
TELLS: dict[str, Callable[[Any, Any], Any]] = {
    "log_prob": lambda d, v: d.log_prob(v),
    "cdf": lambda d, v: d.cdf(v),
    "icdf": lambda d, v: d.icdf(v * 0 + 0.3),
    "mean": lambda d, v: d.mean,
    "mode": lambda d, v: d.mode,
    "variance": lambda d, v: d.variance,
    "stddev": lambda d, v: d.stddev,
    "entropy": lambda d, v: d.entropy(),
    "perplexity": lambda d, v: d.perplexity(),
    "enumerate": lambda d, v: d.enumerate_support(),
    "expand": lambda d, v: d.expand((2, *d.batch_shape)).log_prob(v),
    "divergence": lambda d, v: (torch if type(d).__module__.startswith("torch") else rgrad).distributions.kl_divergence(
        d, d
    ),
}


def facts_of_distribution(T: Any, name: str, values: Any) -> dict[str, Any]:
    def make(grad: bool = True) -> tuple[Any, list[Any]]:
        leaves = [t(T, x).requires_grad_(grad) for x in (A, B, P)]
        return MADE[name](T.distributions, *leaves), leaves

    found: dict[str, Any] = {}
    d, _ = make()
    found["text"] = repr(d).replace("rgrad.Size", "torch.Size")
    found["shapes"] = (tuple(d.batch_shape), tuple(d.event_shape))
    found["support"] = (repr(d.support), d.support.event_dim, d.support.is_discrete)
    found["constraints"] = {k: repr(v) for k, v in d.arg_constraints.items()}
    found["flags"] = (d.has_rsample, d.has_enumerate_support)
    found["sample"] = tuple(d.sample((5,)).shape)
    wide = d.expand((2, *d.batch_shape))
    found["expanded"] = (tuple(wide.batch_shape), tuple(wide.event_shape), type(wide).__name__)
    for what, tells in TELLS.items():
        d, leaves = make()
        made: Any = None

        def call() -> Any:
            nonlocal made
            made = tells(d, t(T, values))  # noqa: B023
            return made

        found[what] = told(call)
        if made is not None and made.requires_grad and np.isfinite(found[what]).all():
            grads = T.autograd.grad((made * made.cos()).sum(), leaves, allow_unused=True)
            for k, g in enumerate(grads):
                found[f"gradient {k} of {what}"] = np.zeros(1) if g is None or not g.any() else g.numpy()
    return found


@pytest.mark.parametrize("name", MADE)
def test_combined_distributions(name: str) -> None:
    torch.manual_seed(0)
    values = MADE[name](torch.distributions, *(t(torch, x) for x in (A, B, P))).sample((2,)).numpy()
    wanted, got = (facts_of_distribution(T, name, values) for T in (torch, rgrad))
    for what, value in wanted.items():
        same(value, got[what], what, rtol=1e-6)


def test_names() -> None:
    assert set(torch.distributions.__all__) == set(rgrad.distributions.__all__)
    for module in pkgutil.iter_modules(torch.distributions.__path__):
        theirs, mine = (importlib.import_module(f"{T}.distributions.{module.name}") for T in ("torch", "rgrad"))
        assert set(theirs.__all__ if hasattr(theirs, "__all__") else ()) == set(getattr(mine, "__all__", ())), (
            module.name
        )


def test_pairs_of_divergences() -> None:
    theirs, mine = ({(p.__name__, q.__name__) for p, q in T.distributions.kl._KL_REGISTRY} for T in (torch, rgrad))
    assert theirs == mine


def test_constraints_that_have_transforms() -> None:
    for name in ("biject_to", "transform_to"):
        theirs, mine = ({kind.__name__ for kind in getattr(T.distributions, name)._registry} for T in (torch, rgrad))
        assert theirs == mine


CONSTRAINTS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda C, name=name: getattr(C, name)
        for name in torch.distributions.constraints.__all__
        if isinstance(getattr(torch.distributions.constraints, name), torch.distributions.constraints.Constraint)
    },
    "greater_than": lambda C: C.greater_than(0.5),
    "greater_than_eq": lambda C: C.greater_than_eq(0.5),
    "less_than": lambda C: C.less_than(1),
    "interval": lambda C: C.interval(0, 1),
    "half_open_interval": lambda C: C.half_open_interval(0, 1),
    "integer_interval": lambda C: C.integer_interval(0, 1),
    "multinomial": lambda C: C.multinomial(2),
    "independent": lambda C: C.independent(C.positive, 1),
    "independent of two": lambda C: C.independent(C.positive, 2),
    "cat": lambda C: C.cat([C.positive, C.real], -1),
    "stack": lambda C: C.stack([C.positive, C.real], -1),
    "mixture": lambda C: C.MixtureSameFamilyConstraint(C.real_vector),
}
VALUES: list[Any] = [
    0.0, 1.0, 0.7, -1.0, float("nan"), [0.0, 1.0], [0.5, 0.5], [2.0, -1.0], [1.0, 1.0], [float("nan"), 3.0],
    [[1.0, 0.0], [0.6, 0.8]], [[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]],
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]],
]  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name: str) -> None:
    mine, theirs = (CONSTRAINTS[name](T.distributions.constraints) for T in (rgrad, torch))
    assert repr(mine) == repr(theirs)
    for what in ("is_discrete", "event_dim"):
        assert told(lambda: getattr(mine, what)) == told(lambda: getattr(theirs, what))  # noqa: B023
    for value in VALUES:
        wanted, got = (told(lambda: c.check(t(T, value)).tolist()) for c, T in ((theirs, torch), (mine, rgrad)))  # noqa: B023
        assert got == wanted, value
