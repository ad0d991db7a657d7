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


def look(result: Any) -> None:
    """Have a result computed that may still be pending."""
    result[(0,) * result.dim()].item()


def tensors(call: Callable[[ModuleType, Any, Any], Any], *shape: int) -> Callable[[ModuleType], Work]:
    def make(lib: ModuleType) -> Work:
        a, b = (lib.tensor(array) for array in inputs(*shape))

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, a, b))

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


def row(
    name: str, what: str, target: float, call: Callable[[Any, Any, Any], Any], *shape: int, rtol: float, moved: int = 0
) -> Row:
    others = {"numpy": arrays(lambda a, b: call(np, a, b), *shape), "jax": jax_arrays(call, *shape)}
    return Row(name, what, target, tensors(call, *shape), rtol=rtol, others=others, moved=moved)


def positions(x: Any) -> Any:
    """Positions below 1024 that look random, of the shape of ``x``."""
    return (x.abs() * 1e6).long() % 1024


def bound(
    name: str,
    what: str,
    call: Callable[[ModuleType, Any, Any], Any],
    *shape: int,
    moved: int,
    rtol: float = 1e-6,
    prepare: Any = None,
) -> Row:
    """A row that waits for memory; `prepare` makes of a library and the two inputs what `call` is given."""

    def make(lib: ModuleType) -> Work:
        a, b = (lib.tensor(array) for array in inputs(*shape))
        if prepare is not None:
            a, b = prepare(lib, a, b)

        def run(n: int) -> None:
            with lib.no_grad():
                for _ in repeat(None, n):
                    look(call(lib, a, b))

        return Work(run, lambda: to_numpy(call(lib, a, b)))

    return Row(name, what, 1.0, make, rtol=rtol, moved=moved)


def with_gradient(name: str, what: str, call: Callable[[ModuleType, Any], Any], *shape: int, moved: int) -> Row:
    """Forward and backward, given a cotangent, until the gradient is there."""

    def make(lib: ModuleType) -> Work:
        x, g = (lib.tensor(array) for array in inputs(*shape))
        x.requires_grad_()

        def once() -> Any:
            (grad,) = lib.autograd.grad(call(lib, x), x, g)
            return grad

        def run(n: int) -> None:
            for _ in repeat(None, n):
                look(once())

        return Work(run, lambda: to_numpy(once()))

    return Row(name, what, 1.0, make, rtol=1e-5, moved=moved)


MB16 = 4 * N
SQUARE = (2048, 2048)
CUBE = (64, 256, 256)

UNARY = [
    bound("sigmoid_4m", "sigmoid, 4M", lambda lib, a, b: lib.sigmoid(a), N, moved=2 * MB16),
    bound("sin_4m", "sin, 4M", lambda lib, a, b: lib.sin(a), N, moved=2 * MB16),
    bound(
        "log1p_4m",
        "log1p of |x|, 4M",
        lambda lib, a, b: lib.log1p(b),
        N,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, b.abs()),
    ),
    bound("gelu_4m", "gelu, 4M", lambda lib, a, b: lib.nn.functional.gelu(a), N, moved=2 * MB16, rtol=1e-5),
    bound(
        "gelu_tanh_4m",
        "gelu by tanh, 4M",
        lambda lib, a, b: lib.nn.functional.gelu(a, approximate="tanh"),
        N,
        moved=2 * MB16,
        rtol=1e-5,
    ),
    bound("exp_out_4m", "exp with out=, 4M", lambda lib, a, b: lib.exp(a, out=b), N, moved=2 * MB16),
]

