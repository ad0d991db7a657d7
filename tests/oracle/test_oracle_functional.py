"""`autograd.functional`, grad modes and gradient checks beside PyTorch's: results, structure, history and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, same  # noqa: E402


def point(T: Any, *shape: int, seed: int = 0, grad: bool = False) -> Any:
    return T.tensor(np.random.default_rng(seed).uniform(0.2, 1.2, shape), dtype=T.float64, requires_grad=grad)


SCALARS = {
    "one": (lambda T: lambda x: (x**3).sum(), lambda T: point(T, 3)),
    "tuple of one": (lambda T: lambda x: (x**3).sum(), lambda T: (point(T, 2, 2),)),
    "two": (lambda T: lambda x, y: (x * y.sin()).sum() ** 2, lambda T: (point(T, 3), point(T, 3, seed=1))),
    "shapes": (lambda T: lambda x, y: (x @ y).exp().sum(), lambda T: (point(T, 2, 3), point(T, 3, seed=1))),
    "one element": (lambda T: lambda x: x.reshape(1) ** 2, lambda T: point(T)),
    "linear": (lambda T: lambda x: x.sum(), lambda T: point(T, 3)),
    "partly": (lambda T: lambda x, y: (x**2).sum(), lambda T: (point(T, 3), point(T, 2))),
    "no history": (lambda T: lambda x: T.ones((), dtype=T.float64), lambda T: point(T, 3)),
}
VECTORS = {
    "matrix": (lambda T: lambda x: x.reshape(2, 2) @ x.reshape(2, 2), lambda T: point(T, 4)),
    "two outputs": (lambda T: lambda x: (x.sin(), x.sum()), lambda T: point(T, 3)),
    "all": (lambda T: lambda x, y: (x * y, y.exp()), lambda T: (point(T, 3), point(T, 3, seed=1))),
    "no elements": (lambda T: lambda x: x[:0], lambda T: point(T, 3)),
    **SCALARS,
}


def like(T: Any, value: Any, seed: int) -> Any:
    if isinstance(value, tuple):
        return tuple(point(T, *v.shape, seed=seed + i) for i, v in enumerate(value))
    return point(T, *value.shape, seed=seed)


def compared(call: Any) -> None:
    ours, theirs = attempt(lambda: call(rgrad)), attempt(lambda: call(torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    if theirs.error is None:
        same(ours.value, theirs.value, factor=100, strides=False)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", [name for name in VECTORS if name != "no elements"])  # an error in PyTorch
def test_jacobian(name: str, grad: bool, create_graph: bool, strict: bool) -> None:
    func, inputs = VECTORS[name]

    def call(T: Any) -> Any:
        given = inputs(T)
        for x in given if isinstance(given, tuple) else (given,):
            x.requires_grad_(grad)
        return T.autograd.functional.jacobian(func(T), given, create_graph=create_graph, strict=strict)

    compared(call)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name: str, create_graph: bool, strict: bool) -> None:
    func, inputs = SCALARS[name]
    compared(lambda T: T.autograd.functional.hessian(func(T), inputs(T), create_graph=create_graph, strict=strict))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", ["vjp", "jvp"])
@pytest.mark.parametrize("name", VECTORS)
def test_products_with_jacobians(name: str, which: str, create_graph: bool, strict: bool) -> None:
    func, inputs = VECTORS[name]

    def call(T: Any) -> Any:
        given = inputs(T)
        f = func(T)
        v = like(T, given if which == "jvp" else f(*given) if isinstance(given, tuple) else f(given), 5)
        return getattr(T.autograd.functional, which)(f, given, v, create_graph=create_graph, strict=strict)

    compared(call)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", ["vhp", "hvp"])
@pytest.mark.parametrize("name", SCALARS)
def test_products_with_hessians(name: str, which: str, create_graph: bool, strict: bool) -> None:
    func, inputs = SCALARS[name]

    def call(T: Any) -> Any:
        given = inputs(T)
        v = like(T, given, 5)
        return getattr(T.autograd.functional, which)(func(T), given, v, create_graph=create_graph, strict=strict)

    compared(call)


MISTAKES = {
    "v shape": lambda T, F: F.vjp(lambda x: x, point(T, 3), point(T, 2)),
    "v length": lambda T, F: F.jvp(lambda x, y: x, (point(T, 3), point(T, 3)), (point(T, 3),)),
    "v missing": lambda T, F: F.vjp(lambda x: x, point(T, 3)),
    "v missing for input": lambda T, F: F.jvp(lambda x: x, point(T, 3)),
    "v not needed": lambda T, F: F.vjp(lambda x: x.sum(), point(T, 3)),
    "output": lambda T, F: F.jacobian(lambda x: 3, point(T, 3)),
    "output list": lambda T, F: F.jacobian(lambda x: [x], point(T, 3)),
    "input": lambda T, F: F.jacobian(lambda x: x, 3),
    "inputs": lambda T, F: F.jacobian(lambda x: x, (point(T, 3), 3)),
    "not one number": lambda T, F: F.hessian(lambda x: x, point(T, 3)),
    "two numbers": lambda T, F: F.hvp(lambda x: (x.sum(), x.sum()), point(T, 3), point(T, 3)),
    "backward into a number": lambda T, F: T.autograd.grad(point(T, 3, grad=True), 3),
    "two gradients": lambda T, F: T.autograd.grad(point(T, grad=True) * 2, point(T), [None, None]),
    "gradient kind": lambda T, F: T.autograd.grad(point(T, grad=True) * 2, point(T), "x"),
    "gradient shape": lambda T, F: T.autograd.backward(point(T, 3, grad=True) * 2, point(T, 2)),
    "not scalar": lambda T, F: T.autograd.backward(point(T, 3, grad=True) * 2),
    "no inputs": lambda T, F: T.autograd.backward(point(T, grad=True) * 2, inputs=[]),
    "unused": lambda T, F: T.autograd.grad(point(T, grad=True) * 2, point(T, grad=True)),
    "materialize": lambda T, F: T.autograd.grad(
        point(T, grad=True) * 2, point(T, grad=True), allow_unused=False, materialize_grads=True
    ),
    "mode": lambda T, F: T.set_grad_enabled("x"),
    "class": lambda T, F: T.no_grad()(type("Thing", (), {})),
    "check without inputs": lambda T, F: T.autograd.gradcheck(lambda x: x, (point(T, 3),)),
    "check of overlap": lambda T, F: T.autograd.gradcheck(
        lambda x: x * 2, (T.ones(1, dtype=T.float64).expand(3).requires_grad_(),)
    ),
    "check without modes": lambda T, F: T.autograd.gradcheck(
        lambda x: x, (point(T, 3, grad=True),), check_backward_ad=False
    ),
    "check of a cut": lambda T, F: T.autograd.gradcheck(lambda x: x.detach() * 2, (point(T, 3, grad=True),)),
    "check of a kink": lambda T, F: T.autograd.gradcheck(
        lambda x: x.relu(), (T.zeros(2, dtype=T.float64, requires_grad=True),)
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = (attempt(lambda T=T: MISTAKES[name](T, T.autograd.functional)) for T in (rgrad, torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned
