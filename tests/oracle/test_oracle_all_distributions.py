"""Every distribution of the table beside PyTorch: what it tells, gradients, all divergences, names, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from distribution_table import CASES  # noqa: E402

pytestmark = pytest.mark.oracle

# Where PyTorch's number is wrong or missing, and rgrad's is tested against SciPy or by itself (docs/differences.md).
DIFFERENT = {
    ("kumaraswamy", "mode"),  # nan for all parameters
    ("generalized pareto", "log_prob"),  # PyTorch compares a float64 concentration with a float32 zero
    ("generalized pareto", "cdf"),
    ("generalized pareto", "expanded"),
    ("multinomial", "expanded entropy"),  # an attribute is missing in PyTorch
    ("geometric", "param_shape"),
    ("geometric of logits", "param_shape"),
}
# The Bessel functions of PyTorch's density are polynomials of single precision.
TOLERANCE = {"von mises": 1e-3}
ATTRIBUTES = (
    "mean",
    "mode",
    "variance",
    "stddev",
    "probs",
    "logits",
    "param_shape",
    "covariance_matrix",
    "precision_matrix",
    "scale_tril",
    "df",
    "batch_shape",
    "event_shape",
    "has_rsample",
    "has_enumerate_support",
)
TELLS: dict[str, Callable[[Any, Any], Any]] = {
    "log_prob": lambda d, x: d.log_prob(x),
    "entropy": lambda d, x: d.entropy(),
    "perplexity": lambda d, x: d.perplexity(),
    "cdf": lambda d, x: d.cdf(x),
    "icdf": lambda d, x: d.icdf(x * 0 + 0.3),
    "enumerate": lambda d, x: d.enumerate_support(),
    "enumerate once": lambda d, x: d.enumerate_support(expand=False),
    "expanded": lambda d, x: d.expand((2, *d.batch_shape)).log_prob(x),
    "expanded entropy": lambda d, x: d.expand((2, *d.batch_shape)).entropy(),
    "family": lambda d, x: d._log_normalizer(*d._natural_params),
    "support": lambda d, x: (d.support.is_discrete, d.support.event_dim, bool(d.support.check(x).all())),
    "samples": lambda d, x: (tuple(d.sample((2, 1)).shape), str(d.sample().dtype).split(".")[1]),
    "repr": lambda d, x: repr(d).replace("torch.", "").replace("rgrad.", ""),
}
TELLS |= {name: (lambda d, x, name=name: getattr(d, name)) for name in ATTRIBUTES}


def told(library: Any, name: str, what: str, value: np.ndarray) -> Any:
    """A number with the gradients of all parameters, or the class of an error, or what else there is."""
    case = CASES[name]
    made = {
        n: library.tensor(v, requires_grad=n != "total_count") if isinstance(v, np.ndarray) else v
        for n, v in case.parameters.items()
    }
    d = getattr(library.distributions, case.kind)(**made)
    try:
        found = TELLS[what](d, library.tensor(value))
    except (NotImplementedError, AttributeError) as error:
        return type(error)
    if not isinstance(found, library.Tensor):
        return tuple(found) if isinstance(found, library.Size) else found
    grads = []
    if found.requires_grad:
        leaves = [v for v in made.values() if isinstance(v, library.Tensor) and v.requires_grad]
        weights = library.linspace(0.5, 1.5, found.numel(), dtype=found.dtype).reshape(found.shape)
        try:
            grads = library.autograd.grad((found * weights).sum(), leaves, allow_unused=True)
        except NotImplementedError:
            # PyTorch has no derivative of the incomplete gamma function by its order.
            assert library is torch
            assert what == "cdf"
    return [found.detach().numpy(), *[np.zeros(1) if g is None else g.numpy() for g in grads]]


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", CASES)
def test_what_a_distribution_tells(name: str) -> None:
    torch.manual_seed(0)
    value = CASES[name].make(torch).sample((2,)).numpy()
    for what in TELLS:
        check(name, what, value)


def check(name: str, what: str, value: np.ndarray) -> None:
    if (name, what) in DIFFERENT:
        # The entry goes when PyTorch's number is right.
        try:
            wanted = told(torch, name, what, value)
            assert isinstance(wanted, type) or np.isnan(wanted[0]).any()
        except RuntimeError:
            pass
        return
    wanted, got = told(torch, name, what, value), told(rgrad, name, what, value)
    if not isinstance(wanted, list):
        assert wanted == got, what
        return
    assert wanted[0].dtype == got[0].dtype, what
    if len(wanted) == 1:
        got = got[:1]
    for w, g in zip(wanted, got, strict=True):
        assert w.shape == g.shape, what
        if name.endswith("of a factor") and w.ndim >= 2:
            # PyTorch's gradient has numbers in the triangle that is not read (docs/differences.md).
            w, g = np.tril(w), np.tril(g)
        np.testing.assert_allclose(g, w, rtol=TOLERANCE.get(name, 1e-6), atol=1e-8, err_msg=what)


def divergence(library: Any, names: tuple[str, str]) -> Any:
    p, q = CASES[names[0]], CASES[names[1]]
    leaves = {
        n: library.tensor(v, requires_grad=n != "total_count") if isinstance(v, np.ndarray) else v
        for n, v in p.parameters.items()
    }
    first = getattr(library.distributions, p.kind)(**leaves)
    try:
        made = library.distributions.kl_divergence(first, q.make(library, other=True))
    except (NotImplementedError, ValueError, RuntimeError) as error:
        return type(error)
    wanted = [v for v in leaves.values() if isinstance(v, library.Tensor) and v.requires_grad]
    found = made.detach().numpy()
    if not made.requires_grad or not np.isfinite(found).all():
        return [found]
    grads = library.autograd.grad(made.sum(), wanted, allow_unused=True)
    return [found, *[np.zeros(1) if g is None else g.numpy() for g in grads]]


# A batch of 3 or of 2; divergences of different sizes are errors.
@pytest.mark.parametrize("name", CASES)
def test_divergences(name: str) -> None:
    for other in CASES:
        if "wishart" in name and "wishart" in other:
            continue  # PyTorch adds up the batch (docs/differences.md).
        wanted, got = divergence(torch, (name, other)), divergence(rgrad, (name, other))
        if isinstance(wanted, type) or isinstance(got, type):
            assert wanted is got, other
            continue
        for w, g in zip(wanted, got, strict=True):
            assert w.shape == g.shape, other
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9, err_msg=other)


def test_every_pair_is_there() -> None:
    def names(library: Any) -> set[tuple[str, str]]:
        return {(p.__name__, q.__name__) for p, q in library.distributions.kl._KL_REGISTRY if p.__module__ != __name__}

    known = {name for name in torch.distributions.__all__ if hasattr(rgrad.distributions, name)}
    wanted = {(p, q) for p, q in names(torch) if p in known and q in known}
    assert wanted <= names(rgrad)
    assert len(wanted) >= 80


def unit(library: Any, low: float, high: float) -> Any:
    """A uniform distribution of double precision."""
    return library.distributions.Uniform(
        library.tensor(low, dtype=library.float64), library.tensor(high, dtype=library.float64)
    )


def test_supports_that_touch() -> None:
    # PyTorch takes ends that are the same for ends that lie outside.
    for library, wanted in ((torch, math.inf), (rgrad, None)):
        p = library.distributions.ContinuousBernoulli(library.tensor(0.3, dtype=library.float64))
        made = library.distributions.kl_divergence(p, unit(library, 0.0, 1.0)).item()
        back = library.distributions.kl_divergence(unit(library, 0.0, 1.0), p).item()
        if wanted is not None:
            assert made == back == wanted
        else:
            np.testing.assert_allclose(made, -p.entropy().item(), rtol=1e-12)
            x = library.linspace(0, 1, 20001, dtype=library.float64)
            np.testing.assert_allclose(back, -library.trapezoid(p.log_prob(x), x).item(), rtol=1e-6)


def test_samples_of_correlations() -> None:
    # PyTorch's samples of three and more rows are not those of its density: the length of a row has another law.
    torch.manual_seed(0)
    rgrad.manual_seed(0)
    spread = []
    for library in (torch, rgrad):
        factor = library.distributions.LKJCholesky(3, 1.0).sample((20000,))
        spread.append(float((factor @ factor.mT)[:, 0, 2].square().mean()))
    assert spread[1] == pytest.approx(0.25, abs=0.01)
    assert spread[0] > 0.27


REFUSED_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "scale": lambda D: D.Laplace(0.0, -1.0),
    "rate": lambda D: D.Exponential(0.0),
    "beta": lambda D: D.Beta(-1.0, 1.0),
    "odds": lambda D: D.Geometric(0.5, 0.5),
    "no odds": lambda D: D.Binomial(3),
    "never": lambda D: D.Geometric(0.0),
    "dim": lambda D: D.LKJCholesky(1),
    "probability": lambda D: D.ContinuousBernoulli(1.5, validate_args=True),
    "infinite": lambda D: D.NegativeBinomial(2.0, 1.0),
    "text": lambda D: D.Gamma("a", 1.0),
    "df": lambda D: D.StudentT(-1.0),
    "poisson": lambda D: D.Poisson(-1.0),
}
REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "weights": lambda T, D: D.Dirichlet(T.tensor(1.0)),
    "value": lambda T, D: D.Exponential(1.0).log_prob(T.tensor(-1.0)),
    "shape": lambda T, D: D.Dirichlet(T.ones(3)).log_prob(T.ones(2)),
    "batch": lambda T, D: D.Normal(T.zeros(3), 1.0).log_prob(T.zeros(2)),
    "counts": lambda T, D: D.Binomial(T.tensor([1.0, 2.0]), T.tensor(0.5)).entropy(),
    "draws": lambda T, D: D.Multinomial(T.tensor([3, 4]), T.ones(2)),
    "no matrix": lambda T, D: D.MultivariateNormal(T.zeros(2)),
    "no vector": lambda T, D: D.MultivariateNormal(T.tensor(0.0), T.eye(2)),
    "vector": lambda T, D: D.MultivariateNormal(T.zeros(2), T.ones(2)),
    "indefinite": lambda T, D: D.MultivariateNormal(T.zeros(2), -T.eye(2)),
    "factor": lambda T, D: D.LowRankMultivariateNormal(T.zeros(3), T.ones(2, 1), T.ones(3)),
    "diagonal": lambda T, D: D.LowRankMultivariateNormal(T.zeros(3), T.ones(3, 1), T.ones(2)),
    "batches": lambda T, D: D.LowRankMultivariateNormal(T.zeros(2, 3), T.ones(3, 3, 1), T.ones(3)),
    "two matrices": lambda T, D: D.Wishart(T.tensor(3.0), T.eye(2), T.eye(2)),
    "freedom": lambda T, D: D.Wishart(T.tensor(1.0), T.eye(3)),
    "sizes": lambda T, D: D.kl_divergence(
        D.MultivariateNormal(T.zeros(2), T.eye(2)), D.MultivariateNormal(T.zeros(3), T.eye(3))
    ),
    "trials": lambda T, D: D.kl_divergence(D.Binomial(1, T.tensor(0.5)), D.Binomial(2, T.tensor(0.5))),
}
REFUSED |= {name: (lambda T, D, call=call: call(D)) for name, call in REFUSED_NUMBERS.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    found = []
    for library in (torch, rgrad):
        try:
            REFUSED[name](library, library.distributions)
        except Exception as error:
            found.append((type(error).__name__, str(error).replace("torch.", "").replace("rgrad.", "")))
    assert len(found) == 2
    assert found[0][0] == found[1][0]
    assert found[0][1].split()[:3] == found[1][1].split()[:3]
