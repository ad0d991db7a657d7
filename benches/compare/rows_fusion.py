"""Rows about pending results: pointwise chains in one pass over memory, and what such chains hold at most.

Whoever has a tensor's address may read its memory at any time, so nothing is pending on it any more: these rows look at
an element instead.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Check, Row, Settings, Work, to_numpy

N = 1 << 22
PARAMETERS = 10_000_000


def vectors(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(n, dtype=np.float32), rng.standard_normal(n, dtype=np.float32)


def loss_of(x: Any, y: Any) -> Any:
    return ((x * y + x).tanh() * y).sum()


def chain(both: bool) -> Callable[[ModuleType], Work]:
    """The loss and its gradients; one that is still pending is computed when an element of it is asked for."""

    def make(lib: ModuleType) -> Work:
        x, y = (lib.tensor(a) for a in vectors(N))
        leaves = [x.requires_grad_(), y.requires_grad_()] if both else [x.requires_grad_()]

        def run(n: int) -> None:
            for _ in repeat(None, n):
                for leaf in leaves:
                    leaf.grad = None
                loss_of(x, y).backward()
                for leaf in leaves:
                    leaf.grad[0].item()

        def result() -> list[Any]:
            run(1)
            return to_numpy(*(leaf.grad for leaf in leaves))

        return Work(run, result)

    return make


def jax_chain(both: bool) -> Callable[[], Work]:
    def make() -> Work:
        import jax
        import jax.numpy as jnp

        x, y = (jnp.asarray(a) for a in vectors(N))

        def loss(x: Any, y: Any) -> Any:
            return (jnp.tanh(x * y + x) * y).sum()

        gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1) if both else (0,)))

        def run(n: int) -> None:
            for _ in repeat(None, n):
                jax.block_until_ready(gradients(x, y))

        return Work(run, lambda: [np.asarray(g) for g in gradients(x, y)[1]])

    return make


def adam(lib: ModuleType) -> Work:
    """Steps of the optimizer as its users get it, gradients given."""
    p, g = (lib.tensor(a) for a in vectors(PARAMETERS))
    p.requires_grad_()
    p.grad = g
    optimizer = lib.optim.Adam([p], lr=1e-3)

    def run(n: int) -> None:
        for _ in repeat(None, n):
            optimizer.step()
            p[0].item()

    def result() -> list[Any]:
        run(1)
        return to_numpy(p)

    return Work(run, result)


# In a process of its own: the most memory that it had since its inputs were there, in tensors of 128 MB.
PEAK = """
import {module} as lib

SIZE = 32 << 20
lib.set_num_threads({threads})

def resident(name):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name + ":"))

def step(y, x):
    return (y * x + x).tanh()

def chain(x, y):
    for _ in range(10):
        y = step(y, x)
    return y[0].item()

def total(x, y):
    return ((x * y + x).tanh() * y).sum().item()

def gather(x, y):
    kept = x
    for n in range(10):
        kept = kept + lib.full_like(kept, 0.5 * n)
    return kept[0].item()

small = lib.full((SIZE // 64,), 0.5)  # kernels, threads and counters are there before the measurement
{work}(small, small)
x, y = lib.full((SIZE,), 0.5), lib.full((SIZE,), 0.25)
x[0].item(), y[0].item()
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
before = resident("VmRSS")
with lib.no_grad():
    {work}(x, y)
print((resident("VmHWM") - before) / (4 * SIZE))
"""


def peak(module: str, work: str, settings: Settings) -> tuple[float | None, str]:
    code = PEAK.format(module=module, work=work, threads=settings.threads)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    return float(done.stdout), f"{float(done.stdout):.2f} tensors"


def memory(name: str, what: str, work: str, most: float | None) -> Check:
    """`most` tensors at most, or as many as PyTorch."""

    def measure(settings: Settings) -> tuple[str, str, bool | None]:
        ours, said = peak("rgrad", work, settings)
        theirs, told = peak("torch", work, settings) if "torch" in settings.modules else (None, "")
        limit = theirs if most is None else most
        if ours is None:
            return said, told, False
        # The resident size is known to pages and to what threads' stacks take in between.
        return said, told, None if limit is None else ours <= limit + 0.02

    return Check(name, what, "<= torch" if most is None else f"<= {most:g}", measure)


def row(name: str, what: str, target: float, both: bool) -> Row:
    return Row(name, what, target, chain(both), rtol=1e-5, others={"jax": jax_chain(both)})


ROWS = [
    row("fused_grad_x", "((x*y+x).tanh()*y).sum(), 4M, gradient of x", 3.0, both=False),
    row("fused_grad_xy", "((x*y+x).tanh()*y).sum(), 4M, both gradients", 2.5, both=True),
    Row("fused_adam_10m", "Adam.step, 10M parameters", 2.0, adam, rtol=1e-5),
]
CHECKS = [
    memory("memory_chain", "10 of y = (y*x+x).tanh(), 128 MB, above inputs", "chain", 1.6),
    memory("memory_sum", "((x*y+x).tanh()*y).sum(), 128 MB, above inputs", "total", 0.3),
    memory("memory_gather", "10 of y = y + new tensor, 128 MB, above inputs", "gather", None),
]
