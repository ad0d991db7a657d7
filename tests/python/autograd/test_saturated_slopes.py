"""First and second derivatives where functions have saturated, beside values of `tests/data/saturated_slopes.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad.func import grad, jvp

Function = Callable[[rgrad.Tensor], rgrad.Tensor]

VALUES: dict[str, list[list[float]]] = defaultdict(list)
for line in (Path(__file__).parents[2] / "data/saturated_slopes.txt").read_text().splitlines():
    if not line.startswith("#"):
        name, *numbers = line.split()
        VALUES[name].append([float(v) for v in numbers])
# Their first derivatives are computed from results that are rounded to 1: their inputs are not kept.
FROM_RESULTS = ("sigmoid", "tanh")


def rows(x: rgrad.Tensor) -> rgrad.Tensor:
    """Each element in a row with the logits 0 and -1."""
    zeros = rgrad.zeros_like(x.detach())
    return rgrad.stack([x, zeros, zeros - 1], -1)


def cross_entropy(target: int) -> Function:
    def loss(x: rgrad.Tensor) -> rgrad.Tensor:
        return F.cross_entropy(rows(x), rgrad.full(x.shape, target, dtype=rgrad.int64), reduction="none")

    return loss


def bce(target: float, **more: rgrad.Tensor) -> Function:
    return lambda x: F.binary_cross_entropy_with_logits(x, rgrad.full_like(x, target), reduction="none", **more)


FUNCTIONS: dict[str, Function] = {
    # Above the threshold it is the input by definition.
    "softplus": lambda x: F.softplus(x, threshold=1e4),
    "logsigmoid": F.logsigmoid,
    "log_softmax_chosen": lambda x: F.log_softmax(rows(x), -1).select(-1, 0),
    "log_softmax_other": lambda x: F.log_softmax(rows(x), -1).select(-1, 1),
    "cross_entropy_chosen": cross_entropy(0),
    "cross_entropy_other": cross_entropy(1),
    "bce_with_logits_0": bce(0.0),
    "bce_with_logits_1": bce(1.0),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "erf": rgrad.erf,
}


def total(f: Function) -> Function:
    return lambda x: f(x).sum()


def along(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (rgrad.ones_like(x),))[1]


def recorded(f: Function) -> Function:
    """The first derivative of a pass that is recorded itself."""

    def slope(x: rgrad.Tensor) -> rgrad.Tensor:
        x = x.detach().requires_grad_()
        (g,) = rgrad.autograd.grad(f(x).sum(), x, create_graph=True)
        return g.detach()

    return slope


# The order of the derivative, and how it is computed.
WAYS: dict[str, tuple[int, Callable[[Function], Function]]] = {
    "reverse": (1, lambda f: grad(total(f))),
    "forward": (1, along),
    "recorded": (1, recorded),
    "reverse over reverse": (2, lambda f: grad(total(grad(total(f))))),
    "forward over reverse": (2, lambda f: along(grad(total(f)))),
    "reverse over forward": (2, lambda f: grad(total(along(f)))),
    "forward over forward": (2, lambda f: along(along(f))),
}
DTYPES = {"float32": 1e-5, "float64": 1e-12}


def worst(f: Function, values: list[list[float]], way: str, dtype: str) -> tuple[float, float]:
    """The largest relative error, and its argument, where the true value is a normal number."""
    order, made = WAYS[way]
    x, true = np.array(values)[:, [0, order]].T
    got = made(f)(rgrad.tensor(x, dtype=getattr(rgrad, dtype))).cpu().double().numpy()
    normal = np.abs(true) >= np.finfo(dtype).tiny
    errors = np.where(normal, np.abs(got - true) / np.where(normal, np.abs(true), 1), 0)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return float(errors.max()), float(x[errors.argmax()])


def test_every_function_has_stored_values_on_both_sides() -> None:
    assert VALUES.keys() == FUNCTIONS.keys() | FROM_RESULTS
    assert all(min(v)[0] < -100 < 100 < max(v)[0] for v in VALUES.values())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_keep_their_digits_where_a_function_has_saturated(name: str, way: str, dtype: str) -> None:
    error, at = worst(FUNCTIONS[name], VALUES[name], way, dtype)
    assert error < DTYPES[dtype], f"relative error {error:.3g} at {at}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [0, 1])
def test_a_weight_of_positives_loses_no_digits(target: int, dtype: str) -> None:
    values = [[x, first * (3 if target else 1), 0] for x, first, _ in VALUES[f"bce_with_logits_{target}"]]
    f = bce(target, pos_weight=rgrad.tensor(3.0, dtype=getattr(rgrad, dtype)))
    assert worst(f, values, "reverse", dtype)[0] < DTYPES[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [1, 5, 300])
@pytest.mark.parametrize("n", [3, 17, 70, 500])
def test_a_sure_class_keeps_the_digits_of_the_others_in_rows_of_any_length(n: int, inner: int, dtype: str) -> None:
    """The gradient of the sure class is minus the sum of all others, which are probabilities."""
    kind, sure = getattr(rgrad, dtype), n // 2
    logits = rgrad.linspace(-3.0, 0.0, n, dtype=kind).reshape(1, n, 1).repeat(2, 1, inner)
    logits[:, sure] = 30.0
    logits.requires_grad_()
    target = rgrad.full((2, inner), sure, dtype=rgrad.int64)
    losses = F.cross_entropy(logits, target, reduction="none")
    losses.sum().backward()
    assert logits.grad is not None
    others = np.delete(np.exp(logits.detach().double().numpy() - 30), sure, 1).sum(1)
    assert np.allclose(losses.detach().double().numpy(), others, rtol=1e-6)
    assert np.allclose(logits.grad.double().numpy()[:, sure], -others, rtol=1e-6)


@pytest.mark.parametrize("f", [rgrad.sigmoid, rgrad.tanh])
def test_an_element_has_the_same_slope_whatever_its_neighbours(f: Function) -> None:
    x = rgrad.cat([rgrad.linspace(-12.0, 12.0, 400), rgrad.tensor([float("nan"), float("inf"), -float("inf")])])
    whole = grad(total(f))(x)
    alone = rgrad.cat([grad(total(f))(x[i : i + 1]) for i in range(len(x))])
    assert rgrad.equal(whole.isnan(), alone.isnan())
    assert whole.isnan().sum() == 1
    assert rgrad.equal(whole[:400], alone[:400])
    assert whole[401:].eq(0).all()


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("way", ["reverse", "forward", "recorded", "reverse over reverse"])
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "softmax" not in n and "cross_entropy" not in n])
def test_pointwise_slopes_keep_their_digits_on_every_device(name: str, way: str) -> None:
    # The largest numbers whose slopes are far above those that devices take for 0.
    values = [v for v in VALUES[name] if abs(v[0]) < 60 and abs(v[WAYS[way][0]]) > 1e-30]
    assert worst(FUNCTIONS[name], values, way, "float32")[0] < 1e-5
