"""Random distributions beside PyTorch: parameters and values of all kinds, valid or not, and what is told of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from rotation import some  # noqa: E402

pytestmark = pytest.mark.oracle

SHAPES = [(), (3,), (2, 3), (1,), (2, 1), (0,), (2, 0)]
NUMBERS = [0.0, 1.0, 0.5, 0.25, 2.0, -1.0, 3.5, 1e-3]
# Borders and what lies behind them. Numbers far from 1 are left out: both round, each in its own way.
EDGES = [0.0, 1.0, 0.5, -0.5, 1.5, float("inf"), -float("inf"), float("nan")]
KINDS = {
    "Normal": ("loc", "scale"),
    "Uniform": ("low", "high"),
    "Bernoulli": ("probs", "logits"),
    "Categorical": ("probs", "logits"),
}
DTYPES = ["float32", "float64", "float64", "float64", "int64"]


class Plan:
    """A distribution as a description that both libraries follow: numbers and arrays, and what is asked."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.kind = self.rng.choice(list(KINDS))
        self.arguments = self.parameters(self.kind)
        self.other_kind = self.rng.choice([self.kind, self.rng.choice(list(KINDS))])
        self.other = self.parameters(self.other_kind)
        self.validate = self.rng.choice([None, None, True, False])
        self.value = self.tensor(self.rng.choice(["inside", "whole", "edges"]))
        if isinstance(self.value, tuple) and self.kind == "Bernoulli":
            # PyTorch gives the loss behind log_prob the dtype of narrower values (docs/differences.md).
            self.value = (self.value[0].astype("float64"), False)
        self.shape = (*self.rng.choice([(), (2,), (4, 1), (0,)]), *self.rng.choice(SHAPES))
        self.lower, self.upper = sorted(self.rng.sample(NUMBERS, 2))

    def tensor(self, what: str, least: int = 0) -> Any:
        """An array, or a number. A dtype goes with it, and whether it requires grad."""
        rng = self.rng
        shape = rng.choice([s for s in SHAPES if len(s) >= least])
        if not least and rng.random() < 0.2:
            return rng.choice(NUMBERS)
        count = int(np.prod(shape))
        draw = {
            "inside": lambda: rng.uniform(0.05, 0.95),
            "real": lambda: rng.uniform(-2.0, 2.0),
            "whole": lambda: float(rng.randrange(3)),
            "edges": lambda: rng.choice([*EDGES, rng.uniform(-1.0, 2.0)]),
        }[what]
        dtype = rng.choice(DTYPES) if what == "whole" else rng.choice(DTYPES[:-1])
        data = np.array([draw() for _ in range(count)], dtype=dtype).reshape(shape)
        return data, dtype != "int64" and rng.random() < 0.6

    def parameters(self, kind: str) -> dict[str, Any]:
        rng, least = self.rng, int(kind == "Categorical")
        what = rng.choice(["inside", "inside", "inside", "real", "edges"])
        if kind in ("Normal", "Uniform"):
            first, second = KINDS[kind]
            made = {first: self.tensor(what), second: self.tensor(what)}
            if kind == "Uniform" and rng.random() < 0.7:
                made[second] = rng.choice([1.0, 2.0, 3.5])
            return made
        names = rng.choice([["probs"], ["probs"], ["logits"], ["logits"], [], ["probs", "logits"]])
        return {name: self.tensor(what, least if rng.random() < 0.95 else 0) for name in names}


def real(T: Any, given: Any, leaves: list[Any]) -> Any:
    if not isinstance(given, tuple):
        return given
    data, requires = given
    made = T.tensor(data.tolist(), dtype=getattr(T, str(data.dtype))).reshape(data.shape)
    if requires:
        leaves.append(made.requires_grad_())
    return made


def seen(x: Any, leaves: list[Any], T: Any) -> Any:
    """What can be compared of a result: its values, its dtype, and the gradients of parameters with what these are."""
    if not isinstance(x, T.Tensor):
        return plain(repr(x)) if not isinstance(x, (bool, int, tuple)) else x
    grads = []
    if x.requires_grad:
        found = T.autograd.grad((x * 0.7).sum(), leaves, allow_unused=True, retain_graph=True)
        # Zeros stand for parameters that are not reached.
        grads = [np.zeros(a.shape) if g is None else g.numpy() for g, a in zip(found, leaves, strict=True)]
    held = [leaf.detach().numpy() for leaf in leaves[: len(grads)]]
    return [x.detach().numpy(), str(x.dtype).rsplit(".", 1)[-1], x.requires_grad, grads, held]


def plain(text: str) -> str:
    return text.replace("torch.", "").replace("rgrad.", "")


