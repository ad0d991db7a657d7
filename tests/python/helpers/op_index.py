"""Rows of the operation table: joining, indexing, gathering, rearranging, sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from op_kit import Arg, Op, Sample, arg, distinct, index, normal

OPS: list[Op] = []


def _add(name: str, call: Callable[..., Any], samples: Any, ref: Any, **kw: Any) -> None:
    OPS.append(Op(name, call, samples, ref, family=kw.pop("family", "index"), **kw))


def _fixed(
    cases: Sequence[tuple[Sequence[Any], dict[str, Any]]], draw: Callable[..., np.ndarray] = normal
) -> Callable[[np.random.Generator], Iterator[Sample]]:
    """Cases of ([argument, ...], params); an argument is a shape, (shape, layout) or a ready Arg."""

    def make(rng: np.random.Generator, a: Any) -> Arg:
        if isinstance(a, Arg):
            return a
        if len(a) == 2 and isinstance(a[0], tuple):
            return arg(draw(rng, a[0]), a[1])
        return arg(draw(rng, a))

    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for args, params in cases:
            yield Sample(tuple(make(rng, a) for a in args), dict(params))

    return samples


# --- joining ---------------------------------------------------------------------------------------
_add(
    "cat",
    lambda T, *xs, dim: T.cat(xs, dim),
    _fixed(
        [
            ([(2, 3), (1, 3)], {"dim": 0}),
            ([(2, 3), (2, 1)], {"dim": -1}),
            ([((2, 3), "transposed"), ((2, 2), "strided"), ((2, 1), "expanded")], {"dim": 1}),
            ([(2, 3)], {"dim": 0}),
            ([(0,), (2, 3)], {"dim": 1}),
            ([(0, 3), (2, 3)], {"dim": 0}),
            ([(1,), (2,), (3,)], {"dim": 0}),
        ]
    ),
    lambda *xs, dim: np.concatenate([x for x in xs if x.shape != (0,)], axis=dim),
)
_add(
    "stack",
    lambda T, *xs, dim: T.stack(xs, dim),
    _fixed(
        [([(2, 3), ((2, 3), "transposed")], {"dim": d}) for d in (0, 1, 2, -1)]
        + [([(), ()], {"dim": 0}), ([(0, 2), (0, 2)], {"dim": 0})]
    ),
    lambda *xs, dim: np.stack(xs, axis=dim),
)

# --- gathering and scattering -----------------------------------------------------------------------
GATHER = [
    ([(2, 3), index([[0, 2, 2, 1], [1, 0, 0, 2]])], {"dim": 1}),
    ([(3, 2), index([[0, 2], [2, 2]])], {"dim": 0}),
    ([((2, 3), "transposed"), index([[0], [2]])], {"dim": -1}),
    ([((2, 3), "strided"), index([[1, 1, 0]])], {"dim": 0}),
    ([((3, 2), "expanded"), index([[0, 2]])], {"dim": 0}),
    ([(3,), index([1, 1])], {"dim": 0}),
    ([(3,), index(np.zeros(0, np.int64))], {"dim": 0}),
    ([(), index(0)], {"dim": 0}),
]


def _gather_ref(x: np.ndarray, idx: np.ndarray, dim: int) -> np.ndarray:
    out = np.empty(idx.shape, x.dtype)
    for at in np.ndindex(*idx.shape):
        src = list(at)
        if src:
            src[dim] = idx[at]
        out[at] = x[tuple(src)]
    return out


_add("gather", lambda T, x, i, dim: T.gather(x, dim, i), _fixed(GATHER), _gather_ref)
_add(
    "take_along_dim",
    lambda T, x, i, dim: T.take_along_dim(x, i, dim),
    _fixed(
        [
            ([(2, 3), index([[0, 2], [1, 1]])], {"dim": 1}),
            ([((3, 2), "transposed"), index([[0, 2]])], {"dim": 0}),
            ([(2, 3), index([[2]])], {"dim": 1}),
        ]
    ),
    lambda x, i, dim: np.take_along_axis(
        np.broadcast_to(
            x, np.broadcast_shapes(_but(x.shape, dim), _but(i.shape, dim))[:dim] + (x.shape[dim],) + x.shape[dim + 1 :]
        ),
        np.broadcast_to(i, _but(x.shape, dim)[:dim] + (i.shape[dim],) + x.shape[dim + 1 :]),
        dim,
    ),
)
_add(
    "take_along_dim_flat",
    lambda T, x, i: T.take_along_dim(x, i),
    _fixed([([(2, 3), index([5, 0, 0])], {})]),
    lambda x, i: x.reshape(-1)[i],
)


def _but(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], 1, *shape[dim + 1 :])


def _scatter_ref(x: np.ndarray, idx: np.ndarray, src: Any, dim: int, add: bool = False) -> np.ndarray:
    out = x.copy()
    for at in np.ndindex(*idx.shape):
        to = list(at)
        if to:
            to[dim] = idx[at]
        value = src if np.isscalar(src) else src[at]
        out[tuple(to)] = out[tuple(to)] + value if add else value
    return out


UNIQUE_SCATTER = [
    ([(2, 3), index([[0, 2], [1, 0]]), (2, 2)], {"dim": 1}),
    ([((3, 2), "transposed"), index([[0, 2], [2, 0]]), ((2, 2), "transposed")], {"dim": 0}),
    ([(3,), index([2, 0]), ((2,), "strided")], {"dim": 0}),
    ([(3,), index(np.zeros(0, np.int64)), (0,)], {"dim": 0}),
]
_add("scatter", lambda T, x, i, s, dim: T.scatter(x, dim, i, s), _fixed(UNIQUE_SCATTER), _scatter_ref)
_add(
    "scatter_value",
    lambda T, x, i, dim: T.scatter(x, dim, i, 1.5),
    _fixed([(a[:2], p) for a, p in UNIQUE_SCATTER]),
    lambda x, i, dim: _scatter_ref(x, i, 1.5, dim),
)
SCATTER_ADD = [
    *UNIQUE_SCATTER,
    ([(2, 3), index([[0, 0, 2], [1, 1, 1]]), (2, 3)], {"dim": 1}),
    ([(2, 2), index([[1, 1]]), ((1, 2), "offset")], {"dim": 0}),
]
_add(
    "scatter_add",
    lambda T, x, i, s, dim: T.scatter_add(x, dim, i, s),
    _fixed(SCATTER_ADD),
    lambda x, i, s, dim: _scatter_ref(x, i, s, dim, add=True),
)
SELECT = [
    ([(3, 2), index([2, 0, 2])], {"dim": 0}),
    ([((2, 3), "transposed"), index([1, 1])], {"dim": -1}),
    ([((2, 3), "strided"), index([0])], {"dim": 0}),
    ([((3, 2), "expanded"), index([2, 1])], {"dim": 0}),
    ([(2, 3), index(np.zeros(0, np.int64))], {"dim": 1}),
    ([(2, 3), index(1)], {"dim": 1}),
]
_add(
    "index_select",
    lambda T, x, i, dim: T.index_select(x, dim, i),
    _fixed(SELECT),
    lambda x, i, dim: np.take(x, i.reshape(-1), axis=dim),
)


def _index_add_ref(x: np.ndarray, i: np.ndarray, s: np.ndarray, dim: int, alpha: float = 1) -> np.ndarray:
    out = np.moveaxis(x.copy(), dim, 0).copy()
    np.add.at(out, i, alpha * np.moveaxis(s, dim, 0))
    return np.moveaxis(out, 0, dim)


_add(
    "index_add",
    lambda T, x, i, s, dim, **p: T.index_add(x, dim, i, s, **p),
    _fixed(
        [
            ([(3, 2), index([2, 0, 2]), (3, 2)], {"dim": 0}),
            ([(3, 2), index([1, 1]), ((3, 2), "transposed")], {"dim": 1, "alpha": 0.5}),
            ([((3, 2), "transposed"), index([0]), (1, 2)], {"dim": 0}),
        ]
    ),
    _index_add_ref,
)
_add(
    "masked_select",
    lambda T, x, m: T.masked_select(x, m > 0),
    _fixed([([(2, 3), (2, 3)], {}), ([((2, 3), "transposed"), (3,)], {}), ([(2, 1), (2, 3)], {}), ([(), ()], {})]),
    lambda x, m: np.broadcast_to(x, np.broadcast_shapes(x.shape, m.shape))[
        np.broadcast_to(m, np.broadcast_shapes(x.shape, m.shape)) > 0
    ],
)

# --- reading with []: the expression is applied to arrays and tensors alike ---------------------------
_MASK = np.array([[True, False, True], [False, True, True]])
READS: list[tuple[str, tuple[int, ...], Any]] = [
    ("int", (2, 3), 1),
    ("ints", (2, 3), (1, -1)),
    ("slice", (4, 3), slice(1, None, 2)),
    ("slices", (4, 3), (slice(None, 3), slice(1, 2))),
    ("none", (2, 3), (None, slice(None), None, 1)),
    ("ellipsis", (2, 2, 3), (..., 0)),
    ("mask", (2, 3), _MASK),
    ("mask0", (2, 3), np.array([True, False])),
    ("tensor", (3, 2), np.array([2, 0, 0])),
    ("tensors", (3, 2), (np.array([2, 0, 0]), np.array([1, 1, 0]))),
    ("broadcast", (3, 3), (np.array([[0], [2]]), np.array([1, 1]))),
    ("mixed", (2, 3, 2), (slice(None), np.array([0, 0, 2]), 1)),
    ("split", (2, 3, 2), (np.array([0, 1]), slice(None), np.array([1, 1]))),
    ("list", (3, 2), [2, 0]),
    ("empty", (3, 2), np.zeros(0, np.int64)),
]


def to_index(T: Any, item: Any) -> Any:
    """NumPy index expression with its arrays turned into tensors."""
    if isinstance(item, tuple):
        return tuple(to_index(T, i) for i in item)
    return T.tensor(item) if isinstance(item, np.ndarray) else item


for _label, _shape, _item in READS:
    _add(
        f"getitem_{_label}",
        lambda T, x, item=_item: x[to_index(T, item)],
        _fixed([([(_shape, layout)], {}) for layout in ("dense", "transposed", "strided", "expanded")]),
        lambda x, item=_item: x[item],
    )

# Writes: no position twice, for which value would win is not defined.
_ONCE: dict[str, Any] = {
    "tensor": np.array([2, 0]),
    "tensors": (np.array([2, 0]), np.array([1, 0])),
    "broadcast": (np.array([[0], [2]]), np.array([1, 0])),
    "mixed": (slice(None), np.array([0, 2]), 1),
}


def _written(x: Any, item: Any, value: Any) -> Any:
    x[item] = value
    return x


for _label, _shape, _item in READS:
    _item = _ONCE.get(_label, _item)
    for _value in sorted({(), np.zeros(_shape)[_item].shape}):
        _add(
            f"setitem_{_label}" + ("" if _value else "_scalar"),
            lambda T, x, v, item=_item: _written(x.clone(), to_index(T, item), v),
            _fixed([([_shape, _value], {}), ([(_shape, "transposed"), _value], {})]),
            lambda x, v, item=_item: _written(np.array(x), item, v),
        )

# --- rearranging with a copy --------------------------------------------------------------------------
BASE = [((2, 3), "dense"), ((2, 3), "transposed"), ((2, 3), "strided"), ((2, 3), "expanded"), ((0, 2), "dense")]


def _each(params: Sequence[dict[str, Any]], cases: Sequence[Any] = BASE) -> Any:
    return _fixed([([c], p) for p in params for c in cases])


_add(
    "flip",
    lambda T, x, dims: T.flip(x, dims),
    _each([{"dims": (0,)}, {"dims": (0, 1)}, {"dims": (-1,)}, {"dims": ()}]),
    lambda x, dims: np.flip(x, dims),
)
_add(
    "roll",
    lambda T, x, shifts, dims: T.roll(x, shifts, dims),
    _each([{"shifts": 1, "dims": 0}, {"shifts": (-1, 2), "dims": (1, 0)}, {"shifts": 7, "dims": -1}]),
    lambda x, shifts, dims: np.roll(x, shifts, dims),
)
_add("roll_flat", lambda T, x: T.roll(x, 2), _each([{}]), lambda x: np.roll(x, 2))
_add(
    "repeat",
    lambda T, x, n: x.repeat(*n),
    _each([{"n": (2, 1)}, {"n": (2, 1, 3)}, {"n": (0, 1)}]),
    lambda x, n: np.tile(x, n),
)
_add(
    "tile",
    lambda T, x, n: T.tile(x, n),
    _each([{"n": (2,)}, {"n": (2, 1, 2)}, {"n": (1, 3)}]),
    lambda x, n: np.tile(x, n),
)
for _name in ("tril", "triu"):
    _add(
        _name,
        lambda T, x, diagonal, name=_name: getattr(T, name)(x, diagonal),
        _fixed(
            [([((3, 3), "dense")], {"diagonal": d}) for d in (-3, -1, 0, 1, 3)]
            + [([c], {"diagonal": 0}) for c in (*BASE, ((2, 2, 3), "dense"), ((2, 3, 2), "transposed"))]
        ),
        lambda x, diagonal, name=_name: getattr(np, name)(x, diagonal),
        inplace=f"{_name}_",
    )

# --- sorting ------------------------------------------------------------------------------------------


def _sort_ref(x: np.ndarray, dim: int = -1, descending: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.asarray(0)
    order = np.argsort(-x if descending else x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


SORT_CASES = [((3, 4), "dense"), ((3, 4), "transposed"), ((4,), "strided"), ((0, 3), "dense"), ((), "dense")]
_add(
    "sort",
    lambda T, x, **p: T.sort(x, **p),
    _fixed(
        [([c], {"dim": d, "descending": r}) for c in SORT_CASES for d in (0, -1) for r in (False, True)], draw=distinct
    ),
    _sort_ref,
)


def _topk_ref(x: np.ndarray, k: int, dim: int = -1, largest: bool = True) -> Any:
    if x.ndim == 0:
        return x, np.asarray(0)
    values, order = _sort_ref(x, dim, largest)
    keep = [slice(None)] * x.ndim
    keep[dim] = slice(0, k)
    return values[tuple(keep)], order[tuple(keep)]


_add(
    "topk",
    lambda T, x, **p: T.topk(x, **p),
    _fixed(
        [
            ([((3, 4), lay)], {"k": k, "dim": d, "largest": big})
            for lay in ("dense", "transposed")
            for k in (0, 1, 3)
            for d in (0, -1)
            for big in (True, False)
        ]
        + [([()], {"k": 1})],
        draw=distinct,
    ),
    _topk_ref,
)
