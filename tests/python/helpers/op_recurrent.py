"""Rows of recurrent layers and cells, with the definitions in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from op_kit import Op, Sample, arg

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _step(kind: str, x: np.ndarray, product: np.ndarray, state: np.ndarray, cell: Any) -> tuple[np.ndarray, Any]:
    if kind == "rnn_tanh":
        return np.tanh(x + product), cell
    if kind == "gru":
        (r, z, n), (s, t, m) = np.split(x, 3, -1), np.split(product, 3, -1)
        new = np.tanh(n + _sigmoid(r + s) * m)
        z = _sigmoid(z + t)
        return (1 - z) * new + z * state, cell
    i, f, g, o = np.split(x + product, 4, -1)
    cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(cell), cell


def _call(kind: str) -> Callable[..., Any]:
    def call(T: Any, x: Any, *rest: Any) -> Any:
        *params, h = rest[:5]
        first = (h, rest[5]) if kind == "lstm" else h
        return getattr(T, kind)(x, first, params, True, 1, 0.0, True, False, False)[0]

    return call


def _reference(kind: str) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        w_x, w_h, b_x, b_h, h = rest[:5]
        state, cell = h[0], rest[5][0] if kind == "lstm" else None
        made = []
        for now in x:
            state, cell = _step(kind, now @ w_x.T + b_x, state @ w_h.T + b_h, state, cell)
            made.append(state)
        return np.stack(made)

    return reference


def _samples(kind: str) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for steps, batch, features, size, layout in (
            (2, 2, 2, 2, "dense"),
            (3, 1, 1, 2, "transposed"),
            (1, 3, 2, 1, "offset"),
        ):
            rows = GATES[kind] * size
            shapes = [(steps, batch, features), (rows, features), (rows, size), (rows,), (rows,), (1, batch, size)]
            if kind == "lstm":
                shapes.append((1, batch, size))
            yield Sample(tuple(arg(rng.standard_normal(s), layout if len(s) > 1 else "dense") for s in shapes))

    return samples


OPS: list[Op] = [Op(kind, _call(kind), _samples(kind), _reference(kind), family="recurrent", tol=8) for kind in GATES]