TELLS: dict[str, Callable[[Any, Any, Any, Plan], Any]] = {
    "repr": lambda T, d, v, plan: repr(d) if all(p.numel() != 1 for p in parameters(d)) else "",
    "batch_shape": lambda T, d, v, plan: tuple(d.batch_shape),
    "event_shape": lambda T, d, v, plan: tuple(d.event_shape),
    "log_prob": lambda T, d, v, plan: d.log_prob(v),
    "cdf": lambda T, d, v, plan: d.cdf(v),
    "icdf": lambda T, d, v, plan: d.icdf(v),
    "mean": lambda T, d, v, plan: d.mean,
    "mode": lambda T, d, v, plan: d.mode,
    "variance": lambda T, d, v, plan: d.variance,
    "stddev": lambda T, d, v, plan: d.stddev,
    "entropy": lambda T, d, v, plan: d.entropy(),
    "perplexity": lambda T, d, v, plan: d.perplexity(),
    "probs": lambda T, d, v, plan: d.probs,
    "logits": lambda T, d, v, plan: d.logits,
    "param_shape": lambda T, d, v, plan: tuple(d.param_shape),
    "cached": lambda T, d, v, plan: d.probs is d.probs and d.logits is d.logits,
    "enumerate": lambda T, d, v, plan: d.enumerate_support(),
    "enumerate once": lambda T, d, v, plan: d.enumerate_support(expand=False),
    "expand": lambda T, d, v, plan: d.expand(plan.shape).variance,
    "expand and score": lambda T, d, v, plan: d.expand(plan.shape).log_prob(v),
    "support": lambda T, d, v, plan: d.support.check(v),
    "sample": lambda T, d, v, plan: tuple(d.sample(plan.shape[:1]).shape),
    "rsample": lambda T, d, v, plan: tuple(d.rsample(plan.shape[:1]).shape),
    "drawn": lambda T, d, v, plan: drawn(T, d),
    "divergence": lambda T, d, v, plan: T.distributions.kl_divergence(d, other(T, plan)),
    "divergence from itself": lambda T, d, v, plan: T.distributions.kl_divergence(d, d),
}


def parameters(d: Any) -> list[Any]:
    return [value for name, value in vars(d).items() if name in d.arg_constraints]


def other(T: Any, plan: Plan) -> Any:
    arguments = {name: real(T, given, []) for name, given in plan.other.items()}
    return getattr(T.distributions, plan.other_kind)(**arguments, validate_args=False)


def drawn(T: Any, d: Any) -> Any:
    """Draws are at random, so each is brought back to the variable behind it: its derivatives can be compared."""
    made = d.rsample((2,))
    first, second = parameters(d)
    behind = ((made - first) / (second if type(d).__name__ == "Normal" else second - first)).detach()
    grads = T.autograd.grad(made.sum(), [first, second], allow_unused=True) if made.requires_grad else [None, None]
    of_second = behind.sum(0)
    of_first = T.full_like(of_second, 2.0) - (0 if type(d).__name__ == "Normal" else of_second)
    pairs = [(g, want) for g, want in zip(grads, (of_first, of_second), strict=True) if g is not None]
    return all(bool(((g - want).abs() < 1e-3).all()) for g, want in pairs)


def run(T: Any, plan: Plan, what: str) -> Any:
    leaves: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arguments = {name: real(T, given, leaves) for name, given in plan.arguments.items()}
            made = getattr(T.distributions, plan.kind)(**arguments, validate_args=plan.validate)
            value = plan.value[0] if isinstance(plan.value, tuple) else plan.value
            if isinstance(plan.value, tuple):
                value = T.tensor(value.tolist(), dtype=getattr(T, str(value.dtype))).reshape(value.shape)
            return seen(TELLS[what](T, made, value, plan), leaves, T)
        except Exception as error:
            return error


def difference(plan: Plan, what: str) -> str | None:
    want, got = run(torch, plan, what), run(rgrad, plan, what)
    if isinstance(want, IndexError) and what.startswith("divergence"):
        return None  # PyTorch writes infinities by a mask of the parameters' shape, not of the result's.
    if isinstance(want, Exception):
        if not isinstance(got, Exception):
            return f"no error instead of {want!r}"
        kinds = {c.__name__ for c in type(got).__mro__}
        if type(want).__name__ not in kinds:
            return f"{got!r} instead of {want!r}"
        ours, theirs = plain(str(got)).split("\n")[0], plain(str(want)).split("\n")[0]
        if isinstance(want, ValueError) and ours != theirs:
            return f"{ours!r} instead of {theirs!r}"
        return None
    if isinstance(got, Exception):
        return f"{got!r} instead of {want!r}"
    if not isinstance(want, list):
        return None if got == want else f"{got!r} instead of {want!r}"
    if want[1:3] != got[1:3]:
        return f"{got[1:3]} instead of {want[1:3]}"
    tolerance = 2e-4 if want[1] == "float32" else 1e-6
    # Derivatives at infinite elements are limits, where PyTorch's formula may give nan (docs/differences.md).
    # Of divergences it is nan at the elements beside these, too, and where the result is infinite.
    limits = []
    for g, w, x in zip(got[3], want[3], want[4], strict=True):
        beside = np.isinf(x).any() or np.isinf(want[0]).any()
        beside = beside & ((what == "divergence") | (what == "divergence from itself") & (np.abs(g) < tolerance))
        limits.append(np.where(np.isnan(w) & np.where(np.isfinite(x), beside, g == 0), w, g))
    for g, w in zip([got[0], *limits], [want[0], *want[3]], strict=True):
        if g.shape != w.shape or not np.allclose(g, w, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{g.tolist()} instead of {w.tolist()}"
    return None


@pytest.mark.parametrize("what", TELLS)
def test_random_distributions(what: str) -> None:
    found = []
    for seed in some(range(3000), 60, what):
        plan = Plan(seed)
        differs = difference(plan, what)
        if differs:
            found.append(
                f"{seed}: {plan.kind}({plan.arguments}) {plan.other_kind}({plan.other}) at {plan.value}: {differs}"
            )
    assert not found, "\n".join(found[:20])
