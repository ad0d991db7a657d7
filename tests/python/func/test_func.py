"""Function transforms: derivatives of functions, alone and nested, against formulas and differences."""

from __future__ import annotations

import gc
import math
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from devices import real
from points import close, point
from rgrad.autograd import functional
from rgrad.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from rgrad.utils._pytree import tree_flatten, tree_map, tree_unflatten

pytestmark = pytest.mark.usefixtures("device")

Pair = namedtuple("Pair", ["a", "b"])


def scalar(x: Any) -> Any:
    return (x.sin() * x).sum()


def scalar_grad(x: Any) -> list[float]:
    return [math.sin(v) + v * math.cos(v) for v in x.tolist()]


# ---------------------------------------------------------------------------------------------------- grad and vjp


def test_grad_of_a_function() -> None:
    x = point(0.3, -0.7)
    found = grad(scalar)(x)
    close(found, scalar_grad(x))
    assert not found.requires_grad
    assert not x.requires_grad
    assert x.grad is None


def test_grad_and_value_and_aux() -> None:
    x = point(0.3, -0.7)
    g, value = grad_and_value(scalar)(x)
    close(g, scalar_grad(x))
    close(value, scalar(x))
    g, aux = grad(lambda x: (scalar(x), {"twice": x * 2}), has_aux=True)(x)
    close(g, scalar_grad(x))
    close(aux["twice"], (x * 2).tolist())
    g, (value, aux) = grad_and_value(lambda x: (scalar(x), (x, x + 1)), has_aux=True)(x)
    close(value, scalar(x))
    close(aux[1], (x + 1).tolist())


def test_argnums_and_trees() -> None:
    x, y = point(1.0, 2.0), point(3.0, 4.0)

    def f(p: Any, q: Any, *, scale: float = 1.0) -> Any:
        return (p["w"] * q[0] * scale).sum() + q[1].square().sum()

    args = ({"w": x}, [y, x])
    close(grad(f)(*args)["w"], y.tolist())
    gq = grad(f, argnums=1)(*args, scale=2.0)
    assert isinstance(gq, list)
    close(gq[0], (2 * x).tolist())
    close(gq[1], (2 * x).tolist())
    gp, gq = grad(f, argnums=(0, -1))(*args)
    close(gp["w"], y.tolist())
    close(gq[0], x.tolist())
    named = grad(lambda p: (p.a * p.b).sum())(Pair(x, y))
    assert type(named) is Pair
    close(named.b, x.tolist())


def test_independent_inputs_have_zeros() -> None:
    x, y = point(1.0, 2.0), point(3.0, 4.0)
    close(grad(lambda x, y: y.sum())(x, y), [0.0, 0.0])
    close(grad(lambda x: rgrad.ones((), dtype=real()))(x), [0.0, 0.0])
    out, pull = vjp(lambda x: y * 2, x)
    close(out, [6.0, 8.0])
    close(pull(y)[0], [0.0, 0.0])
    close(jvp(lambda x: y * 2, (x,), (x,))[1], [0.0, 0.0])
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: y * 2, (x,), (x,), strict=True)


def test_vjp_and_its_function_afterwards() -> None:
    x, y = point(0.3, -0.7), point(2.0, 5.0)
    (total, both), pull = vjp(lambda x, y: ((x * y).sum(), (x * y, x.exp())), x, y)
    close(total, (x * y).sum())
    close(both[0], (x * y).tolist())
    one, zero = rgrad.ones((), dtype=real()), rgrad.zeros(2, dtype=real())
    for _ in range(2):
        gx, gy = pull((one, (zero, zero)))
        close(gx, y.tolist())
        close(gy, x.tolist())
    assert not gx.requires_grad
    gx, gy = pull((one * 0, (zero, point(1.0, 1.0))))
    close(gx, x.exp().tolist())
    close(gy, [0.0, 0.0])
    _, pull, aux = vjp(lambda x: (x * 2, x + 1), x, has_aux=True)
    close(aux, (x + 1).tolist())
    # Inside another transform, and over a batch of cotangents.
    close(vmap(lambda v: pull(v)[0])(rgrad.eye(2, dtype=real())), [[2.0, 0.0], [0.0, 2.0]])


