"""Rows of the operation table: choosing by rank or frequency, unique elements, blocks and differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from op_kit import Op, Sample, arg, distinct, normal

OPS: list[Op] = []

CASES: tuple[tuple[tuple[int, ...], str], ...] = (
    ((2, 3), "dense"),
    ((3, 2), "transposed"),
    ((2, 4), "strided"),
    ((2, 1, 3), "offset"),
)
DIMS = (0, -1, 1)


def few(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values many of which are equal."""
    return rng.integers(-2, 3, shape) * 0.5


def _along(
    draw: Callable[..., np.ndarray], whole: bool, keepdim: bool = True, **extra: Any
) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in CASES:
            if whole:
                yield Sample((arg(draw(rng, shape), layout),), dict(extra))
            for dim in DIMS:
                yield Sample((arg(draw(rng, shape), layout),), {"dim": dim, **extra})
            if keepdim:
                yield Sample((arg(draw(rng, shape)),), {"dim": 0, "keepdim": True, **extra})
        yield Sample((arg(draw(rng, ())),), {"dim": 0, **extra})

    return samples


def _add(
    name: str, samples: Any, ref: Callable[..., Any] | None = None, call: Callable[..., Any] | None = None, **kw: Any
) -> None:
    made = call or (lambda T, x, **p: getattr(T, name)(x, **p))
    OPS.append(Op(name, made, samples, ref, family=kw.pop("family", "order"), **kw))


def _running(best: Any) -> Callable[..., Any]:
    def ref(x: np.ndarray, dim: int) -> Any:
        if x.ndim == 0:
            return x, np.asarray(0)
        values = best.accumulate(x, axis=dim)
        at = np.expand_dims(np.arange(x.shape[dim]), tuple(d for d in range(x.ndim) if d != dim % x.ndim))
        return values, np.maximum.accumulate(np.where(x == values, at, 0), axis=dim)

    return ref


_add("cummax", _along(distinct, whole=False, keepdim=False), _running(np.maximum))
_add("cummin", _along(distinct, whole=False, keepdim=False), _running(np.minimum))
OPS.append(
    Op(
        "cummax_of_equals",
        lambda T, x, dim: T.cummax(x, dim),
        _along(few, whole=False, keepdim=False),
        _running(np.maximum),
        grad="kink",
        family="order",
    )
)


