"""Rows of the operation table: views and the operations that may return one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from op_index import _fixed
from op_kit import Op

OPS: list[Op] = []

CASES: Sequence[Any] = (((2, 3, 4), "dense"), ((2, 3, 4), "transposed"), ((2, 3, 4), "strided"), ((2, 3, 4), "offset"))
SOME: Sequence[Any] = (*CASES[:3], ((2, 3, 4), "expanded"))


def _add(
    name: str,
    call: Callable[..., Any],
    ref: Any,
    params: Sequence[dict[str, Any]] = ({},),
    cases: Any = SOME,
    **kw: Any,
) -> None:
    OPS.append(Op(name, call, _fixed([([c], p) for p in params for c in cases]), ref, family="view", **kw))


def _method(
    name: str, ref: Any, keys: Sequence[str], params: Sequence[dict[str, Any]], cases: Any = SOME, **kw: Any
) -> None:
    """Method call with positional arguments in the order of `keys`."""
    _add(name, lambda T, x, **p: getattr(x, name)(*(p[k] for k in keys)), ref, params, cases, **kw)


DENSE = CASES[:1]
SMALL: Sequence[Any] = (((2, 3), "dense"), ((2, 3), "transposed"), ((), "dense"), ((0, 2), "dense"))

_add(
    "view",
    lambda T, x, shape: x.view(shape),
    lambda x, shape: x.reshape(shape),
    [{"shape": s} for s in ((6, 4), (-1,), (2, 12), (1, 24, 1), (2, -1, 2))],
    CASES[:1] + CASES[3:],
)
_add(
    "view_transposed",
    lambda T, x: x.view(1, 2, 3, 2, 2),
    lambda x: x.reshape(1, 2, 3, 2, 2),
    cases=CASES[:1] + CASES[2:],
)
_add("view_as", lambda T, x: x.view_as(T.zeros(4, 6)), lambda x: x.reshape(4, 6), cases=DENSE)
_add(
    "reshape",
    lambda T, x, shape: T.reshape(x, shape),
    lambda x, shape: x.reshape(shape),
    [{"shape": s} for s in ((6, 4), (-1,), (4, 1, 6))],
)
_add("reshape_scalar", lambda T, x: x.reshape(1, 1), lambda x: x.reshape(1, 1), cases=[((), "dense"), ((1,), "dense")])
_add(
    "unsqueeze",
    lambda T, x, dim: T.unsqueeze(x, dim),
    lambda x, dim: np.expand_dims(x, dim),
    [{"dim": d} for d in (0, -1)],
    [*SOME, ((), "dense")],
)
_add(
    "squeeze",
    lambda T, x: T.squeeze(x),
    lambda x: x.squeeze(),
    cases=[((1, 2, 1), "dense"), ((2, 1), "transposed"), ((2, 3), "dense"), ((), "dense")],
)
_add(
    "squeeze_dim",
    lambda T, x, dim: T.squeeze(x, dim),
    lambda x, dim: x.squeeze(tuple(d for d in (dim if isinstance(dim, tuple) else (dim,)) if x.shape[d] == 1)),
    [{"dim": 0}, {"dim": 1}, {"dim": (0, 2)}],
    [((1, 2, 1), "dense"), ((1, 2, 1), "transposed")],
)
_add(
    "expand",
    lambda T, x, shape: x.expand(shape),
    lambda x, shape: np.broadcast_to(x, [n if n >= 0 else x.shape[i - len(shape)] for i, n in enumerate(shape)]),
    [{"shape": s} for s in ((2, 3), (4, -1, 3))],
    [((2, 1), "dense"), ((1, 1), "dense"), ((2, 1), "strided")],
)
_add(
    "expand_as",
    lambda T, x: x.expand_as(T.zeros(2, 4, 3)),
    lambda x: np.broadcast_to(x, (2, 4, 3)),
    cases=[((3,), "strided"), ((4, 1), "dense"), ((), "dense")],
)
_method(
    "transpose",
    lambda x, a, b: np.swapaxes(x, a, b),
    ("a", "b"),
    [{"a": 0, "b": 1}, {"a": -1, "b": 0}, {"a": 1, "b": 1}],
)
_method("swapaxes", lambda x, a, b: np.swapaxes(x, a, b), ("a", "b"), [{"a": 0, "b": 2}])
_add(
    "permute",
    lambda T, x, dims: T.permute(x, dims),
    lambda x, dims: np.transpose(x, dims),
    [{"dims": d} for d in ((2, 0, 1), (0, 1, 2), (-1, 1, 0))],
)
_add("permute_star", lambda T, x: x.permute(1, 0, 2), lambda x: np.transpose(x, (1, 0, 2)))
_add(
    "t",
    lambda T, x: T.t(x),
    lambda x: x.T,
    cases=[((2, 3), "dense"), ((2, 3), "transposed"), ((3,), "dense"), ((), "dense")],
)
_add("T", lambda T, x: x.T, lambda x: x.T, cases=[((2, 3), "dense"), ((2, 3), "strided")])
_add("mT", lambda T, x: x.mT, lambda x: np.swapaxes(x, -1, -2), cases=SOME[:2])
_add(
    "movedim",
    lambda T, x, source, destination: T.movedim(x, source, destination),
    lambda x, source, destination: np.moveaxis(x, source, destination),
    [{"source": 0, "destination": -1}, {"source": (0, 1), "destination": (1, 2)}],
)
_method(
    "narrow",
    lambda x, dim, start, length: np.take(x, range(start % x.shape[dim], start % x.shape[dim] + length), axis=dim),
    ("dim", "start", "length"),
    [
        {"dim": 0, "start": 1, "length": 1},
        {"dim": -1, "start": 1, "length": 2},
        {"dim": 1, "start": 0, "length": 0},
        {"dim": 2, "start": -2, "length": 1},
    ],
)
_method(
    "select",
    lambda x, dim, i: np.take(x, i, axis=dim),
    ("dim", "i"),
    [{"dim": 0, "i": 1}, {"dim": 1, "i": -1}, {"dim": -1, "i": 0}],
)
_add(
    "unbind",
    lambda T, x, dim: T.unbind(x, dim),
    lambda x, dim: tuple(np.moveaxis(x, dim, 0)),
    [{"dim": d} for d in (0, 1, -1)],
)


def _split_ref(x: np.ndarray, size: Any, dim: int) -> Any:
    n = x.shape[dim]
    sizes = [min(size, n - s) for s in range(0, n, size)] if isinstance(size, int) else list(size)
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=dim))


def _chunk_ref(x: np.ndarray, chunks: int, dim: int) -> Any:
    return _split_ref(x, -(-x.shape[dim] // chunks), dim)


_add(
    "split",
    lambda T, x, size, dim: T.split(x, size, dim),
    _split_ref,
    [{"size": 2, "dim": 1}, {"size": [1, 3], "dim": -1}, {"size": 5, "dim": 0}],
)
_add(
    "chunk",
    lambda T, x, chunks, dim: T.chunk(x, chunks, dim),
    _chunk_ref,
    [{"chunks": 2, "dim": 1}, {"chunks": 3, "dim": 2}, {"chunks": 9, "dim": 0}],
)
_add(
    "diagonal",
    lambda T, x, **p: T.diagonal(x, **p),
    lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    [{}, {"offset": 1}, {"offset": -1, "dim1": 1, "dim2": 2}, {"dim1": -1, "dim2": 0}],
)
_add(
    "flatten",
    lambda T, x, **p: T.flatten(x, **p),
    lambda x, start_dim=0, end_dim=-1: _flatten_ref(x, start_dim, end_dim),
    [{}, {"start_dim": 1}, {"start_dim": 0, "end_dim": 1}],
    [*SOME, ((), "dense")][:4],
)
_add("flatten_scalar", lambda T, x: x.flatten(), lambda x: x.reshape(-1), cases=[((), "dense")])


def _flatten_ref(x: np.ndarray, start: int, end: int) -> np.ndarray:
    end = end % x.ndim
    return x.reshape((*x.shape[:start], -1, *x.shape[end + 1 :]))


_method(
    "unflatten",
    lambda x, dim, sizes: _unflatten_ref(x, dim, sizes),
    ("dim", "sizes"),
    [{"dim": 2, "sizes": (2, 2)}, {"dim": -1, "sizes": (-1, 2)}, {"dim": 0, "sizes": (1, 2)}],
)


def _unflatten_ref(x: np.ndarray, dim: int, sizes: tuple[int, ...]) -> np.ndarray:
    d = dim % x.ndim
    return x.reshape((*x.shape[:d], *sizes, *x.shape[d + 1 :]))


def _unfold_ref(x: np.ndarray, dim: int, size: int, step: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)[
        tuple(slice(None, None, step) if d == dim % x.ndim else slice(None) for d in range(x.ndim))
    ]


_method(
    "unfold",
    _unfold_ref,
    ("dim", "size", "step"),
    [
        {"dim": 2, "size": 2, "step": 1},
        {"dim": -1, "size": 2, "step": 2},
        {"dim": 1, "size": 3, "step": 1},
        {"dim": 0, "size": 1, "step": 1},
    ],
)


def _as_strided_ref(x: np.ndarray, size: Any, stride: Any, offset: int) -> np.ndarray:
    flat = np.ascontiguousarray(x).reshape(-1)
    at = np.full(size, offset)
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        at = at + (np.arange(n) * s).reshape([-1 if k == d else 1 for k in range(len(size))])
    return flat[at]


_add(
    "as_strided",
    lambda T, x, size, stride, offset: T.as_strided(x, size, stride, offset),
    _as_strided_ref,
    [
        {"size": (2, 2), "stride": (1, 2), "offset": 0},
        {"size": (3, 3), "stride": (2, 1), "offset": 1},
        {"size": (2, 3), "stride": (0, 4), "offset": 3},
        {"size": (), "stride": (), "offset": 5},
    ],
    DENSE,
)
_add(
    "as_strided_of_shared_memory",
    lambda T, x: (x.expand(3, 4).as_strided((2, 2), (1, 2), 0), x.unfold(0, 2, 1).as_strided((3, 2), (1, 1), 0)),
    lambda x: (x.reshape(2, 2).T, np.lib.stride_tricks.sliding_window_view(x, 2)),
    cases=[((4,), "dense")],
)
_add("contiguous", lambda T, x: x.contiguous(), lambda x: x, cases=[*SOME, *SMALL])
_add("clone", lambda T, x: T.clone(x), lambda x: x, cases=[*SOME, *SMALL])
_add("detach", lambda T, x: x.detach(), lambda x: x, cases=SMALL, grad="none")
_add("ravel", lambda T, x: T.ravel(x), lambda x: x.reshape(-1), cases=SOME)
_add("to_double", lambda T, x: x.to(T.float64), lambda x: x.astype(np.float64), cases=SMALL)
