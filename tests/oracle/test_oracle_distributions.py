"""Distributions beside PyTorch: densities, moments, divergences, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 4)), RNG.uniform(0.2, 2, size=(3, 4))
P = RNG.uniform(0.05, 0.95, size=(3, 4))
CLASSES = np.array([[0, 1, 3], [2, 2, 0]])

MAKE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "normal": lambda T, a, b, p: T.distributions.Normal(a, b),
    "uniform": lambda T, a, b, p: T.distributions.Uniform(a, a + b),
    "bernoulli": lambda T, a, b, p: T.distributions.Bernoulli(p),
    "bernoulli logits": lambda T, a, b, p: T.distributions.Bernoulli(logits=a),
    "categorical": lambda T, a, b, p: T.distributions.Categorical(p),
    "categorical logits": lambda T, a, b, p: T.distributions.Categorical(logits=a),
}
VALUES = {
    "normal": RNG.normal(size=(2, 3, 4)),
    "uniform": A + 0.4 * B,
    "bernoulli": (P > 0.5).astype(float),
    "bernoulli logits": (P > 0.5).astype(float),
    "categorical": CLASSES,
    "categorical logits": CLASSES,
}
TELLS: dict[str, Callable[[Any, Any], Any]] = {
    "log_prob": lambda d, v: d.log_prob(v),
    "mean": lambda d, v: d.mean,
    "mode": lambda d, v: d.mode,
    "variance": lambda d, v: d.variance,
    "stddev": lambda d, v: d.stddev,
    "entropy": lambda d, v: d.entropy(),
    "perplexity": lambda d, v: d.perplexity(),
    "cdf": lambda d, v: d.cdf(v),
    "icdf": lambda d, v: d.icdf(v * 0 + 0.3),
    "enumerate": lambda d, v: d.enumerate_support(),
    "enumerate once": lambda d, v: d.enumerate_support(expand=False),
    "probs": lambda d, v: d.probs,
    "logits": lambda d, v: d.logits,
    "expand": lambda d, v: d.expand((2, *d.batch_shape)).entropy(),
}


def told(T: Any, name: str, tells: Callable[[Any, Any], Any]) -> Any:
    leaves = [T.tensor(x, requires_grad=True) for x in (A, B, P)]
    try:
        made = tells(MAKE[name](T, *leaves), T.tensor(VALUES[name]))
    except (NotImplementedError, AttributeError) as e:
        return type(e)
    grads = [np.zeros(1)] * 3
    if made.requires_grad:
        found = T.autograd.grad((made * made.cos()).sum(), leaves, allow_unused=True)
        grads = [np.zeros(1) if g is None else g.numpy() for g in found]
    return [made.detach().numpy(), *grads]


@pytest.mark.parametrize("what", TELLS)
@pytest.mark.parametrize("name", MAKE)
def test_what_a_distribution_tells(name: str, what: str) -> None:
    wanted, got = (told(T, name, TELLS[what]) for T in (torch, rgrad))
    if isinstance(wanted, type):
        assert wanted is got
        return
    for w, g in zip(wanted, got, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-9)
    assert wanted[0].shape == got[0].shape


PAIRS = [
    *[(a, b) for a in ("normal", "uniform") for b in ("normal", "uniform")],
    *[(a, b) for a in ("bernoulli", "bernoulli logits") for b in ("bernoulli", "bernoulli logits")],
    *[(a, b) for a in ("categorical", "categorical logits") for b in ("categorical", "categorical logits")],
    ("normal", "categorical"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_divergences(pair: tuple[str, str]) -> None:
    found = []
    for T in (torch, rgrad):
        leaves = [T.tensor(x, requires_grad=True) for x in (A, B, P)]
        first = MAKE[pair[0]](T, *leaves)
        second = MAKE[pair[1]](T, *(T.tensor(x) for x in (A - 0.3, B + 1, P[::-1].copy())))
        try:
            made = T.distributions.kl_divergence(first, second)
        except NotImplementedError:
            found.append([])
            continue
        found.append([made.detach().numpy()])
        if made.requires_grad and np.isfinite(found[-1][0]).all():
            grads = T.autograd.grad(made.sum(), leaves, allow_unused=True)
            found[-1] += [np.zeros(1) if g is None else g.numpy() for g in grads]
    for w, g in zip(*found, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "scale": lambda T: T.distributions.Normal(0.0, -1.0),
    "nan": lambda T: T.distributions.Normal(float("nan"), 1.0),
    "text": lambda T: T.distributions.Normal("a", 1.0),
    "ends": lambda T: T.distributions.Uniform(1.0, 1.0),
    "outside": lambda T: T.distributions.Uniform(0.0, 1.0).log_prob(T.tensor(2.0)),
    "probability": lambda T: T.distributions.Bernoulli(1.5),
    "both": lambda T: T.distributions.Bernoulli(0.5, 0.5),
    "neither": lambda T: T.distributions.Categorical(),
    "value": lambda T: T.distributions.Bernoulli(0.5).log_prob(T.tensor(0.5)),
    "class": lambda T: T.distributions.Categorical(T.ones(3)).log_prob(T.tensor(3)),
    "no dimension": lambda T: T.distributions.Categorical(T.tensor(1.0)),
    "negative": lambda T: T.distributions.Categorical(T.tensor([1.0, -0.5])),
    "number": lambda T: T.distributions.Normal(0.0, 1.0).log_prob(1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        REFUSED[name](torch)
    with pytest.raises(ValueError) as ours:  # noqa: PT011
        REFUSED[name](rgrad)
    assert str(ours.value).split("(")[0] == str(theirs.value).split("(")[0]
    REFUSED_WITHOUT_CHECK = {"scale": lambda T: T.distributions.Normal(0.0, -1.0, validate_args=False)}
    for call in REFUSED_WITHOUT_CHECK.values():
        call(rgrad)


def test_shapes_of_samples() -> None:
    for name, make in MAKE.items():
        shapes = []
        for T in (torch, rgrad):
            d = make(T, *(T.tensor(x) for x in (A, B, P)))
            shapes.append([repr(d).replace("torch.", "").replace("rgrad.", "")])
            shapes[-1].extend(
                [tuple(d.sample().shape), tuple(d.sample((5, 2)).shape), str(d.sample().dtype).split(".")[1]]
            )
            if d.has_rsample:
                shapes[-1].append(tuple(d.rsample((3,)).shape))
        assert shapes[0] == shapes[1], name
