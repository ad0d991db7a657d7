"""Second derivatives of piecewise linear operations alone: zeros, not an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad import Tensor
from rgrad.func import grad, hessian, jacfwd, jacrev, vmap

PIECEWISE: dict[str, Callable[[Tensor], Any]] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x: F.threshold(x, 0.1, 0.2),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "prelu": lambda x: F.prelu(x, rgrad.tensor(0.25, device=x.device, dtype=x.dtype)),
    "max_pool2d": lambda x: F.max_pool2d(x.reshape(1, 2, 2), 2),
}


def values(device: str) -> Tensor:
    return rgrad.tensor([-2.0, -0.3, 0.3, 2.0], device=device)


@pytest.mark.parametrize("name", PIECEWISE)
def test_zeros_come_out(name: str, device: str) -> None:
    x = values(device).requires_grad_()
    (g,) = rgrad.autograd.grad(PIECEWISE[name](x).sum(), x, create_graph=True)
    assert g.requires_grad
    (second,) = rgrad.autograd.grad((g * g).sum(), x)
    assert second.tolist() == [0.0] * 4
    assert second.device == x.device


@pytest.mark.parametrize("name", PIECEWISE)
def test_transforms_agree(name: str, device: str) -> None:
    x = values(device)

    def f(x: Tensor) -> Any:
        return PIECEWISE[name](x).sum()

    for second in (hessian(f)(x), jacrev(jacrev(f))(x), jacfwd(jacfwd(f))(x), jacrev(jacfwd(f))(x)):
        assert second.tolist() == [[0.0] * 4] * 4
    rows = rgrad.stack([x, -x])
    assert vmap(grad(lambda x: (grad(f)(x) * x).sum()))(rows).tolist() == [grad(f)(row).tolist() for row in rows]


def test_the_first_derivative_is_nobody_elses() -> None:
    x = values("cpu").requires_grad_()
    (g,) = rgrad.autograd.grad(x.relu().sum(), x, create_graph=True)
    g.add_(1)
    assert g.tolist() == [1.0, 1.0, 2.0, 2.0]
    (second,) = rgrad.autograd.grad(g.sum(), x)
    assert second.tolist() == [0.0] * 4


def test_a_cotangent_with_history_needs_no_node() -> None:
    """What is differentiated through the cotangent is unchanged, and nothing flows into the zeros."""
    x, v = values("cpu").requires_grad_(), rgrad.ones(4, requires_grad=True)
    (g,) = rgrad.autograd.grad(x.relu(), x, v, create_graph=True)
    (back,) = rgrad.autograd.grad(g.sum(), v)
    assert back.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_not_recorded_without_create_graph() -> None:
    x = values("cpu").requires_grad_()
    (g,) = rgrad.autograd.grad(x.relu().sum(), x)
    assert not g.requires_grad
