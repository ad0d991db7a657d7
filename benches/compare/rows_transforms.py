"""Rows of function transforms: Jacobians, per-sample gradients, Hessians and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

from harness import Check, Row, Settings, Work, times_slower, to_numpy
from rows_small import random


def mlp(lib: ModuleType, *sizes: int) -> dict[str, Any]:
    """Weights and biases of a fully connected network, scaled so that tanh does not saturate."""
    made = {}
    for i, (n, m) in enumerate(pairwise(sizes)):
        made[f"w{i}"] = lib.tensor(random(m, n, seed=2 * i) / n**0.5)
        made[f"b{i}"] = lib.tensor(random(m, seed=2 * i + 1) * 0.1)
    return made


def forward(lib: ModuleType, p: Any, x: Any) -> Any:
    depth = len(p) // 2
    for i in range(depth):
        x = lib.nn.functional.linear(x, p[f"w{i}"], p[f"b{i}"])
        if i + 1 < depth:
            x = lib.tanh(x)
    return x


def repeated(call: Any) -> Any:
    def run(n: int) -> None:
        for _ in range(n):
            call()

    return run


def jacobian(lib: ModuleType, vectorize: bool = True) -> Work:
    p, x = mlp(lib, 64, 64, 64), lib.tensor(random(64, seed=9))

    def call() -> Any:
        return lib.autograd.functional.jacobian(lambda x: lib.tanh(forward(lib, p, x)), x, vectorize=vectorize)

    return Work(repeated(call), lambda: to_numpy(call()))


def per_sample_gradients(lib: ModuleType) -> Work:
    p, x, y = mlp(lib, 784, 128, 10), lib.tensor(random(256, 784, seed=9)), lib.arange(256) % 10

    def loss(p: Any, x: Any, y: Any) -> Any:
        return lib.nn.functional.cross_entropy(forward(lib, p, x), y)

    each = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))

    def result() -> list[Any]:
        found = each(p, x, y)
        return to_numpy(*(found[name] for name in sorted(found)))

    return Work(repeated(lambda: each(p, x, y)), result)


def hessian(lib: ModuleType) -> Work:
    a, x = lib.tensor(random(50, 50) / 7), lib.tensor(random(50, seed=1))
    found = lib.func.hessian(lambda x: (lib.tanh(a @ x) * x.sin()).sum() + (x * x).sum().log())
    return Work(repeated(lambda: found(x)), lambda: to_numpy(found(x)))


def hvp(lib: ModuleType) -> Work:
    """The product of the Hessian of a loss with a direction in a million weights, forward over backward."""
    p, x = mlp(lib, 512, 1024, 512), lib.tensor(random(16, 512, seed=9))
    v = {name: lib.tensor(random(*w.shape, seed=20 + i) * 0.01) for i, (name, w) in enumerate(p.items())}
    gradient = lib.func.grad(lambda p: forward(lib, p, x).square().mean())

    def call() -> Any:
        return lib.func.jvp(gradient, (p,), (v,))[1]

    return Work(repeated(call), lambda: to_numpy(*call().values()))


def gradient(lib: ModuleType) -> Work:
    """Loss and gradient alone, to set the row above against."""
    p, x = mlp(lib, 512, 1024, 512), lib.tensor(random(16, 512, seed=9))
    both = lib.func.grad_and_value(lambda p: forward(lib, p, x).square().mean())

    def result() -> list[Any]:
        found, value = both(p)
        return to_numpy(value, *found.values())

    return Work(repeated(lambda: both(p)), result)


def plain(lib: ModuleType, inside: bool) -> Work:
    """Small operations on plain tensors, inside a function that is being differentiated or outside."""
    a, b, x = lib.tensor(random(4, 4)), lib.tensor(random(4, 4, seed=1)), lib.tensor(random(3))

    def run(n: int) -> Any:
        for _ in range(n):
            a + b
        return a + b

    def run_inside(n: int) -> Any:
        return lib.func.grad(lambda x: (x.sum(), run(n)), has_aux=True)(x)[1]

    chosen = run_inside if inside else run
    return Work(chosen, lambda: to_numpy(chosen(1)))


def ratio(
    name: str, what: str, limit: float, slow: Callable[[ModuleType], Work], fast: Callable[[ModuleType], Work]
) -> Check:
    """How many times as long as `fast` the work `slow` takes in one and the same library: at least `limit`, or at
    most if it is negative."""

    def measured(settings: Settings) -> tuple[str, str, bool | None]:
        found = {
            lib: times_slower(slow(settings.modules[lib]), fast(settings.modules[lib]), settings)
            for lib in ("rgrad", "torch")
            if lib in settings.modules
        }
        ours = found["rgrad"]
        said = tuple(f"{found[lib]:.2f}x" if lib in found else "" for lib in ("rgrad", "torch"))
        return said[0], said[1], ours >= limit if limit > 0 else ours <= -limit

    return Check(name, what, f">= {limit:g}x" if limit > 0 else f"<= {-limit:g}x", measured)


CHECKS = [
    ratio(
        "func_jacobian_rows",
        "the same Jacobian row by row, beside vectorized",
        5.0,
        lambda m: jacobian(m, False),
        jacobian,
    ),
    ratio("func_hvp_cost", "that product, beside the loss and gradient", -5.0, hvp, gradient),
    ratio(
        "func_level0",
        "4x4 add of plain tensors inside a transform, beside outside",
        -1.1,
        lambda m: plain(m, True),
        lambda m: plain(m, False),
    ),
]

ROWS = [
    Row("func_jacobian", "Jacobian of a 64-64-64 tanh MLP, vectorized", 1.0, jacobian, rtol=1e-4),
    Row("func_per_sample", "per-sample gradients, 784-128-10, batch 256", 1.5, per_sample_gradients, rtol=1e-3),
    Row("func_hessian", "Hessian of a scalar function of 50 variables", 3.0, hessian, rtol=1e-3),
    Row("func_hvp", "Hessian-vector product of a 1M-parameter MLP", 1.0, hvp, rtol=1e-3),
    Row("func_grad", "loss and gradient of the same MLP", 1.0, gradient, rtol=1e-3),
]