def test_history_outside_of_a_transform_goes_on() -> None:
    x = point(0.5, 1.5).requires_grad_()
    found = grad(lambda y: (y.square() * x).sum())(x * 1)
    assert found.requires_grad
    # By the argument alone: 2 y x; its derivative by x through both.
    close(rgrad.autograd.grad(found.sum(), x)[0], (4 * x).tolist())
    _, pull = vjp(lambda y: y * y * y, x)
    close(rgrad.autograd.grad(pull(rgrad.ones(2, dtype=real()))[0].sum(), x)[0], (6 * x).tolist())
    with rgrad.no_grad():
        inside = grad(scalar)(x)
    assert not inside.requires_grad
    close(inside, scalar_grad(x))


def test_no_grad_inside_and_detach() -> None:
    x = point(3.0)

    def f(x: Any) -> Any:
        with rgrad.no_grad():
            c = x**2
        return (x * c).sum()

    close(grad(f)(x), [9.0])
    close(grad(lambda x: (x * x.detach()).sum())(x), [3.0])
    # Nested: what is constant inside stays constant outside.
    close(grad(lambda x: grad(f)(x).sum())(x), [0.0])
    close(grad(lambda x: grad(lambda x: (x * (x**2).detach()).sum())(x).sum())(x), [0.0])


def test_what_the_function_writes() -> None:
    x, y = point(1.0, 2.0), point(3.0, 4.0)

    def writes(x: Any) -> Any:
        z = x.clone()
        z[0] = z[1] * 3
        z.mul_(x)
        return z.sum()

    close(grad(writes)(x), [6.0, 3.0 + 4.0])

    def product(x: Any) -> Any:
        z = x * 0.5
        return z.mul_(x).square().sum()

    # The fourth power over 4: what a write overwrites keeps its history at every level.
    for way in (jacrev(grad(product)), jacfwd(grad(product)), jacfwd(jacfwd(product)), jacrev(jacfwd(product))):
        close(way(x), rgrad.diag(3 * x.square()))
    before = y.clone()
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(lambda x: y.add_(x).sum())(x)
    close(y, before.tolist())
    with pytest.raises(
        RuntimeError, match="would be too small|not possible because there exists a Tensor|more elements"
    ):
        vmap(lambda x: y.add_(x))(rgrad.ones(3, 2, dtype=real()))
    close(y, before.tolist())


# ---------------------------------------------------------------------------------------------------- jvp, linearize


def test_jvp_of_trees() -> None:
    x, y = point(1.0, 2.0), point(3.0, 4.0)
    out, moved = jvp(lambda p, q: {"m": p[0] * q, "s": p[0].sum()}, ([x], y), ([point(1.0, 0.0)], point(0.0, 1.0)))
    close(out["m"], (x * y).tolist())
    close(moved["m"], [3.0, 2.0])
    close(moved["s"], 1.0)
    out, moved, aux = jvp(lambda x: (x * 2, x * 3), (x,), (y,), has_aux=True)
    close(moved, (2 * y).tolist())
    close(aux, (3 * x).tolist())


def test_linearize_multiplies_without_calling_again() -> None:
    calls = []
    x, y = point(0.3, -0.7), point(2.0, 5.0)

    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return (x * y).sin(), x.sum()

    out, push = linearize(f, x, y)
    want = jvp(f, (x, y), (y, x))
    for have, need in zip([*out, *push(y, x)], [*want[0], *want[1]], strict=True):
        close(have, need)
    push(x, x)
    assert len(calls) == 2
    with pytest.raises(RuntimeError, match="same argspec as the primals"):
        push(x)
    with pytest.raises(RuntimeError, match="tangent:1 with shape"):
        push(x, point(1.0))


# ---------------------------------------------------------------------------------------------------- matrices


def net(x: Any) -> Any:
    w = rgrad.linspace(-1, 1, 6, dtype=real()).view(2, 3)
    return (w @ x.sin()).tanh()


