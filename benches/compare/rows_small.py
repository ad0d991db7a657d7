"""Rows where the overhead of one operation is everything: tiny tensors, with and without gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy

CHAIN = 1000


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def leaf(lib: ModuleType, array: Any) -> Any:
    return lib.tensor(array).requires_grad_()


def scalar_chain(lib: ModuleType) -> Work:
    x = lib.tensor(0.9999, requires_grad=True)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            y = x
            for _ in repeat(None, CHAIN):
                y = y * x
            x.grad = None
            y.backward()

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.grad)

    return Work(run, result)


def scalar_chain_frames(lib: ModuleType) -> Work:
    x = lib.tensor(0.9999, requires_grad=True)

    def step(y: Any, x: Any) -> Any:
        return y * x

    def run(n: int) -> None:
        for _ in repeat(None, n):
            y = x
            for _ in repeat(None, CHAIN):
                y = step(y, x)
            x.grad = None
            y.backward()

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.grad)

    return Work(run, result)


def add_no_grad(lib: ModuleType) -> Work:
    a, b = lib.tensor(random(4, 4)), lib.tensor(random(4, 4, seed=1))

    def run(n: int) -> None:
        with lib.no_grad():
            for _ in repeat(None, n):
                a + b

    return Work(run, lambda: to_numpy(a + b))


def add_no_grad_frames(lib: ModuleType) -> Work:
    a, b = lib.tensor(random(4, 4)), lib.tensor(random(4, 4, seed=1))

    def add(a: Any, b: Any) -> Any:
        return a + b

    def run(n: int) -> None:
        with lib.no_grad():
            for _ in repeat(None, n):
                add(a, b)

    return Work(run, lambda: to_numpy(add(a, b)))


def add_numpy() -> Work:
    a, b = random(4, 4), random(4, 4, seed=1)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            a + b

    return Work(run, lambda: [a + b])


def add_jax() -> Work:
    import jax.numpy as jnp

    a, b = jnp.asarray(random(4, 4)), jnp.asarray(random(4, 4, seed=1))

    def run(n: int) -> None:
        for _ in repeat(None, n):
            (a + b).block_until_ready()

    return Work(run, lambda: [np.asarray(a + b)])


# Forward and backward of one operation on 4x4. The loops are written out: a callback would cost as much as the work.


def grad_mul(lib: ModuleType) -> Work:
    x, w, g = leaf(lib, random(4, 4)), leaf(lib, random(4, 4, seed=1)), lib.ones(4, 4)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = w.grad = None
            (x * w).backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x * w, x.grad, w.grad)

    return Work(run, result)


def grad_matmul(lib: ModuleType) -> Work:
    x, w, g = leaf(lib, random(4, 4)), leaf(lib, random(4, 4, seed=1)), lib.ones(4, 4)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = w.grad = None
            (x @ w).backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x @ w, x.grad, w.grad)

    return Work(run, result)


def grad_tanh(lib: ModuleType) -> Work:
    x, g = leaf(lib, random(4, 4)), lib.ones(4, 4)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = None
            x.tanh().backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.tanh(), x.grad)

    return Work(run, result)


def grad_sum(lib: ModuleType) -> Work:
    x = leaf(lib, random(4, 4))

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = None
            x.sum().backward()

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.sum(), x.grad)

    return Work(run, result)


def grad_view(lib: ModuleType) -> Work:
    x, g = leaf(lib, random(4, 4)), lib.ones(16)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = None
            x.view(16).backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.view(16), x.grad)

    return Work(run, result)


def grad_index(lib: ModuleType) -> Work:
    x, g = leaf(lib, random(4, 4)), lib.ones(4)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = None
            x[1].backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x[1], x.grad)

    return Work(run, result)


def mlp_step(lib: ModuleType) -> Work:
    nn = lib.nn

    def fresh() -> tuple[Any, Any]:
        model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
        with lib.no_grad():
            for seed, parameter in enumerate(model.parameters()):
                parameter.copy_(lib.tensor(0.2 * random(*parameter.shape, seed=seed)))
        return model, lib.optim.SGD(model.parameters(), lr=0.01)

    x, y, loss_of = lib.tensor(random(16, 10)), lib.tensor(random(16, 2, seed=1)), nn.MSELoss()

    def steps(model: Any, optimizer: Any, n: int) -> None:
        for _ in repeat(None, n):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()

    timed = fresh()

    def result() -> list[Any]:
        model, optimizer = fresh()
        steps(model, optimizer, 20)
        return to_numpy(*model.parameters())

    return Work(lambda n: steps(*timed, n), result)


def hooks(lib: ModuleType) -> Work:
    """A hook of each kind: on an inner tensor, on its node before and after, on a leaf, after accumulation."""
    x, w = leaf(lib, random(4, 4)), leaf(lib, random(4, 4, seed=1))
    g = lib.ones(4, 4)
    w.register_hook(lambda grad: None)
    w.register_post_accumulate_grad_hook(lambda p: None)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = w.grad = None
            y = x * w
            y.register_hook(lambda grad: grad)
            y.grad_fn.register_prehook(lambda grads: None)
            y.grad_fn.register_hook(lambda inputs, grads: None)
            y.backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.grad, w.grad)

    return Work(run, result)


def mlp(lib: ModuleType) -> tuple[Any, Any]:
    """A small network without optimizer: a step of its loss and gradients, and what it computed."""
    x, target = lib.tensor(random(64, 32)), lib.tensor(random(64, 8, seed=1))
    shapes = [(32, 64), (64, 64), (64, 8)]
    weights = [leaf(lib, random(*shape, seed=2 + i) * 0.1) for i, shape in enumerate(shapes)]

    def step() -> None:
        h = x
        for w in weights:
            h = (h @ w).tanh()
            w.grad = None
        ((h - target) ** 2).mean().backward()

    return step, lambda: to_numpy(*(w.grad for w in weights))


def gradients(lib: ModuleType) -> Work:
    step, result = mlp(lib)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            step()

    return Work(run, lambda: (step(), result())[1])


def anomaly(lib: ModuleType) -> Work:
    step, result = mlp(lib)

    def run(n: int) -> None:
        with lib.autograd.set_detect_anomaly(True):
            for _ in repeat(None, n):
                step()

    return Work(run, lambda: (run(1), result())[1])


def custom_function(lib: ModuleType) -> Work:
    class Exp(lib.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad * y

    x, g, apply = leaf(lib, random(4, 4)), lib.ones(4, 4), Exp.apply

    def run(n: int) -> None:
        for _ in repeat(None, n):
            x.grad = None
            apply(x).backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(apply(x), x.grad)

    return Work(run, result)


def gradcheck(fast: bool) -> Callable[[ModuleType], Work]:
    def make(lib: ModuleType) -> Work:
        x = lib.tensor(random(100).astype(np.float64), requires_grad=True)
        check = lib.autograd.gradcheck
        outcome: list[bool] = []

        def func(x: Any) -> Any:
            return x.sin() * x.exp()

        def run(n: int) -> None:
            outcome[:] = [check(func, (x,), fast_mode=fast) for _ in repeat(None, n)]

        def result() -> list[Any]:
            run(1)
            return [np.array(outcome)]

        return Work(run, result)

    return make


def saved_hooks(lib: ModuleType) -> Work:
    x, w, g = leaf(lib, random(4, 4)), leaf(lib, random(4, 4, seed=1)), lib.ones(4, 4)
    hooks = lib.autograd.graph.saved_tensors_hooks

    def pack(t: Any) -> Any:
        return t

    def run(n: int) -> None:
        with hooks(pack, pack):
            for _ in repeat(None, n):
                x.grad = w.grad = None
                (x * w).backward(g)

    def result() -> list[Any]:
        run(1)
        return to_numpy(x.grad, w.grad)

    return Work(run, result)


ROWS = [
    Row("scalar_chain", "y = y * x on a scalar, fwd+bwd, per op", 8, scalar_chain, per=CHAIN, rtol=1e-4),
    Row("scalar_chain_frames", "the same, each from a fresh frame", 8, scalar_chain_frames, per=CHAIN, rtol=1e-4),
    Row("add_4x4", "a + b, 4x4, no_grad", 8, add_no_grad, others={"numpy": add_numpy, "jax": add_jax}),
    Row("add_4x4_frames", "the same, each from a fresh frame", 8, add_no_grad_frames),
    Row("grad_mul", "x * w, 4x4, fwd+bwd", 5, grad_mul),
    Row("grad_tanh", "x.tanh(), 4x4, fwd+bwd", 5, grad_tanh),
    Row("grad_matmul", "x @ w, 4x4, fwd+bwd", 5, grad_matmul),
    Row("grad_sum", "x.sum(), 4x4, fwd+bwd", 5, grad_sum),
    Row("grad_view", "x.view(16), fwd+bwd", 5, grad_view),
    Row("grad_index", "x[1] of 4x4, fwd+bwd", 5, grad_index),
    Row("mlp_step", "MLP 10-32-32-2, batch 16, SGD step", 4, mlp_step, rtol=1e-4),
    Row("saved_hooks", "x * w, 4x4, fwd+bwd, both saved through hooks", 1, saved_hooks),
    Row("custom_function", "custom Function on 4x4, fwd+bwd", 4, custom_function),
    Row("hooks", "x * w with a hook of each kind, fwd+bwd", 2, hooks),
    Row("gradients", "gradients of an MLP 32-64-64-8, batch 64", 1, gradients, rtol=1e-4),
    Row("gradients_anomaly", "the same in anomaly mode", 1, anomaly, rtol=1e-4),
    Row("gradcheck_slow", "gradcheck, 100 inputs and outputs", 5, gradcheck(False)),
    Row("gradcheck_fast", "the same in fast mode", 5, gradcheck(True)),
]