REDUCED = [
    bound(
        f"{name}_{kind}", f"{name} over {what} of {'x'.join(map(str, shape))}", call(dim), *shape, moved=MB16, rtol=1e-4
    )
    for name, call in {
        "sum": lambda dim: lambda lib, a, b: a.sum(dim),
        "mean": lambda dim: lambda lib, a, b: a.mean(dim),
        "amax": lambda dim: lambda lib, a, b: a.amax(dim),
        "var": lambda dim: lambda lib, a, b: a.var(dim),
        "norm": lambda dim: lambda lib, a, b: a.norm(2, dim),
        "logsumexp": lambda dim: lambda lib, a, b: a.logsumexp(dim),
        "argmax": lambda dim: lambda lib, a, b: a.argmax(dim),
        "cumsum": lambda dim: lambda lib, a, b: a.cumsum(dim),
    }.items()
    for kind, what, dim, shape in (
        ("rows", "the last dimension", 1, SQUARE),
        ("columns", "the first dimension", 0, SQUARE),
        ("middle", "the middle dimension", 1, CUBE),
    )
]

MOVED = [
    bound(
        "broadcast_row",
        "x + a row, 2048x2048",
        lambda lib, a, b: a + b,
        *SQUARE,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, b[0]),
    ),
    bound(
        "broadcast_column",
        "x + a column, 2048x2048",
        lambda lib, a, b: a + b,
        *SQUARE,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, b[:, :1].contiguous()),
    ),
    bound("add_transposed", "x + y.t(), 2048x2048", lambda lib, a, b: a + b.t(), *SQUARE, moved=3 * MB16),
    bound(
        "copy_transposed",
        "x.t().contiguous(), 2048x2048",
        lambda lib, a, b: a.t().contiguous(),
        *SQUARE,
        moved=2 * MB16,
    ),
    bound(
        "copy_permuted",
        "x.permute(2, 0, 1).contiguous()",
        lambda lib, a, b: a.permute(2, 0, 1).contiguous(),
        *CUBE,
        moved=2 * MB16,
    ),
    bound(
        "copy_strided",
        "x[:, ::2].contiguous(), 2048x2048",
        lambda lib, a, b: a[:, ::2].contiguous(),
        *SQUARE,
        moved=3 * MB16 // 2,
    ),
    bound("clone_4m", "clone, 4M", lambda lib, a, b: a.clone(), N, moved=2 * MB16),
    bound("cast_double", "float32 to float64, 4M", lambda lib, a, b: a.double(), N, moved=3 * MB16),
    bound(
        "cast_float",
        "float64 to float32, 4M",
        lambda lib, a, b: a.float(),
        N,
        moved=3 * MB16,
        prepare=lambda lib, a, b: (a.double(), b),
    ),
    bound("cast_half", "float32 to float16, 4M", lambda lib, a, b: a.half(), N, moved=3 * MB16 // 2),
    bound("cast_int", "float32 to int32, 4M", lambda lib, a, b: a.int(), N, moved=2 * MB16),
    bound("cast_long", "float32 to int64, 4M", lambda lib, a, b: a.long(), N, moved=3 * MB16),
    bound(
        "cast_from_long",
        "int64 to float32, 4M",
        lambda lib, a, b: a.float(),
        N,
        moved=3 * MB16,
        prepare=lambda lib, a, b: (a.long(), b),
    ),
    bound("compare_4m", "x > y, 4M", lambda lib, a, b: a > b, N, moved=9 * N),
    bound(
        "where_4m",
        "where(mask, x, y), 4M",
        lambda lib, m, ab: lib.where(m, *ab),
        N,
        moved=13 * N,
        prepare=lambda lib, a, b: (a > 0, (a, b)),
    ),
    bound(
        "masked_fill_4m",
        "masked_fill, 4M",
        lambda lib, a, m: a.masked_fill(m, 0.5),
        N,
        moved=9 * N,
        prepare=lambda lib, a, b: (a, b > 0),
    ),
    bound(
        "masked_select_4m", "x[mask], 4M", lambda lib, a, m: a[m], N, moved=7 * N, prepare=lambda lib, a, b: (a, b > 0)
    ),
    bound("cat_rows", "cat of two 2048x1024, rows", lambda lib, a, b: lib.cat([a, b]), 2048, 1024, moved=2 * MB16),
    bound(
        "cat_columns", "cat of two 2048x1024, columns", lambda lib, a, b: lib.cat([a, b], 1), 2048, 1024, moved=2 * MB16
    ),
    bound(
        "index_select_rows",
        "2048 rows of 2048x2048 by index",
        lambda lib, a, i: a.index_select(0, i),
        *SQUARE,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, lib.arange(2048).flip(0)),
    ),
    bound(
        "index_select_columns",
        "2048 columns of 2048x2048 by index",
        lambda lib, a, i: a.index_select(1, i),
        *SQUARE,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, lib.arange(2048).flip(0)),
    ),
    bound(
        "gather_rows",
        "gather along the rows of 2048x1024",
        lambda lib, a, i: a.gather(1, i),
        2048,
        1024,
        moved=2 * MB16,
        prepare=lambda lib, a, b: (a, positions(b)),
    ),
    bound(
        "scatter_add_rows",
        "scatter_add along the rows of 2048x1024",
        lambda lib, a, ib: a.scatter_add(1, *ib),
        2048,
        1024,
        moved=5 * MB16 // 2,
        rtol=1e-5,
        prepare=lambda lib, a, b: (a, (positions(b), b)),
    ),
    bound(
        "index_add_rows",
        "index_add of 1024 rows to 1024 rows of 1024",
        lambda lib, a, ib: a.index_add(0, *ib),
        1024,
        1024,
        moved=MB16,
        rtol=1e-5,
        prepare=lambda lib, a, b: (a, (positions(b)[0], b)),
    ),
    bound("softmax_rows", "softmax, 2048x1024", lambda lib, a, b: lib.softmax(a, 1), 2048, 1024, moved=MB16),
    bound("softmax_columns", "softmax down, 2048x1024", lambda lib, a, b: lib.softmax(a, 0), 2048, 1024, moved=MB16),
    bound("softmax_long", "softmax, 16x262144", lambda lib, a, b: lib.softmax(a, 1), 16, 262144, moved=2 * MB16),
    bound(
        "log_softmax_rows", "log_softmax, 2048x1024", lambda lib, a, b: lib.log_softmax(a, 1), 2048, 1024, moved=MB16
    ),
    bound("softmax_narrow", "softmax, 20000x16", lambda lib, a, b: lib.softmax(a, 1), 20000, 16, moved=8 * 320_000),
    bound(
        "log_softmax_narrow",
        "log_softmax, 20000x10",
        lambda lib, a, b: lib.log_softmax(a, 1),
        20000,
        10,
        moved=8 * 200_000,
    ),
    with_gradient(
        "log_softmax_grad",
        "log_softmax there and back, 2048x1024",
        lambda lib, x: lib.log_softmax(x, 1),
        2048,
        1024,
        moved=5 * MB16 // 2,
    ),
    with_gradient(
        "softmax_grad",
        "softmax there and back, 2048x1024",
        lambda lib, x: lib.softmax(x, 1),
        2048,
        1024,
        moved=5 * MB16 // 2,
    ),
    bound("topk_rows", "topk(10) values, 1024x1024", lambda lib, a, b: a.topk(10, 1)[0], 1024, 1024, moved=N),
    bound("sort_rows", "sort values, 256x1024", lambda lib, a, b: a.sort(1)[0], 256, 1024, moved=N),
]

ROWS = [
    row("matmul_1024", "matmul 1024x1024", 0.9, lambda lib, a, b: a @ b, 1024, 1024, rtol=1e-5),
    row("add_4m", "add, 4M", 1.0, lambda lib, a, b: a + b, N, rtol=1e-7, moved=3 * MB16),
    row("exp_4m", "exp, 4M", 1.0, lambda lib, a, b: lib.exp(a), N, rtol=1e-6, moved=2 * MB16),
    row("tanh_4m", "tanh, 4M", 1.0, lambda lib, a, b: lib.tanh(a), N, rtol=1e-6, moved=2 * MB16),
    row("sum_4m", "sum, 4M", 1.0, lambda lib, a, b: a.sum(), N, rtol=1e-4, moved=MB16),
    *UNARY,
    *REDUCED,
    *MOVED,
]