def differences(f: Callable[[Any], Any], x: Any, eps: float = 1e-6) -> np.ndarray:
    base = np.asarray(x.tolist())
    columns = []
    for at in np.ndindex(*base.shape):
        ends = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[at] += step
            ends.append(np.asarray(f(rgrad.tensor(moved, dtype=real())).tolist()))
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.moveaxis(np.stack(columns), 0, -1).reshape(columns[0].shape + base.shape)


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians(jacobian: Any) -> None:
    x = point(0.3, -0.7, 1.1)
    found = jacobian(net)(x)
    assert found.shape == (2, 3)
    want = rgrad.stack(
        [rgrad.autograd.grad(net(leaf)[i], leaf)[0] for i in range(2) for leaf in [x.clone().requires_grad_()]]
    )
    close(found, want)
    if real() == rgrad.float64:
        close(found, differences(net, x))
    found, aux = jacobian(lambda x: (net(x), x * 2), has_aux=True)(x)
    close(found, want)
    close(aux, (2 * x).tolist())
    block = jacobian(lambda x, y: {"p": x.outer(y), "s": x.sum()}, argnums=(0, 1))(x, point(1.0, 2.0))
    assert block["p"][0].shape == (3, 2, 3)
    assert block["p"][1].shape == (3, 2, 2)
    assert block["s"][0].tolist() == [1.0, 1.0, 1.0]
    assert block["s"][1].tolist() == [0.0, 0.0]
    tree = jacobian(lambda p: p["a"] * p["b"])({"a": x, "b": x * 2})
    close(tree["a"], rgrad.diag(x * 2))
    assert jacobian(lambda x: x.sum())(x).shape == (3,)
    assert jacobian(lambda x: x * 2)(rgrad.tensor(3.0, dtype=real())).tolist() == 2.0


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_jacrev_in_chunks(size: int) -> None:
    x = point(0.3, -0.7, 1.1)

    def f(x: Any) -> Any:
        return x.outer(x), x.sum()

    for have, need in zip(jacrev(f, chunk_size=size)(x), jacrev(f)(x), strict=True):
        close(have, need)


def test_hessians() -> None:
    x = point(0.3, -0.7, 1.1)

    def f(x: Any) -> Any:
        return (net(x) ** 2).sum() + x.prod()

    ways = [
        hessian(f),
        jacfwd(jacrev(f)),
        jacrev(jacfwd(f)),
        jacrev(jacrev(f)),
        jacfwd(jacfwd(f)),
        jacfwd(grad(f)),
        jacrev(grad(f)),
    ]
    found = [way(x) for way in ways]
    for one in found[1:]:
        close(one, found[0])
    close(found[0], functional.hessian(f, x))
    if real() == rgrad.float64:
        close(found[0], differences(grad(f), x))
    blocks = hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(x, x)
    close(blocks[0][1], rgrad.diag(2 * x))
    close(blocks[1][1], rgrad.zeros(3, 3))


def slope(f: Any) -> Any:
    return lambda x: jvp(f, (x,), (rgrad.ones_like(x),))[1]


def test_higher_orders() -> None:
    x = rgrad.tensor(0.7, dtype=real())
    f: Any = rgrad.sin
    for n in range(1, 6):
        f = grad(f) if n % 2 else slope(f)
        close(f(x), math.sin(0.7 + n * math.pi / 2))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_functional_vectorized(strategy: str) -> None:
    x, y = point(0.3, -0.7, 1.1), point(1.0, 2.0)

    def f(x: Any, y: Any) -> Any:
        return x.outer(y).sin(), y * 2

    got = functional.jacobian(f, (x, y), vectorize=True, strategy=strategy)
    for row, need in zip(got, functional.jacobian(f, (x, y)), strict=True):
        for a, b in zip(row, need, strict=True):
            close(a, b)
    close(functional.jacobian(net, x, vectorize=True, strategy=strategy), functional.jacobian(net, x))
    g = lambda x, y: (x.outer(y).sin()).sum()  # noqa: E731
    got = functional.hessian(g, (x, y), vectorize=True, outer_jacobian_strategy=strategy)
    for row, need in zip(got, functional.hessian(g, (x, y)), strict=True):
        for a, b in zip(row, need, strict=True):
            close(a, b)


def test_functional_arguments() -> None:
    x = point(0.3, -0.7).requires_grad_()
    made = functional.jacobian(lambda x: x**3, x, create_graph=True, vectorize=True)
    close(rgrad.autograd.grad(made.sum(), x)[0], (6 * x).tolist())
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        functional.jacobian(net, x, strategy="sideways")
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(lambda x: x, x, strict=True, vectorize=True)
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(lambda x: x, x, strict=True, vectorize=True, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="not supported together"):
        functional.jacobian(lambda x: x, x, create_graph=True, vectorize=True, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        functional.jacobian(lambda x: x, x, strategy="forward-mode")


def test_batches_of_cotangents() -> None:
    x = point(0.3, -0.7, 1.1).requires_grad_()
    y = net(x)
    eye = rgrad.eye(2, dtype=real())
    (got,) = rgrad.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)
    for row, v in zip(got, eye, strict=True):
        close(row, rgrad.autograd.grad(y, x, v, retain_graph=True)[0])
    z = point(1.0)
    z.requires_grad_()
    assert rgrad.autograd.grad(y, (x, z), eye, is_grads_batched=True, retain_graph=True, allow_unused=True)[1] is None
    assert rgrad.autograd.grad(y, z, eye, is_grads_batched=True, retain_graph=True, materialize_grads=True)[
        0
    ].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        rgrad.autograd.grad(y, x, rgrad.ones(2, dtype=real()), is_grads_batched=True)
    with pytest.raises(ValueError, match="Got in_dim=0"):
        rgrad.autograd.grad(y, x, is_grads_batched=True)


