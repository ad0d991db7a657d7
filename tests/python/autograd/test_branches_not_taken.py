"""A value that does not reach the result never makes a derivative nan, however steep the function is that made it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad.func import grad, jvp, vmap

Function = Callable[[rgrad.Tensor], rgrad.Tensor]
INF = math.inf


def t(*values: float) -> rgrad.Tensor:
    return rgrad.tensor(values, dtype=rgrad.float64)


FIRST = rgrad.tensor([True, False, False])
STEEP: dict[str, Function] = {
    "log": rgrad.log,
    "log2": rgrad.log2,
    "log10": rgrad.log10,
    "sqrt": rgrad.sqrt,
    "rsqrt": rgrad.rsqrt,
    "reciprocal": rgrad.reciprocal,
    "division": lambda x: 1 / x,
    "quotient": lambda x: (x + 1) / x,
    "power": lambda x: x**-1.5,
    "root": lambda x: x**0.5,
    "power of tensors": lambda x: x ** t(0.5, -0.5, 1.5),
    "log of sqrt": lambda x: x.sqrt().log(),
    "product with infinity": lambda x: x * (x / x).nan_to_num(INF),
    "exp": lambda x: rgrad.exp(1 / x),
    "acosh": lambda x: rgrad.acosh(1 + x),
    "atanh": lambda x: rgrad.atanh(1 - x / 4),
    "asin": lambda x: rgrad.asin(1 - x / 4),
    "logit": lambda x: rgrad.logit(x / 4),
    "lgamma": rgrad.lgamma,
    "xlogy": lambda x: rgrad.xlogy(rgrad.ones_like(x), x),
    "erfinv": lambda x: rgrad.erfinv(1 - x / 4),
}
# Each keeps the first element out and takes the others, of a tensor that is infinite or nan there.
CUTS: dict[str, Function] = {
    "where": lambda x: rgrad.where(FIRST, 0.0, x),
    "where other": lambda x: rgrad.where(~FIRST, x, rgrad.zeros_like(x)),
    "masked_fill": lambda x: x.masked_fill(FIRST, 0.0),
    "nan_to_num": lambda x: x.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0),
    "clamp": lambda x: rgrad.clamp(rgrad.where(FIRST, x.abs(), x), max=100.0),
    "clamp tensor": lambda x: rgrad.clamp(rgrad.where(FIRST, x.abs(), x), max=t(100, 100, 100)),
    "minimum": lambda x: rgrad.minimum(rgrad.where(FIRST, x.abs(), x), t(100, 100, 100)),
    "fmin": lambda x: rgrad.fmin(rgrad.where(FIRST, x.abs(), x), t(100, 100, 100)),
    "maximum": lambda x: rgrad.maximum(rgrad.where(FIRST, -x.abs(), x), t(-100, -100, -100)),
}


def total(f: Function) -> Function:
    return lambda x: f(x).sum()


def tangent(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (rgrad.ones_like(x),))[1]


WAYS: dict[str, Callable[[Function], Function]] = {
    "reverse": lambda f: grad(total(f)),
    "forward": tangent,
    "reverse over reverse": lambda f: grad(total(grad(total(f)))),
    "forward over reverse": lambda f: tangent(grad(total(f))),
    "reverse over forward": lambda f: grad(total(tangent(f))),
    "forward over forward": lambda f: tangent(tangent(f)),
}


def same(got: rgrad.Tensor, want: rgrad.Tensor) -> bool:
    return rgrad.allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cut", ["where", "where other", "masked_fill"])
@pytest.mark.parametrize("steep", STEEP)
def test_an_element_that_is_left_out_has_the_derivative_0(steep: str, cut: str, way: str) -> None:
    f = STEEP[steep]

    def composed(x: rgrad.Tensor) -> rgrad.Tensor:
        return CUTS[cut](f(x))

    got = WAYS[way](composed)(t(0.0, 1.5, 3.0))
    # The same at another first element, where nothing is infinite.
    tame = WAYS[way](composed)(t(2.0, 1.5, 3.0))
    assert same(got, tame)
    assert got[0] == 0


@pytest.mark.parametrize("way", [w for w in WAYS if "over forward" not in w])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("steep", ["log", "rsqrt", "division"])
def test_every_choice_leaves_out_derivatives(steep: str, cut: str, way: str) -> None:
    got = WAYS[way](lambda x: CUTS[cut](STEEP[steep](x)))(t(0.0, 1.5, 3.0))
    assert same(got[1:], WAYS[way](STEEP[steep])(t(1.0, 1.5, 3.0))[1:])
    assert got[0] == 0


def test_backward_of_large_tensors_and_of_batches_leaves_out_too() -> None:
    x = rgrad.zeros(100_000)
    x[1::2] = 2.0
    x.requires_grad_()
    rgrad.where(x > 0, (x * 3).log() / x, 0.0).sum().backward()
    assert x.grad is not None
    want = (1 - math.log(6)) / 4
    assert (x.grad[::2] == 0).all()
    assert rgrad.allclose(x.grad[1::2], rgrad.tensor(want))
    each = vmap(grad(lambda v: rgrad.where(v > 0, v.log(), 0.0)))(t(0.0, 2.0))
    assert each.tolist() == [0.0, 0.5]


def test_a_0_that_no_choice_has_made_is_multiplied() -> None:
    """The slope of `exp(log(x))` at 0 is 1, and that of `exp` there 0: nan says that nothing is known."""
    assert grad(lambda x: rgrad.exp(rgrad.log(x)))(t(0.0)[0]).isnan()
    assert grad(lambda x: rgrad.sqrt(x * x))(t(0.0)[0]).isnan()


def test_an_infinite_slope_that_reaches_the_result_stays() -> None:
    assert grad(lambda x: rgrad.where(x >= 0, x.sqrt(), 0.0))(t(0.0)[0]) == INF


POINTS: dict[str, tuple[Function, rgrad.Tensor, list[float]]] = {
    "logaddexp, one of -inf": (lambda x: rgrad.logaddexp(x, t(-INF, 0)), t(1, 0), [1, 0.5]),
    "logaddexp, both of -inf": (lambda x: rgrad.logaddexp(x, t(-INF, 0)), t(-INF, 0), [0, 0.5]),
    "logaddexp, both of inf": (lambda x: rgrad.logaddexp(x, t(INF, 0)), t(INF, 0), [0.5, 0.5]),
    "logaddexp2, both of -inf": (lambda x: rgrad.logaddexp2(t(-INF, 0), x), t(-INF, 0), [0, 0.5]),
    "logsumexp, some of -inf": (lambda x: rgrad.logsumexp(x, 0), t(-INF, 1, 1), [0, 0.5, 0.5]),
    "logsumexp, all of -inf": (lambda x: rgrad.logsumexp(x, 0), t(-INF, -INF), [0, 0]),
    "logcumsumexp of -inf": (lambda x: rgrad.logcumsumexp(x, 0), t(-INF, -INF, 1), [0, 0, 1]),
    "softmax, some of -inf": (lambda x: rgrad.softmax(x, 0)[1:] * t(1, 3), t(-INF, 2, 2), [0, -0.5, 0.5]),
    "softmax of a masked row": (lambda x: rgrad.softmax(x.masked_fill(x == x, -INF), 0).nan_to_num(), t(1, 2), [0, 0]),
    "log_softmax, some of -inf": (lambda x: rgrad.log_softmax(x, 0)[1:], t(-INF, 2, 2), [0, 0, 0]),
    "kl_div, targets of 0": (lambda x: F.kl_div(x, t(0, 1), reduction="sum"), t(-INF, -1), [0, -1]),
    "kl_div, logarithms of 0": (
        lambda x: F.kl_div(t(-1, -1), x, reduction="sum", log_target=True),
        t(-INF, 0),
        [0, 2],
    ),
    "norm": (rgrad.linalg.vector_norm, t(0, 0), [0, 0]),
    "norm of order 3": (lambda x: rgrad.linalg.vector_norm(x, 3), t(0, 0), [0, 0]),
    "norm of order 1.5": (lambda x: rgrad.linalg.vector_norm(x, 1.5), t(0, 0), [0, 0]),
    "dist": (lambda x: rgrad.dist(x, t(1, 2)), t(1, 2), [0, 0]),
    "cdist": (lambda x: rgrad.cdist(x[None], t(1, 2)[None]), t(1, 2), [0, 0]),
    "cdist of order 3": (lambda x: rgrad.cdist(x[None], t(1, 2)[None], 3.0), t(1, 2), [0, 0]),
    "pdist": (lambda x: F.pdist(rgrad.stack([x, x])), t(1, 2), [0, 0]),
    "std": (rgrad.std, t(2, 2, 2), [0, 0, 0]),
    "hypot": (lambda x: rgrad.hypot(x, t(0, 0)), t(0, 2), [0, 1]),
    "atan2": (lambda x: rgrad.atan2(x, t(0, 1)), t(0, 0), [0, 1]),
    "power 0": (lambda x: x ** t(0, 1), t(0, 0), [0, 1]),
    "exponent of 0": (lambda e: t(0, 2) ** e, t(1, 0), [0, math.log(2)]),
    "xlogy": (lambda x: rgrad.xlogy(t(0, 1), x), t(0, 2), [0, 0.5]),
    "xlogy, the factor": (lambda a: rgrad.xlogy(a, t(0, 1)), t(0, 2), [0, 0]),
    "xlog1py": (lambda x: rgrad.special.xlog1py(t(0, 1), x), t(-1, 1), [0, 0.5]),
    "prod, one 0": (rgrad.prod, t(0, 2, 3), [6, 0, 0]),
    "prod, two": (rgrad.prod, t(0, 0, 3), [0, 0, 0]),
    "cumprod, one 0": (lambda x: rgrad.cumprod(x, 0), t(2, 0, 3), [1, 8, 0]),
    "cumprod, two": (lambda x: rgrad.cumprod(x, 0), t(0, 0, 3), [1, 0, 0]),
}


@pytest.mark.parametrize("name", POINTS)
def test_single_points_have_finite_derivatives_of_both_orders(name: str) -> None:
    f, x, want = POINTS[name]
    assert same(grad(total(f))(x), t(*want))
    assert same(tangent(total(f))(x), t(*want).sum())
    for way in ("reverse over reverse", "forward over reverse"):
        assert not WAYS[way](f)(x).isnan().any(), way


@pytest.mark.parametrize("mask", [t(0, -INF, -INF, -INF).reshape(2, 2), rgrad.tensor([[True, False], [False, False]])])
def test_attention_of_a_masked_row_has_derivatives(mask: rgrad.Tensor) -> None:
    mask = mask.to(mask.dtype if mask.dtype == rgrad.bool else rgrad.float64)

    def attention(x: rgrad.Tensor) -> rgrad.Tensor:
        q = x.reshape(1, 2, 2)
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    x = t(1, 2, 3, 4)
    # The first row attends to itself alone, the second one to none.
    assert same(grad(total(attention))(x), t(1, 1, 0, 0))
    assert same(WAYS["forward over reverse"](attention)(x), t(0, 0, 0, 0))


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_a_mixed_derivative_of_xlogy_is_one_over_the_argument(power: float) -> None:
    mixed = grad(lambda y: grad(lambda a: rgrad.xlogy(a, y))(t(0)[0]))(t(power)[0])
    assert same(mixed, t(1 / power)[0])


def test_a_gradient_that_is_zero_by_arithmetic_has_its_derivative() -> None:
    """Behind a choice, too: at a minimum the gradient is 0 and the second derivative is not."""

    def loss(w: rgrad.Tensor) -> rgrad.Tensor:
        return rgrad.where(w > -1, (w.exp() - 1) ** 2, 0.0).clamp(max=9.0).sum()

    w = rgrad.zeros(2, dtype=rgrad.float64)
    assert rgrad.func.hessian(loss)(w).diagonal().tolist() == [2.0, 2.0]
    x = w.clone().requires_grad_()
    (g,) = rgrad.autograd.grad(loss(x), x, create_graph=True)
    (second,) = rgrad.autograd.grad(g.sum(), x)
    assert second.tolist() == [2.0, 2.0]
