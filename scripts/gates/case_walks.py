"""Cases of `hashes` that are written out: reductions, scans, sorts, indices, casts, random numbers, fused programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import rgrad
from case_kit import ALL, FLOATS, INTEGERS, LAYOUTS, Case, Operand, cases, some

F = rgrad.nn.functional
WIDE = FLOATS[:2]

# Rows and columns that are few, narrow, a block, more than one task.
SHAPES = ((1,), (5, 7), (65, 9), (9, 257), (3, 2050), (300, 16), (2, 3, 70), (40, 5, 33), (70001,), (2, 70001))


def reductions() -> Iterator[Case]:
    plain = (
        "sum",
        "mean",
        "prod",
        "amax",
        "amin",
        "var",
        "std",
        "nansum",
        "any",
        "all",
        "count_nonzero",
        "argmax",
        "argmin",
        "norm",
    )
    for shape in SHAPES:
        for dim in (None, *range(len(shape))):
            for name in plain:
                method = getattr(rgrad.Tensor, name, None) or getattr(rgrad, name)
                call = method if dim is None else partial(method, dim=dim)
                special = name not in ("prod", "var", "std", "norm")
                low, high = (-1.2, 1.2) if name == "prod" else (-3.0, 3.0)
                # Integers have loops of their own in few of them.
                dtypes = ALL if (len(shape) < 3 and shape[0] < 100) or name in ("sum", "amax", "argmax") else FLOATS
                layouts = LAYOUTS if shape[-1] < 60000 else LAYOUTS[::2]
                yield from cases(
                    f"{name}/{shape} {dim}", call, some(shape, low=low, high=high, special=special), dtypes, layouts
                )
    for shape in ((5, 7), (9, 257), (300, 16), (2, 9001)):
        for dim in (0, 1):
            for name in ("max", "min", "median", "nanmedian", "mode", "aminmax", "var_mean", "std_mean"):
                function = getattr(rgrad, name)
                call = partial(function, dim=dim)
                yield from cases(f"{name}/{shape} {dim}", call, some(shape), ALL, LAYOUTS[:2])
            yield from cases(
                f"quantile/{shape} {dim}",
                partial(rgrad.quantile, q=0.3, dim=dim),
                some(shape),
                WIDE,
                LAYOUTS[:2],
            )
            for p in (0, 1, 2, 3, float("inf")):
                yield from cases(
                    f"norm/{shape} {dim} {p}",
                    partial(rgrad.linalg.vector_norm, ord=p, dim=dim),
                    some(shape),
                    FLOATS,
                    LAYOUTS[:2],
                )
    yield from cases("sum/of two dimensions", lambda x: x.sum((0, 2)), some((40, 5, 33)), ALL, LAYOUTS)
    yield from cases("sum/long", lambda x: x.sum(), some((1 << 20,)), FLOATS)


def scans() -> Iterator[Case]:
    for shape in ((1,), (5, 7), (33, 16), (9, 1041), (1100, 9), (40000,), (2, 3, 70), (8321, 2)):
        for dim in range(len(shape)):
            for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
                function = getattr(rgrad, name)
                call = partial(function, dim=dim)
                low, high = (-1.1, 1.1) if name == "cumprod" else (-3.0, 3.0)
                dtypes = FLOATS if name == "logcumsumexp" else ALL
                yield from cases(f"{name}/{shape} {dim}", call, some(shape, low=low, high=high), dtypes, LAYOUTS)


def sorts() -> Iterator[Case]:
    for shape in ((1,), (5, 7), (4, 33), (300, 16), (2, 5000), (33000,)):
        for dim in range(len(shape)):
            for descending in (False, True):
                call = partial(rgrad.sort, dim=dim, descending=descending, stable=True)
                yield from cases(f"sort/{shape} {dim} {descending}", call, some(shape, special=True), ALL, LAYOUTS)
            k = max(1, shape[dim] // 3)
            yield from cases(
                f"topk/{shape} {dim}",
                lambda x, d=dim, k=k: rgrad.topk(x, k, dim=d)[0],
                some(shape),
                FLOATS + INTEGERS,
                LAYOUTS[:2],
            )
            yield from cases(
                f"kthvalue/{shape} {dim}",
                lambda x, d=dim, k=k: rgrad.kthvalue(x, k, dim=d)[0],
                some(shape),
                FLOATS + INTEGERS,
            )
        yield from cases(
            f"unique/{shape}",
            partial(rgrad.unique, return_inverse=True, return_counts=True),
            some(shape),
            ALL,
            gradient=False,
        )
        bounds = Operand((50,), layout="dense")
        yield from cases(
            f"searchsorted/{shape}",
            lambda x, b: rgrad.searchsorted(b.sort()[0], x),
            [*some(shape), bounds],
            FLOATS + INTEGERS,
            LAYOUTS[:2],
            False,
        )
    long = some(((1 << 19) + 5,))
    yield from cases("sort/long", rgrad.sort, long, ("float32", "int64", "uint8"), gradient=False)
    yield from cases("mode/long", rgrad.mode, long, ("int64", "uint8"), gradient=False)
    yield from cases("nonzero/long", rgrad.nonzero, long, ("float32", "int8"), gradient=False)
    yield from cases("nonzero", lambda x: rgrad.nonzero(x > 0), some((33, 35)), ALL, LAYOUTS, False)
    yield from cases("masked_select", lambda x: x[x > 0], some((333, 135)), ALL, LAYOUTS)


def places(*shape: int, top: int) -> Any:
    """Seeded positions below `top`."""
    count = 1
    for n in shape:
        count *= n
    return ((rgrad.arange(count) * 7919 + 13) % top).reshape(shape)


def scatter_reduced(at: Any, how: str, x: Any, source: Any) -> Any:
    return rgrad.scatter_reduce(x, 0, at, source, how)


def indices() -> Iterator[Case]:
    for rows, columns, many in ((5, 7, 9), (40, 16, 33), (300, 130, 700), (1000, 1, 20000), (9, 600, 90)):
        size, shape = f"{rows}x{columns} {many}", some((rows, columns))
        at = places(many, top=rows)
        wide = places(many, columns, top=rows)
        source = Operand((many, columns))
        yield from cases(f"getitem/{size}", lambda x, i=at: x[i], shape, ALL, LAYOUTS)
        yield from cases(f"index_select/{size}", lambda x, i=at: rgrad.index_select(x, 0, i), shape, ALL, LAYOUTS)
        yield from cases(f"embedding/{size}", lambda x, i=at: F.embedding(i, x), shape, FLOATS, LAYOUTS)
        yield from cases(
            f"embedding_bag/{size}", lambda x, i=at: F.embedding_bag(i[: len(i) // 3 * 3].reshape(-1, 3), x), shape
        )
        yield from cases(f"gather/{size}", lambda x, i=wide: rgrad.gather(x, 0, i), shape, ALL, LAYOUTS)
        yield from cases(f"take/{size}", lambda x, i=at: rgrad.take(x, i), shape, ALL, LAYOUTS)
        yield from cases(
            f"index_add/{size}", lambda x, s, i=at: rgrad.index_add(x, 0, i, s), [*shape, source], ALL, LAYOUTS
        )
        yield from cases(
            f"scatter_add/{size}", lambda x, s, i=wide: rgrad.scatter_add(x, 0, i, s), [*shape, source], ALL, LAYOUTS
        )
        yield from cases(
            f"index_put/{size}",
            lambda x, s, i=at: rgrad.index_put(x, (i,), s, accumulate=True),
            [*shape, source],
            ALL,
            LAYOUTS,
        )
        for how in ("sum", "prod", "mean", "amax", "amin"):
            reduced = partial(scatter_reduced, wide, how)
            yield from cases(f"scatter_reduce/{size} {how}", reduced, [*shape, source], FLOATS + INTEGERS, LAYOUTS[:2])
        few = places(min(rows, 5), top=rows)
        yield from cases(
            f"index_copy/{size}", lambda x, s, i=few: rgrad.index_copy(x, 0, i, s[: len(i)]), [*shape, source], ALL
        )
        yield from cases(f"index_fill/{size}", lambda x, i=few: rgrad.index_fill(x, 0, i, 1), shape, ALL, LAYOUTS)


def casts() -> Iterator[Case]:
    for shape in ((3,), (33, 35), (181, 383)):
        for to in ALL:
            cast = partial(rgrad.Tensor.to, dtype=getattr(rgrad, to))
            yield from cases(f"to {to}/{shape}", cast, some(shape, special=True), ALL, LAYOUTS)
        moves = {
            "contiguous": lambda x: x.contiguous(),
            "cat": lambda x: rgrad.cat([x, x, x], -1),
            "stack": lambda x: rgrad.stack([x, x], -1),
            "flip": lambda x: rgrad.flip(x, [-1]),
            "roll": lambda x: rgrad.roll(x, 2, -1),
            "repeat": lambda x: x.repeat(2, *[1] * (x.dim() - 1)),
            "pad": lambda x: F.pad(x, (1, 2)),
            "reflect": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
            "tril": lambda x: rgrad.tril(x.reshape(1, -1).expand(7, -1)),
            "repeat_interleave": lambda x: rgrad.repeat_interleave(x, 3, 0),
            "fill": lambda x: rgrad.full_like(x, 2),
            "slice write": lambda x: rgrad.slice_scatter(x, x[:2] * 0 + 1, 0, 0, 2),
        }
        for name, call in moves.items():
            yield from cases(f"{name}/{shape}", call, some(shape), ALL, LAYOUTS)
    for size in (5, 70000):
        yield from cases(f"arange/{size}", lambda x, n=size: rgrad.arange(0, n * 0.5, 0.5).to(x.dtype), some((1,)), ALL)
        yield from cases(
            f"linspace/{size}", lambda x, n=size: rgrad.linspace(0, 100, n, dtype=x.dtype), some((1,)), FLOATS
        )


def randoms() -> Iterator[Case]:
    for size in (1, 17, 33000):
        x = some((size,), low=0.1, high=0.9)
        fills = {
            "uniform_": lambda x: x.uniform_(-1, 2),
            "normal_": lambda x: x.normal_(1, 2),
            "exponential_": lambda x: x.exponential_(),
            "geometric_": lambda x: x.geometric_(0.3),
            "cauchy_": lambda x: x.cauchy_(),
            "log_normal_": lambda x: x.log_normal_(),
            "bernoulli_": lambda x: x.bernoulli_(0.4),
            "random_": lambda x: x.random_(0, 2),
            "dropout": lambda x: F.dropout(x, 0.3),
            "bernoulli": rgrad.bernoulli,
            "poisson": rgrad.poisson,
            "multinomial": lambda x: rgrad.multinomial(x, 1),
            "randperm": lambda x: rgrad.randperm(x.numel()),
            "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=0),
        }
        for name, call in fills.items():
            yield from cases(f"{name}/{size}", lambda x, f=call: f(x.clone()), x, ALL)
    yield from cases("dropout/layouts", lambda x: F.dropout(x, 0.3), some((181, 183)), FLOATS, LAYOUTS)


def programs() -> Iterator[Case]:
    """Chains that are deferred and run as one, with and without a reduction, a product or a softmax at the end."""
    chains: dict[str, Any] = {
        "chain": lambda a, b: ((a * b + 1).tanh() * a - b.exp()).sigmoid(),
        "broadcast": lambda a, b: (a * b[:1] + b[:, :1]).relu() * 2,
        "sum": lambda a, b: ((a - b) * (a - b)).sum(),
        "row sums": lambda a, b: (a * b).exp().sum(-1),
        "column sums": lambda a, b: (a * b + a).abs().sum(0),
        "amax": lambda a, b: (a * b).sin().amax(-1),
        "mean": lambda a, b: (a.relu() + b).mean(),
        "softmax": lambda a, b: (a * 0.5 + b).softmax(-1),
        "cumsum": lambda a, b: (a * 0.5 + b).cumsum(-1),
        "layer_norm": lambda a, b: F.layer_norm(a * 0.5 + b, a.shape[-1:]),
        "product": lambda a, b: ((a @ b.mT) * 0.1 + 1).tanh(),
        "where": lambda a, b: rgrad.where(a > b, a * 2, b - a).log1p(),
        "gelu": lambda a, b: F.gelu(a + b) * F.silu(a),
        "cast": lambda a, b: (a.float() * b.float() + 1).to(a.dtype) * a,
        "in place": lambda a, b: (a * b).add_(1).mul_(b).relu_(),
    }
    for shape in ((5, 7), (33, 35), (129, 130), (257, 300), (600, 333)):
        for name, call in chains.items():
            yield from cases(f"program/{name} {shape}", call, some(shape, shape), FLOATS, LAYOUTS)
            if name in ("broadcast", "sum", "row sums", "column sums", "amax", "where"):
                yield from cases(f"program/{name} {shape}", call, some(shape, shape), INTEGERS[:2], LAYOUTS[:2])
