"""Rows where the kernels are everything: matrices of 1024x1024 and vectors of 4M, float32."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy

N = 1 << 22


def inputs(*shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape, dtype=np.float32), rng.standard_normal(shape, dtype=np.float32)


def tensors(call: Callable[[ModuleType, Any, Any], Any], *shape: int) -> Callable[[ModuleType], Work]:
    def make(lib: ModuleType) -> Work:
        a, b = (lib.tensor(array) for array in inputs(*shape))

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    call(lib, a, b)

        return Work(run, lambda: to_numpy(call(lib, a, b)))

    return make


def arrays(call: Callable[[Any, Any], Any], *shape: int) -> Callable[[], Work]:
    def make() -> Work:
        a, b = inputs(*shape)

        def run(n: int) -> None:
            for _ in repeat(None, n):
                call(a, b)

        return Work(run, lambda: [call(a, b)])

    return make


def jax_arrays(call: Callable[[Any, Any, Any], Any], *shape: int) -> Callable[[], Work]:
    def make() -> Work:
        import jax.numpy as jnp

        a, b = (jnp.asarray(array) for array in inputs(*shape))

        def run(n: int) -> None:
            for _ in repeat(None, n):
                call(jnp, a, b).block_until_ready()

        return Work(run, lambda: [np.asarray(call(jnp, a, b))])

    return make


def row(name: str, what: str, target: float, call: Callable[[Any, Any, Any], Any], *shape: int, rtol: float) -> Row:
    others = {"numpy": arrays(lambda a, b: call(np, a, b), *shape), "jax": jax_arrays(call, *shape)}
    return Row(name, what, target, tensors(call, *shape), rtol=rtol, others=others)


ROWS = [
    row("matmul_1024", "matmul 1024x1024", 0.9, lambda lib, a, b: a @ b, 1024, 1024, rtol=1e-5),
    row("add_4m", "add, 4M", 1.0, lambda lib, a, b: a + b, N, rtol=1e-7),
    row("exp_4m", "exp, 4M", 1.0, lambda lib, a, b: lib.exp(a), N, rtol=1e-6),
    row("tanh_4m", "tanh, 4M", 1.0, lambda lib, a, b: lib.tanh(a), N, rtol=1e-6),
    row("sum_4m", "sum, 4M", 1.0, lambda lib, a, b: a.sum(), N, rtol=1e-4),
]
