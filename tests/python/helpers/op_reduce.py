"""Rows of the operation table: reductions, scans, softmax family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from op_kit import Arg, Op, Sample, arg, distinct, normal, uniform

OPS: list[Op] = []

DIMS: tuple[Any, ...] = (0, -1, (0, 1), (1,), (-1, 0))
CASES: tuple[tuple[tuple[int, ...], str], ...] = (
    ((2, 3), "dense"),
    ((3, 2), "transposed"),
    ((2, 3), "strided"),
    ((3, 2), "expanded"),
    ((2, 1, 3), "offset"),
)


def _samples(
    draw: Callable[..., np.ndarray],
    full: bool = True,
    dims: Sequence[Any] = DIMS,
    keepdim: bool = True,
    empty: bool = True,
    extra: dict[str, Any] | None = None,
    expanded: bool = True,
) -> Callable[[np.random.Generator], Iterator[Sample]]:
    """Whole reductions (no `dim`), then every dim with keepdim, over the layouts."""
    more = extra or {}

    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        cases = [c for c in CASES if expanded or c[1] != "expanded"]
        if full:
            for shape, layout in [((), "dense"), ((1,), "dense"), *cases]:
                yield Sample((arg(draw(rng, shape), layout),), dict(more))
            if empty:
                yield Sample((arg(draw(rng, (0,))),), dict(more))
        for n, dim in enumerate(dims):
            for shape, layout in cases[:1] + [cases[1 + n % (len(cases) - 1)]]:
                yield Sample((arg(draw(rng, shape), layout),), {"dim": dim, **more})
                if keepdim:
                    yield Sample((arg(draw(rng, shape)),), {"dim": dim, "keepdim": True, **more})
        if isinstance(dims[0], int):
            yield Sample((arg(draw(rng, ())),), {"dim": -1, **more})
            if empty:
                yield Sample((arg(draw(rng, (2, 0))),), {"dim": 0, **more})

    return samples


def _ref(f: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: np.ndarray, dim: Any = None, keepdim: bool = False, **kw: Any) -> Any:
        if x.ndim == 0:
            out = f(x.reshape(1), axis=0, keepdims=False, **kw)
            return np.asarray(out)
        axis = tuple(range(x.ndim)) if dim is None or dim == () else dim
        return np.asarray(f(x, axis=axis, keepdims=keepdim, **kw))

    return ref


def _op(name: str, samples: Any, ref: Callable[..., Any] | None, grad: str = "smooth", **kw: Any) -> None:
    OPS.append(Op(name, lambda T, x, **p: getattr(T, name)(x, **p), samples, ref, grad=grad, family="reduce", **kw))


off_zero = uniform(-2.0, 2.0, avoid=(0.0,))

_op("sum", _samples(normal), _ref(np.sum))
_op("mean", _samples(normal, empty=False), _ref(np.mean))
_op("prod", _samples(off_zero, dims=(0, -1, 1)), _ref(np.prod))
_op("amax", _samples(distinct, empty=False, expanded=False), _ref(np.max))
_op("amin", _samples(distinct, empty=False, expanded=False), _ref(np.min))
_op("all", _samples(off_zero), _ref(np.all), grad="none")
_op("any", _samples(off_zero), _ref(np.any), grad="none")
_op(
    "argmax",
    _samples(distinct, dims=(0, -1, 1), empty=False),
    _ref(lambda x, axis, keepdims: _arg(np.argmax, x, axis, keepdims)),
    grad="none",
)
_op(
    "argmin",
    _samples(distinct, dims=(0, -1, 1), empty=False),
    _ref(lambda x, axis, keepdims: _arg(np.argmin, x, axis, keepdims)),
    grad="none",
)
_op(
    "logsumexp",
    _samples(normal, full=False, empty=False),
    _ref(lambda x, axis, keepdims: special.logsumexp(x, axis=axis, keepdims=keepdims)),
)


def _arg(f: Callable[..., Any], x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    if isinstance(axis, tuple):
        return f(x)
    return f(x, axis=axis, keepdims=keepdims)


def _prod_with_zeros(rng: np.random.Generator) -> Iterator[Sample]:
    """The derivative of a product must not divide by the factors."""
    for zeros in (1, 2):
        x = off_zero(rng, (4,))
        x[:zeros] = 0.0
        yield Sample((arg(x),), {}, label=f"{zeros}zeros")
        y = off_zero(rng, (2, 3))
        y[0, :zeros] = 0.0
        yield Sample((arg(y),), {"dim": 1}, label=f"{zeros}zeros")
        yield Sample((arg(y),), {"dim": 0}, label=f"{zeros}zeros")


OPS.append(Op("prod_with_zeros", lambda T, x, **p: T.prod(x, **p), _prod_with_zeros, _ref(np.prod), family="reduce"))


def _spread(f: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: np.ndarray, dim: Any = None, keepdim: bool = False, correction: Any = 1) -> Any:
        axis = tuple(range(x.ndim)) if dim is None else dim
        return np.asarray(f(x, axis=axis, keepdims=keepdim, ddof=correction))

    return ref


def _spread_samples(draw: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for correction in (None, 0, 2):
            p = {} if correction is None else {"correction": correction}
            for shape, layout in (((3, 2), "dense"), ((3, 3), "transposed"), ((4,), "strided")):
                yield Sample((arg(draw(rng, shape), layout),), dict(p))
            for dim in (0, -1, (0, 1)):
                for keepdim in (False, True):
                    yield Sample((arg(draw(rng, (3, 4))),), {"dim": dim, "keepdim": keepdim, **p})

    return samples


_op("var", _spread_samples(distinct), _spread(np.var))
_op("std", _spread_samples(distinct), _spread(np.std))
for _name, _of in (("var_mean", np.var), ("std_mean", np.std)):
    _op(_name, _spread_samples(distinct), lambda x, _of=_of, **p: (_spread(_of)(x, **p), _ref(np.mean)(x, **_dims(p))))


def _dims(p: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in p.items() if k in ("dim", "keepdim")}


_op(
    "aminmax",
    _samples(distinct, dims=(0, -1, 1), empty=False, expanded=False),
    lambda x, **p: (_ref(np.min)(x, **p), _ref(np.max)(x, **p)),
)


def _dist_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for p in (0.5, 1.0, 2.0, 3.0, float("inf")):
        for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)), ((), (2,))):
            yield Sample((arg(distinct(rng, a)), arg(distinct(rng, b, shift=9.0))), {"p": p})


OPS.append(
    Op(
        "dist",
        lambda T, x, y, p: T.dist(x, y, p),
        _dist_samples,
        lambda x, y, p: np.asarray(np.linalg.norm((x - y).reshape(-1), p)) if p != 0.5 else _half_norm(x - y),
        family="reduce",
        tol=10,
    )
)


def _half_norm(d: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(d) ** 0.5).sum() ** 2)


OPS.append(
    Op(
        "var_unbiased",
        lambda T, x, unbiased: T.var(x, unbiased=unbiased),
        lambda rng: iter([Sample((arg(normal(rng, (2, 3))),), {"unbiased": u}) for u in (True, False)]),
        lambda x, unbiased: np.var(x, ddof=int(unbiased)),
        family="reduce",
    )
)


def _extreme(name: str, best: Callable[..., Any], place: Callable[..., Any]) -> None:
    """max and min: whole, with dim (values and indices), and of two tensors."""
    OPS.append(
        Op(
            name,
            lambda T, x, **p: getattr(T, name)(x, **p),
            _samples(distinct, dims=(0, -1, 1), empty=False, expanded=False),
            lambda x, **p: _extreme_ref(best, place, x, **p),
            family="reduce",
        )
    )

    def pairs(rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,))):
            yield Sample((arg(distinct(rng, a)), arg(distinct(rng, b, 0.07))))

    OPS.append(
        Op(f"{name}_pair", lambda T, x, y: getattr(T, name)(x, y), pairs, getattr(np, f"{name}imum"), family="pair")
    )


def _extreme_ref(best: Any, place: Any, x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return np.asarray(best(x))
    if x.ndim == 0:
        return x, np.asarray(0)
    return best(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)


_extreme("max", np.max, np.argmax)
_extreme("min", np.min, np.argmin)


def _norm_ref(x: np.ndarray, p: Any = 2.0, dim: Any = None, keepdim: bool = False) -> Any:
    axis = tuple(range(x.ndim)) if dim is None else dim
    a = np.abs(x)
    if p in (float("inf"), float("-inf")):
        return (np.max if p > 0 else np.min)(a, axis=axis, keepdims=keepdim)
    if p == 0:
        return np.sum(a != 0, axis=axis, keepdims=keepdim).astype(x.dtype)
    return np.sum(a**p, axis=axis, keepdims=keepdim) ** (1 / p)


def _norm_samples(orders: Sequence[Any]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for p in orders:
            for shape, layout in (((2, 3), "dense"), ((3, 2), "transposed"), ((4,), "strided")):
                yield Sample((arg(distinct(rng, shape), layout),), {"p": p})
            for dim in (0, -1, (0, 1)):
                for keepdim in (False, True):
                    yield Sample((arg(distinct(rng, (2, 3))),), {"p": p, "dim": dim, "keepdim": keepdim})
        yield Sample((arg(distinct(rng, (3,))),))

    return samples


OPS.append(
    Op(
        "norm",
        lambda T, x, **p: T.norm(x, **p),
        _norm_samples((1, 2, 2.5, 3, float("inf"))),
        _norm_ref,
        family="reduce",
    )
)
OPS.append(
    Op("norm_zero", lambda T, x, **p: T.norm(x, **p), _norm_samples((0,)), _norm_ref, grad="none", family="reduce")
)


def _scan_samples(draw: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in CASES:
            for dim in (0, -1):
                yield Sample((arg(draw(rng, shape), layout),), {"dim": dim})
        yield Sample((arg(draw(rng, ())),), {"dim": 0})
        yield Sample((arg(draw(rng, (1,))),), {"dim": 0})
        yield Sample((arg(draw(rng, (0, 2))),), {"dim": 0})

    return samples


def _scan_ref(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim: f(x.reshape(1), axis=0).reshape(()) if x.ndim == 0 else f(x, axis=dim)


_op("cumsum", _scan_samples(normal), _scan_ref(np.cumsum), inplace="cumsum_")
_op("logcumsumexp", _scan_samples(normal), _scan_ref(np.logaddexp.accumulate))
_op("cumprod", _scan_samples(off_zero), _scan_ref(np.cumprod), inplace="cumprod_")


def _cumprod_zeros(rng: np.random.Generator) -> Iterator[Sample]:
    for where in ([0], [1], [3], [0, 2]):
        x = off_zero(rng, (4,))
        x[where] = 0.0
        yield Sample((arg(x),), {"dim": 0}, label=f"zeros_at_{'_'.join(map(str, where))}")


OPS.append(
    Op(
        "cumprod_with_zeros",
        lambda T, x, dim: T.cumprod(x, dim),
        _cumprod_zeros,
        _scan_ref(np.cumprod),
        family="reduce",
    )
)


def _softmax_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout in (*CASES, ((2, 0), "dense"), ((0, 2), "dense")):
        for dim in (0, -1):
            yield Sample((arg(normal(rng, shape), layout),), {"dim": dim})
    yield Sample((arg(normal(rng, ())),), {"dim": 0})
    big = Arg(np.array([1000.0, 1001.0, 999.5]))
    yield Sample((big,), {"dim": 0}, label="large")


def _softmax_ref(f: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: np.ndarray, dim: int) -> Any:
        if x.size == 0:
            return x.copy()
        return np.asarray(f(x, axis=dim if x.ndim else None))

    return ref


_op("softmax", _softmax_samples, _softmax_ref(special.softmax))
_op("log_softmax", _softmax_samples, _softmax_ref(special.log_softmax))