def _mode_ref(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> Any:
    rows = np.atleast_1d(x)

    def one(row: np.ndarray) -> tuple[float, int]:
        values, counts = np.unique(row, return_counts=True)
        value = values[np.argmax(counts)]
        return value, int(np.flatnonzero(row == value)[-1])

    values = np.apply_along_axis(lambda r: one(r)[0], dim, rows)
    places = np.apply_along_axis(lambda r: one(r)[1], dim, rows)
    if keepdim and x.ndim:
        return np.expand_dims(values, dim), np.expand_dims(places, dim)
    return values.reshape(()) if x.ndim == 0 else values, places.reshape(()) if x.ndim == 0 else places


_add("mode", _along(distinct, whole=True), _mode_ref)
OPS.append(Op("mode_of_equals", lambda T, x, **p: T.mode(x, **p), _along(few, whole=True), _mode_ref, "kink", "order"))


def silent(f: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function without its warnings about rows of nothing but nan."""

    def call(*args: Any, **kw: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return f(*args, **kw)

    return call


def holed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Distinct values, one of them nan where there are two."""
    x = distinct(rng, shape)
    if x.size > 1:
        x.reshape(-1)[1] = np.nan
    return x


def _median_ref(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.asarray(0)
    axis = None if dim is None else dim
    value = silent(np.nanquantile)(x, 0.5, axis=axis, keepdims=keepdim, method="lower")
    if dim is None:
        return np.asarray(value)
    wide = value if keepdim else np.expand_dims(value, dim)
    return value, np.argmax((x == wide) | (np.isnan(x) & np.isnan(wide)), axis=dim, keepdims=keepdim)


_add("nanmedian", _along(distinct, whole=True), _median_ref)
_add("median", _along(distinct, whole=True), _median_ref)
_add("nanmean", _along(distinct, whole=True), lambda x, dim=None, keepdim=False: _nanmean_ref(x, dim, keepdim))
for name, skips in (("nanmedian", _median_ref), ("nanmean", None)):
    OPS.append(
        Op(
            f"{name}_with_nan",
            lambda T, x, name=name, **p: getattr(T, name)(x, **p),
            _along(holed, whole=True),
            skips or (lambda x, dim=None, keepdim=False: _nanmean_ref(x, dim, keepdim)),
            grad="kink",
            family="nan",
        )
    )


def _nanmean_ref(x: np.ndarray, dim: Any, keepdim: bool) -> Any:
    return np.asarray(silent(np.nanmean)(x, axis=dim if x.ndim else None, keepdims=keepdim and x.ndim > 0))


def _quantiles(draw: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in CASES:
            for q in (0.3, (0.1, 0.75, 1.0)):
                for p in ({}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"keepdim": True}):
                    yield Sample((arg(draw(rng, shape), layout),), {"q": q, **p})
        for how in ("lower", "higher", "midpoint", "nearest"):
            yield Sample((arg(draw(rng, (2, 4))),), {"q": 0.4, "dim": 1, "interpolation": how})
        yield Sample((arg(draw(rng, ())),), {"q": 0.4})

    return samples


def _quantile_call(name: str) -> Callable[..., Any]:
    return lambda T, x, q, **p: getattr(T, name)(x, T.tensor(q, dtype=x.dtype) if isinstance(q, tuple) else q, **p)


def _quantile_ref(f: Any) -> Callable[..., Any]:
    def ref(x: np.ndarray, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
        return np.asarray(silent(f)(x, q, axis=dim, keepdims=keepdim, method=interpolation))

    return ref


_add("quantile", _quantiles(distinct), _quantile_ref(np.quantile), _quantile_call("quantile"), tol=4.0)
_add("nanquantile", _quantiles(distinct), _quantile_ref(np.nanquantile), _quantile_call("nanquantile"), tol=4.0)
_add(
    "quantile_with_nan",
    _quantiles(holed),
    _quantile_ref(np.quantile),
    _quantile_call("quantile"),
    grad="kink",
    family="nan",
    tol=4.0,
)
_add(
    "nanquantile_with_nan",
    _quantiles(holed),
    _quantile_ref(np.nanquantile),
    _quantile_call("nanquantile"),
    grad="kink",
    family="nan",
    tol=4.0,
)


def _unique_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout in (((4,), "dense"), ((0,), "dense"), ((), "dense"), *CASES):
        for p in (
            {},
            {"return_inverse": True},
            {"return_counts": True},
            {"return_inverse": True, "return_counts": True},
        ):
            yield Sample((arg(few(rng, shape), layout),), dict(p))
    for dim in (0, 1, -1):
        yield Sample((arg(few(rng, (5, 2, 3)) // 1),), {"dim": dim, "return_inverse": True, "return_counts": True})
        yield Sample((arg(few(rng, (3, 5)), "transposed"),), {"dim": dim, "return_counts": True})


def _unique_ref(x: np.ndarray, dim: Any = None, return_inverse: bool = False, return_counts: bool = False) -> Any:
    out = np.unique(x, return_inverse=True, return_counts=return_counts, axis=dim)
    inverse = out[1].reshape(x.shape if dim is None else -1)
    got = (out[0], *([inverse] if return_inverse else []), *out[2:])
    return got[0] if len(got) == 1 else got


_add("unique", _unique_samples, _unique_ref, grad="none")


def _consecutive_ref(x: np.ndarray, dim: Any = None, return_inverse: bool = False, return_counts: bool = False) -> Any:
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    first = np.flatnonzero(np.any(rows[1:] != rows[:-1], axis=1)) + 1
    first = np.concatenate([np.zeros(min(1, len(rows)), np.int64), first])
    values = x.reshape(-1)[first] if dim is None else np.take(x, first, axis=dim)
    inverse = np.searchsorted(first, np.arange(len(rows)), side="right") - 1
    counts = np.diff(np.concatenate([first, [len(rows)]]))
    got = (
        values,
        *([inverse.reshape(x.shape if dim is None else -1)] if return_inverse else []),
        *([counts[: len(first)]] if return_counts else []),
    )
    return got[0] if len(got) == 1 else got


_add("unique_consecutive", _unique_samples, _consecutive_ref, grad="none")


def _pairs(*shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    return lambda rng: iter([Sample((arg(normal(rng, a)), arg(normal(rng, b), "dense"))) for a, b in shapes])


_add(
    "kron",
    _pairs(((2,), (3,)), ((2, 2), (1, 3)), ((2,), (2, 2)), ((), (2, 1)), ((2, 1, 2), (3,))),
    lambda a, b: np.kron(a, b),
    lambda T, a, b: T.kron(a, b),
)


def _block_ref(*blocks: np.ndarray) -> np.ndarray:
    wide = [np.atleast_2d(b) for b in blocks]
    out = np.zeros((sum(b.shape[0] for b in wide), sum(b.shape[1] for b in wide)), wide[0].dtype)
    i = j = 0
    for b in wide:
        out[i : i + b.shape[0], j : j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return out


_add(
    "block_diag",
    lambda rng: iter(
        [
            Sample((arg(normal(rng, (2, 3)), "transposed"), arg(normal(rng, ())), arg(normal(rng, (2,)), "strided"))),
            Sample((arg(normal(rng, (1, 2))), arg(normal(rng, (0, 2))))),
        ]
    ),
    _block_ref,
    lambda T, *blocks: T.block_diag(*blocks),
)


def _splits(cuts: Sequence[tuple[tuple[int, ...], Any]]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    return lambda rng: iter([Sample((arg(normal(rng, shape)),), {"at": at}) for shape, at in cuts])


for name, numpy_split, cuts in (
    ("hsplit", np.hsplit, [((4,), 2), ((2, 4), 2), ((2, 4), (1, 3)), ((2, 3, 1), 3)]),
    ("vsplit", np.vsplit, [((4, 2), 2), ((4, 1), (1,)), ((3, 2, 1), 1)]),
    ("dsplit", np.dsplit, [((1, 2, 4), 2), ((2, 1, 3), (1, 2))]),
):
    _add(
        name,
        _splits(cuts),  # type: ignore[arg-type]
        lambda x, at, f=numpy_split: tuple(f(x, at)),
        lambda T, x, at, name=name: getattr(T, name)(x, at),
        family="view",
    )


def _diff_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout in CASES:
        for p in ({}, {"dim": 0}, {"n": 2, "dim": -1}, {"n": 0}):
            yield Sample((arg(normal(rng, shape), layout),), dict(p))
    yield Sample((arg(normal(rng, (3,))),), {"n": 7})


_add("diff", _diff_samples, lambda x, n=1, dim=-1: np.diff(x, n, axis=dim))
_add(
    "diff_with_ends",
    lambda rng: iter([Sample((arg(normal(rng, (2, 3))), arg(normal(rng, (2, 1))), arg(normal(rng, (2, 2)))))]),
    lambda x, a, b: np.diff(x, prepend=a, append=b),
    lambda T, x, a, b: T.diff(x, prepend=a, append=b),
)
_add(
    "sum_to_size",
    lambda rng: iter(
        [
            Sample((arg(normal(rng, shape), layout),), {"size": size})
            for shape, layout in (((2, 3), "dense"), ((3, 2), "transposed"))
            for size in ((1, shape[1]), (shape[1],), (1, 1), shape)
        ]
    ),
    lambda x, size: _sum_to_ref(x, size),
    lambda T, x, size: x.sum_to_size(*size),
)


def _sum_to_ref(x: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    extra = x.ndim - len(size)
    axes = tuple(d for d in range(x.ndim) if d < extra or size[d - extra] != x.shape[d])
    return x.sum(axis=axes, keepdims=True).reshape(size)
