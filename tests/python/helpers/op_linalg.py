"""Rows of the operation table: matrix products and losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from op_kit import Arg, Op, Sample, arg, index, normal, uniform

OPS: list[Op] = []


def _products(
    name: str,
    shapes: Sequence[tuple[tuple[int, ...], ...]],
    ref: Callable[..., Any],
    call: Callable[..., Any] | None = None,
    params: Sequence[dict[str, Any]] = ({},),
    **kw: Any,
) -> None:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for case in shapes:
            for p in params:
                yield Sample(tuple(arg(normal(rng, s)) for s in case), dict(p))
        for n, layout in enumerate(("transposed", "strided", "offset", "expanded")):
            case = shapes[n % 2]
            args = [arg(normal(rng, s), layout if (k == n % len(case)) and s else "dense") for k, s in enumerate(case)]
            yield Sample(tuple(args), dict(params[0]))

    OPS.append(
        Op(name, call or (lambda T, *xs, **p: getattr(T, name)(*xs, **p)), samples, ref, family="matmul", tol=4, **kw)
    )


MATMUL_SHAPES = (
    ((2, 3), (3, 4)),
    ((2, 2, 3), (2, 3, 2)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3, 2)),
    ((2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((1, 2, 3), (2, 3, 1)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((0, 2, 3), (3, 2)),
    ((0,), (0,)),
    ((1, 1), (1, 1)),
)

_products("matmul", MATMUL_SHAPES, np.matmul)
_products("x@y", MATMUL_SHAPES[:4], np.matmul, call=lambda T, x, y: x @ y)
_products("mm", (((2, 3), (3, 4)), ((3, 1), (1, 2)), ((0, 2), (2, 3)), ((2, 0), (0, 3))), np.matmul)
_products(
    "bmm", (((2, 2, 3), (2, 3, 2)), ((1, 2, 1), (1, 1, 3)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 2))), np.matmul
)
_products("mv", (((2, 3), (3,)), ((3, 1), (1,)), ((0, 2), (2,)), ((2, 0), (0,))), np.matmul)
_products("dot", (((3,), (3,)), ((1,), (1,)), ((0,), (0,))), np.dot)
_products("outer", (((2,), (3,)), ((1,), (2,)), ((0,), (2,))), np.outer)


def _addmm_ref(c: np.ndarray, a: np.ndarray, b: np.ndarray, beta: float = 1, alpha: float = 1) -> np.ndarray:
    return beta * c + alpha * (a @ b)


_products(
    "addmm",
    (
        ((2, 4), (2, 3), (3, 4)),
        ((4,), (2, 3), (3, 4)),
        ((2, 1), (2, 3), (3, 4)),
        ((), (1, 2), (2, 2)),
        ((2,), (0, 3), (3, 2)),
    ),
    _addmm_ref,
    params=({}, {"beta": 0.5, "alpha": 2.0}),
)
OPS.append(
    Op(
        "linear",
        lambda T, x, w, *b: T.nn.functional.linear(x, w, *b),
        lambda rng: iter(
            [
                Sample(tuple(arg(normal(rng, s)) for s in case))
                for case in (((2, 3), (4, 3), (4,)), ((2, 3), (4, 3)), ((2, 1, 3), (2, 3), (2,)), ((3,), (2, 3), (2,)))
            ]
        ),
        lambda x, w, b=0.0: x @ w.T + b,
        family="matmul",
        tol=4,
    )
)

EINSUM = (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,kj", (2, 3), (4, 3)),
    ("ij->ji", (2, 3)),
    ("ij->j", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i", (3,), (3,)),
    ("bi,ij,bj->b", (2, 3), (3, 2), (2, 2)),
    ("bhqd,bhkd->bhqk", (2, 1, 2, 3), (2, 1, 3, 3)),
    ("i...,i...->...", (2, 3), (2, 3)),
    ("ab,cd->abcd", (2, 1), (1, 2)),
    ("ba", (2, 3)),
    ("ij, jk -> ik", (2, 1), (1, 2)),
    ("b...->...b", (2, 3)),
    ("iij->ij", (2, 2, 3)),
    ("ij,jk->ik", (0, 3), (3, 2)),
)


def _einsum_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for eq, *shapes in EINSUM:
        yield Sample(tuple(arg(normal(rng, s)) for s in shapes), {"eq": eq})
    for layout in ("transposed", "strided", "expanded"):
        yield Sample((arg(normal(rng, (2, 3)), layout), arg(normal(rng, (3, 2)))), {"eq": "ij,jk->ik"})


OPS.append(
    Op(
        "einsum",
        lambda T, *xs, eq: T.einsum(eq, *xs),
        _einsum_samples,
        lambda *xs, eq: np.einsum(eq, *xs),
        family="matmul",
        tol=4,
    )
)


# --- losses ---------------------------------------------------------------------------------------


def _reduced(reduction: str, values: np.ndarray) -> np.ndarray:
    if reduction == "none":
        return values
    with np.errstate(invalid="ignore"):
        return np.asarray(values.sum() if reduction == "sum" else values.mean())


REDUCTIONS = ("mean", "sum", "none")


def _paired(draw_x: Callable[..., np.ndarray], draw_y: Callable[..., np.ndarray]) -> Callable[..., Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in (((), "dense"), ((3,), "strided"), ((2, 3), "dense"), ((2, 3), "transposed")):
            for reduction in REDUCTIONS:
                yield Sample((arg(draw_x(rng, shape), layout), arg(draw_y(rng, shape))), {"reduction": reduction})

    return samples


def _loss(name: str, samples: Any, ref: Any) -> None:
    OPS.append(
        Op(name, lambda T, *xs, **p: getattr(T.nn.functional, name)(*xs, **p), samples, ref, family="loss", tol=2)
    )


_loss("mse_loss", _paired(normal, normal), lambda x, y, reduction: _reduced(reduction, (x - y) ** 2))
_loss("l1_loss", _paired(uniform(0.5, 2), uniform(-2, 0)), lambda x, y, reduction: _reduced(reduction, np.abs(x - y)))


def _bce_ref(x: np.ndarray, y: np.ndarray, *more: np.ndarray, reduction: str = "mean", which: str = "") -> np.ndarray:
    log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    pos = more[-1] if "pos_weight" in which else 1.0
    loss = -(pos * y * log_p + (1 - y) * log_q)
    if which.startswith("weight"):
        loss = loss * more[0]
    return _reduced(reduction, loss)


def _bce_samples(rng: np.random.Generator) -> Iterator[Sample]:
    yield from _paired(normal, uniform(0.1, 0.9))(rng)
    for which in ("weight", "pos_weight", "weight+pos_weight"):
        for reduction in REDUCTIONS:
            extra = [Arg(uniform(0.5, 2)(rng, (3,)), differentiable=False) for _ in which.split("+")]
            yield Sample(
                (arg(normal(rng, (2, 3))), arg(uniform(0.1, 0.9)(rng, (2, 3))), *extra),
                {"which": which, "reduction": reduction},
            )


def _bce(T: Any, x: Any, y: Any, *more: Any, which: str = "", reduction: str = "mean") -> Any:
    names = which.split("+") if which else []
    kw = {n: t.detach() for n, t in zip(names, more, strict=True)}
    return T.nn.functional.binary_cross_entropy_with_logits(x, y, reduction=reduction, **kw)


OPS.append(Op("binary_cross_entropy_with_logits", _bce, _bce_samples, _bce_ref, family="loss", tol=2))


def _nll_ref(
    logp: np.ndarray, target: np.ndarray, *weight: np.ndarray, reduction: str = "mean", ignore_index: int = -100
) -> np.ndarray:
    if logp.ndim == 1:
        w = weight[0][target] if weight else 1.0
        loss = -logp[target] * w
        return np.asarray(loss / w if reduction == "mean" else loss)
    w = weight[0] if weight else np.ones(logp.shape[1], logp.dtype)
    keep = target != ignore_index
    t = np.where(keep, target, 0)
    per = np.take_along_axis(logp, np.expand_dims(t, 1), 1).squeeze(1)
    wt = np.where(keep, w[t], 0)
    loss = -per * wt
    if reduction == "none":
        return loss
    return np.asarray(loss.sum() if reduction == "sum" else loss.sum() / wt.sum())


def _nll_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        p = {"reduction": reduction}
        yield Sample((arg(normal(rng, (3, 4))), index([1, 0, 3])), dict(p))
        yield Sample((arg(normal(rng, (3, 4)), "transposed"), index([1, 0, 3])), dict(p))
        yield Sample((arg(normal(rng, (4,))), index(2)), dict(p))
        yield Sample((arg(normal(rng, (2, 3, 2))), index([[1, 0], [2, 2]])), dict(p))
        yield Sample((arg(normal(rng, (3, 4))), index([1, 2, 3])), {**p, "ignore_index": 2})
        yield Sample(
            (arg(normal(rng, (3, 4))), index([1, 0, 1]), Arg(uniform(0.5, 2)(rng, (4,)), differentiable=False)), dict(p)
        )


def _with_weight(name: str) -> Callable[..., Any]:
    def call(T: Any, x: Any, target: Any, *weight: Any, **p: Any) -> Any:
        w = weight[0].detach() if weight else None
        return getattr(T.nn.functional, name)(x, target, weight=w, **p)

    return call


OPS.append(Op("nll_loss", _with_weight("nll_loss"), _nll_samples, _nll_ref, family="loss", tol=2))


def _ce_ref(
    x: np.ndarray, target: np.ndarray, *weight: np.ndarray, label_smoothing: float = 0.0, **p: Any
) -> np.ndarray:
    axis = 1 if x.ndim > 1 else 0
    logp = special.log_softmax(x, axis=axis)
    if target.dtype.kind == "i" and not label_smoothing:
        return _nll_ref(logp, target, *weight, **p)
    classes = x.shape[axis]
    if target.dtype.kind == "i":
        target = np.eye(classes, dtype=x.dtype)[target]
    target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = -(target * logp).sum(axis)
    reduction = p.get("reduction", "mean")
    if reduction == "mean":
        return np.asarray(loss.sum() / max(1, loss.size))
    return np.asarray(_reduced(reduction, loss))


def _ce_samples(rng: np.random.Generator) -> Iterator[Sample]:
    yield from _nll_samples(rng)
    for reduction in REDUCTIONS:
        p = {"reduction": reduction}
        yield Sample((arg(normal(rng, (3, 4))), index([1, 0, 3])), {**p, "label_smoothing": 0.1})
        soft = special.softmax(normal(rng, (3, 4)), axis=1)
        yield Sample((arg(normal(rng, (3, 4))), arg(soft)), dict(p), label="soft")
        yield Sample((arg(normal(rng, (4,))), arg(soft[0])), dict(p), label="soft")


OPS.append(Op("cross_entropy", _with_weight("cross_entropy"), _ce_samples, _ce_ref, family="loss", tol=2))