# ---------------------------------------------------------------------------------------------------- modules


def make_net() -> Any:
    rgrad.manual_seed(3)
    return rgrad.nn.Sequential(rgrad.nn.Linear(3, 4), rgrad.nn.Tanh(), rgrad.nn.Linear(4, 2)).to(real())


def test_functional_call() -> None:
    model = make_net()
    x = rgrad.randn(5, 3, dtype=real())
    own = dict(model.named_parameters())
    doubled = {name: p.detach() * 2 for name, p in own.items()}
    before = model(x).tolist()
    out = functional_call(model, doubled, (x,))
    assert dict(model.named_parameters()).keys() == own.keys()
    assert all(a is b for a, b in zip(model.parameters(), own.values(), strict=True))
    close(model(x), before)
    with rgrad.no_grad():
        for p in model.parameters():
            p.mul_(2)
    close(out, model(x).tolist())
    close(functional_call(model, ({"0.weight": own["0.weight"]}, {"2.bias": own["2.bias"]}), x), model(x).tolist())
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(model, (own, own), x)
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(model, {"0.weight": own["0.weight"]}, x, strict=True)
    with pytest.raises(TypeError, match="0.weight"):
        functional_call(model, {"0.weight": 3}, x)  # type: ignore[dict-item]
    with pytest.raises(ZeroDivisionError):
        functional_call(make_failing(), {"weight": own["0.weight"]}, x)


def make_failing() -> Any:
    class Failing(rgrad.nn.Linear):
        def forward(self, x: Any) -> Any:
            raise ZeroDivisionError

    return Failing(3, 4)


def test_tied_weights_and_buffers() -> None:
    class Tied(rgrad.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = rgrad.nn.Parameter(rgrad.zeros((), dtype=real()))
            self.b = self.a
            self.register_buffer("count", rgrad.zeros((), dtype=real()))

        def forward(self, x: Any) -> Any:
            self.count = self.count + 1
            return x + self.a + self.b

    model = Tied()
    one, zero = rgrad.ones((), dtype=real()), rgrad.zeros((), dtype=real())
    assert functional_call(model, {"a": one}, zero).item() == 2.0
    assert functional_call(model, {"a": one}, zero, tie_weights=False).item() == 1.0
    with pytest.raises(ValueError, match="tied"):
        functional_call(model, {"a": one, "b": one * 2}, zero)
    given = {"count": zero}
    functional_call(model, given, zero)
    assert given["count"].item() == 1.0
    assert model.count.item() == 2.0


def test_gradients_by_parameters() -> None:
    model = make_net()
    x, t = rgrad.randn(5, 3, dtype=real()), rgrad.randn(5, 2, dtype=real())
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params: Any, x: Any, t: Any) -> Any:
        return (functional_call(model, params, (x,)) - t).square().mean()

    got = grad(loss)(params, x, t)
    ((model(x) - t).square().mean()).backward()
    for name, p in model.named_parameters():
        close(got[name], p.grad)
    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, t)
    for name, p in model.named_parameters():
        assert each[name].shape == (5, *p.shape)
        close(each[name].mean(0), p.grad)


