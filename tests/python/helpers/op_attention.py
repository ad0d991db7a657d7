"""Rows of attention, with the definition in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from op_kit import Op, Sample, arg

# Sizes in front, of keys and values (None: those of the queries), l, s, e, ev, layout, mask, other arguments.
CASES: tuple[
    tuple[tuple[int, ...], tuple[int, ...] | None, int, int, int, int, str, tuple[int, ...] | None, dict[str, Any]], ...
] = (
    ((2, 3), None, 3, 4, 2, 2, "dense", None, {}),
    ((1, 2), None, 4, 3, 3, 3, "transposed", None, {"is_causal": True}),
    ((), None, 3, 3, 2, 3, "strided", None, {"scale": 0.7}),
    ((2,), None, 2, 3, 3, 2, "offset", (2, 3), {}),
    ((2, 4), (2, 2), 2, 3, 2, 2, "dense", (1, 1, 2, 3), {"enable_gqa": True}),
    ((2, 1), (1, 1), 3, 2, 2, 2, "dense", (2, 1, 1, 2), {}),
    ((1, 1), None, 66, 3, 1, 1, "dense", None, {"is_causal": True}),
    ((2, 2), None, 1, 2, 2, 2, "expanded", None, {}),
    ((0, 2), None, 2, 2, 3, 3, "dense", None, {}),
)


def _samples(masked: bool) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for lead, of_keys, many, s, e, ev, layout, mask, params in CASES:
            if masked != (mask is not None):
                continue
            keys = lead if of_keys is None else of_keys
            shapes = [(*lead, many, e), (*keys, s, e), (*keys, s, ev), *([mask] if mask else [])]
            yield Sample(tuple(arg(rng.standard_normal(shape), layout) for shape in shapes), params)

    return samples


def _reference(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> np.ndarray:
    if enable_gqa:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(-1, keepdims=True) @ v


OPS: list[Op] = [
    Op(
        name,
        lambda T, *a, **params: T.nn.functional.scaled_dot_product_attention(*a, **params),
        _samples(masked),
        _reference,
        family="attention",
        tol=8,
    )
    for name, masked in (("scaled_dot_product_attention", False), ("scaled_dot_product_attention_masked", True))
]
