"""Rows of the operation table: convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from op_kit import Op, Sample, arg, normal

OPS: list[Op] = []


def _all(value: Any, dims: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,) * dims


def _pairs(
    sizes: tuple[int, ...], kernel: tuple[int, ...], outputs: tuple[int, ...], params: dict[str, Any]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """The places of output, kernel and input that meet."""
    dims = len(sizes)
    stride, dilation = _all(params.get("stride", 1), dims), _all(params.get("dilation", 1), dims)
    padding = _all(params.get("padding", 0), dims)
    for o in product(*map(range, outputs)):
        for k in product(*map(range, kernel)):
            i = tuple(o[d] * stride[d] + k[d] * dilation[d] - padding[d] for d in range(dims))
            if all(0 <= i[d] < sizes[d] for d in range(dims)):
                yield o, k, i


def _forward(x: np.ndarray, w: np.ndarray, *bias: np.ndarray, **params: Any) -> np.ndarray:
    dims, groups = w.ndim - 2, params.get("groups", 1)
    if x.ndim == dims + 1:
        return _forward(x[None], w, *bias, **params)[0]
    if params.get("padding") == "same":
        reach = [d * (k - 1) for d, k in zip(_all(params.get("dilation", 1), dims), w.shape[2:], strict=True)]
        x = np.pad(x, [(0, 0), (0, 0), *((r // 2, r - r // 2) for r in reach)])
        params = {**params, "padding": 0}
    padding = _all(params.get("padding", 0), dims)
    outputs = tuple(
        (x.shape[d + 2] + 2 * padding[d] - _all(params.get("dilation", 1), dims)[d] * (w.shape[d + 2] - 1) - 1)
        // _all(params.get("stride", 1), dims)[d]
        + 1
        for d in range(dims)
    )
    y = np.zeros((x.shape[0], w.shape[0], *outputs))
    into, out = w.shape[1], w.shape[0] // groups
    for o, k, i in _pairs(x.shape[2:], w.shape[2:], outputs, params):
        for g in range(groups):
            a, b = slice(g * into, (g + 1) * into), slice(g * out, (g + 1) * out)
            y[(slice(None), b, *o)] += x[(slice(None), a, *i)] @ w[(b, slice(None), *k)].T
    return y + bias[0].reshape(-1, *[1] * dims) if bias else y


def _transposed(x: np.ndarray, w: np.ndarray, *bias: np.ndarray, **params: Any) -> np.ndarray:
    dims, groups = w.ndim - 2, params.get("groups", 1)
    if x.ndim == dims + 1:
        return _transposed(x[None], w, *bias, **params)[0]
    more = _all(params.get("output_padding", 0), dims)
    stride, dilation = _all(params.get("stride", 1), dims), _all(params.get("dilation", 1), dims)
    padding = _all(params.get("padding", 0), dims)
    outputs = tuple(
        (x.shape[d + 2] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (w.shape[d + 2] - 1) + more[d] + 1
        for d in range(dims)
    )
    y = np.zeros((x.shape[0], w.shape[1] * groups, *outputs))
    into, out = w.shape[0] // groups, w.shape[1]
    for o, k, i in _pairs(outputs, w.shape[2:], x.shape[2:], params):
        for g in range(groups):
            a, b = slice(g * into, (g + 1) * into), slice(g * out, (g + 1) * out)
            y[(slice(None), b, *i)] += x[(slice(None), a, *o)] @ w[(a, slice(None), *k)]
    return y + bias[0].reshape(-1, *[1] * dims) if bias else y


def _tbc(x: np.ndarray, w: np.ndarray, bias: np.ndarray, pad: int = 0) -> np.ndarray:
    return _forward(x.transpose(1, 2, 0), w.transpose(2, 1, 0), bias, padding=pad).transpose(2, 0, 1)


Shapes = tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any], str]

PLAIN: dict[int, tuple[Shapes, ...]] = {
    1: (
        ((2, 3, 5), (2, 3, 2), True, {}, "dense"),
        ((2, 4, 6), (2, 2, 3), False, {"stride": 2, "padding": 1, "groups": 2}, "transposed"),
        ((2, 5), (3, 2, 2), True, {"dilation": 3}, "dense"),
        ((1, 2, 5), (2, 2, 3), False, {"padding": "same"}, "strided"),
        ((3, 2, 4), (2, 1, 1), True, {"groups": 2, "padding": 2}, "expanded"),
        ((0, 2, 4), (2, 2, 3), True, {}, "dense"),
    ),
    2: (
        ((2, 2, 4, 3), (3, 2, 2, 3), True, {}, "dense"),
        # Enough rows, columns and terms for a tile on the GPU.
        ((1, 2, 5, 5), (8, 2, 2, 2), True, {}, "dense"),
        ((2, 2, 5, 4), (4, 1, 3, 2), True, {"stride": (2, 1), "padding": (1, 2), "groups": 2}, "strided"),
        ((1, 2, 5, 6), (2, 2, 2, 2), False, {"dilation": (2, 3), "stride": 2}, "transposed"),
        ((2, 4, 3), (1, 2, 1, 3), True, {"padding": "same"}, "offset"),
        ((2, 3, 4, 4), (3, 1, 3, 3), False, {"groups": 3, "padding": 1}, "dense"),
    ),
    3: (
        ((1, 2, 3, 2, 3), (2, 2, 2, 1, 2), True, {}, "dense"),
        (
            (2, 2, 3, 4, 3),
            (2, 1, 2, 3, 2),
            False,
            {"stride": (1, 2, 1), "padding": (0, 1, 1), "groups": 2},
            "transposed",
        ),
        ((1, 3, 3, 3), (2, 1, 2, 2, 2), True, {"dilation": (2, 1, 1)}, "dense"),
    ),
}

TRANSPOSED: dict[int, tuple[Shapes, ...]] = {
    1: (
        ((2, 3, 4), (3, 2, 2), True, {}, "dense"),
        ((2, 4, 3), (4, 1, 3), False, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, "transposed"),
        ((2, 3), (2, 2, 2), True, {"dilation": 2, "output_padding": 1}, "strided"),
    ),
    2: (
        ((2, 2, 3, 2), (2, 3, 2, 3), True, {}, "dense"),
        ((1, 2, 3, 3), (2, 8, 2, 2), True, {"padding": 0}, "dense"),
        ((2, 2, 3, 2), (2, 2, 3, 2), False, {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2)}, "offset"),
        ((1, 4, 2, 2), (4, 1, 2, 2), True, {"groups": 4, "stride": 2}, "expanded"),
    ),
    3: (
        ((1, 2, 2, 2, 3), (2, 1, 2, 1, 2), True, {}, "dense"),
        ((2, 2, 2, 1, 2), (2, 2, 2, 2, 2), False, {"stride": 2, "padding": (1, 0, 1), "output_padding": 1}, "dense"),
    ),
}


def _samples(table: tuple[Shapes, ...], transposed: bool) -> Callable[[np.random.Generator], Iterator[Sample]]:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for n, (x, w, bias, params, layout) in enumerate(table):
            channels = w[1] * params.get("groups", 1) if transposed else w[0]
            args = [arg(normal(rng, x), layout), arg(normal(rng, w), "transposed" if n % 3 == 1 else "dense")]
            yield Sample((*args, *([arg(normal(rng, (channels,)))] if bias else [])), params)

    return samples


def _calling(name: str) -> Callable[..., Any]:
    def call(T: Any, x: Any, w: Any, *bias: Any, **params: Any) -> Any:
        return getattr(T.nn.functional, name)(x, w, *bias, **params)

    return call


def _tbc_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for x, w, pad in (((4, 2, 3), (2, 3, 2), 0), ((3, 1, 2), (3, 2, 3), 1)):
        yield Sample((arg(normal(rng, x)), arg(normal(rng, w), "strided"), arg(normal(rng, w[2:]))), {"pad": pad})


for dims in (1, 2, 3):
    name = f"conv{dims}d"
    OPS.append(Op(name, _calling(name), _samples(PLAIN[dims], False), _forward, family="conv", tol=8))
    name = f"conv_transpose{dims}d"
    OPS.append(Op(name, _calling(name), _samples(TRANSPOSED[dims], True), _transposed, family="conv", tol=8))
OPS.append(Op("conv_tbc", lambda T, x, w, b, pad: T.conv_tbc(x, w, b, pad), _tbc_samples, _tbc, family="conv", tol=8))