def test_ensembles() -> None:
    models = [rgrad.nn.Linear(3, 2).to(real()) for _ in range(4)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (4, 2, 3)
    assert params["weight"].is_leaf
    assert params["weight"].requires_grad
    x = rgrad.randn(5, 3, dtype=real())
    out = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
    close(out, rgrad.stack([m(x) for m in models]))
    out.sum().backward()
    assert params["bias"].grad.tolist() == [[5.0, 5.0]] * 4
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state([models[0], rgrad.nn.Linear(3, 2).eval()])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state(
            [models[0], rgrad.nn.Bilinear(3, 2, 1) if hasattr(rgrad.nn, "Bilinear") else rgrad.nn.Tanh()]
        )


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: grad(scalar)(x.long()), RuntimeError, "floating point"),
        (lambda x: grad(scalar)(3.0), ValueError, "must be Tensor, got <class 'float'>"),
        (lambda x: grad(lambda x: x)(x), RuntimeError, "return a scalar Tensor, got tensor with 1 dims"),
        (lambda x: grad(lambda x: 3)(x), RuntimeError, "to return a Tensor, got <class 'int'>"),
        (lambda x: grad(lambda x: x.sum(), has_aux=True)(x), RuntimeError, "should be a tuple: \\(output, aux\\)"),
        (lambda x: grad(scalar, argnums=2)(x), RuntimeError, "Got argnum=2, but only 1 positional inputs"),
        (lambda x: grad(scalar, argnums="a")(x), RuntimeError, "argnums must be int or Tuple"),
        (lambda x: grad(scalar, argnums=())(x), RuntimeError, "argnums must be non-empty"),
        (lambda x: grad(scalar, argnums=(0, 0))(x), RuntimeError, "must be unique"),
        (lambda x: vjp(lambda x: (x, 3), x), RuntimeError, "to return only tensors"),
        (lambda x: vjp(lambda x: None, x), RuntimeError, "non-empty output"),
        (lambda x: vjp(lambda x: x.long(), x), RuntimeError, "floating-point or complex Tensors"),
        (lambda x: vjp(scalar, x)[1]((x, x)), RuntimeError, "pytree structure of cotangents"),
        (lambda x: jvp(scalar, x, x), RuntimeError, "Expected primals to be a tuple"),
        (lambda x: jvp(scalar, (x,), (x, x)), RuntimeError, "the same python structure"),
        (lambda x: jvp(scalar, (x,), (x[:1],)), RuntimeError, "different size"),
        (lambda x: jvp(scalar, (x,), (3.0,)), RuntimeError, "to only contain Tensors"),
        (lambda x: jvp(scalar, (), ()), RuntimeError, "at least one Tensor"),
        (lambda x: jvp(lambda x: (x, "a"), (x,), (x,)), RuntimeError, "to return only tensors"),
        (lambda x: jvp(scalar, (x.long(),), (x.long(),)), ValueError, "floating point"),
        (lambda x: jacrev(scalar, chunk_size=0), ValueError, "should be greater than 0"),
        (lambda x: jacfwd(scalar)(3.0), RuntimeError, "only contain Tensors"),
    ],
)
def test_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(point(1.0, 2.0))
    assert rgrad._C._top_level() == 0


def test_exceptions_leave_all_levels() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    x = point(1.0, 2.0)
    for way in (grad(broken), jacrev(grad(broken)), jacfwd(jacrev(broken)), vmap(grad(broken)), hessian(vmap(broken))):
        with pytest.raises(KeyError, match="mine"):
            way(x)
        assert rgrad._C._top_level() == 0
        assert rgrad.is_grad_enabled()
    close(grad(scalar)(x), scalar_grad(x))


def test_tensors_that_escape() -> None:
    kept: list[Any] = []

    def keeps(x: Any) -> Any:
        kept.append(x * 2)
        return x.sum()

    x = point(1.0, 2.0)
    grad(keeps)(x)
    close(kept[0] + 1, [3.0, 5.0])
    vmap(keeps)(x.view(1, 2))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[1] + 1


# ---------------------------------------------------------------------------------------------------- trees


def test_trees_of_all_kinds() -> None:
    tree = {"a": [1, (2, None)], "b": OrderedDict(x=Pair(3, 4)), "c": ()}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4]
    again = tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again["b"]["x"]) is Pair
    assert spec == tree_flatten(again)[1]
    assert spec != tree_flatten({"a": 1})[1]
    assert tree_map(lambda a, b: (a, b), [1, 2], [3, {"k": 4}]) == [(1, 3), (2, {"k": 4})]
    with pytest.raises(ValueError, match="leaves"):
        tree_unflatten([1], spec)
    with pytest.raises(ValueError, match="mismatch"):
        tree_map(lambda a, b: a, [1, 2], (1, 2))
    with pytest.raises(TypeError, match="TreeSpec"):
        tree_unflatten([1], 3)  # type: ignore[arg-type]


def test_results_are_freed_without_the_garbage_collector() -> None:
    """No cycle holds what a transform gave: large gradients go as soon as their last name does."""
    gc.collect()
    gc.disable()
    try:
        found = vmap(grad(lambda p, x: (p["w"] * x).sum()), in_dims=(None, 0))({"w": rgrad.ones(3)}, rgrad.ones(2, 3))
        alive = weakref.ref(found["w"])
        del found
        assert alive() is None
    finally:
        gc.enable()
