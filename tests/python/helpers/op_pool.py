"""Rows of the operation table: pooling, windows as columns, changes of size, images read at other places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from op_kit import Arg, Op, Sample, arg, index, normal, uniform

Samples = Callable[[np.random.Generator], Iterator[Sample]]

positive = uniform(0.3, 2.0)

# How many dimensions are pooled, shape, layout of the argument, kernel, stride, padding, dilation, ceil_mode.
WINDOWS: tuple[tuple[int, tuple[int, ...], str, Any, Any, Any, Any, bool], ...] = (
    (1, (2, 1, 5), "dense", 2, None, 0, 1, False),
    (1, (3, 6), "offset", 3, 1, 1, 1, False),
    (1, (2, 2, 6), "strided", 2, 2, 0, 2, True),
    (2, (1, 2, 4, 5), "dense", 2, None, 0, 1, False),
    (2, (2, 1, 5, 5), "dense", 3, 2, 1, 1, False),
    (2, (2, 1, 4, 5), "expanded", (2, 3), (1, 2), (1, 0), 1, True),
    (2, (2, 5, 5), "transposed", 2, 1, 0, (2, 1), False),
    (2, (0, 2, 4, 4), "dense", 2, None, 0, 1, False),
    (3, (1, 1, 3, 4, 4), "dense", 2, None, 0, 1, False),
    (3, (1, 3, 2, 4), "strided", (2, 1, 3), 1, (1, 0, 1), 1, True),
)


def _each(v: Any, n: int) -> tuple[int, ...]:
    return (v,) * n if isinstance(v, int) else tuple(v)


def _window_samples(n: int, dilated: bool = True, draw: Any = normal) -> Samples:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for dims, shape, layout, kernel, stride, padding, dilation, ceil in WINDOWS:
            if dims != n or (not dilated and dilation != 1):
                continue
            params = {"kernel": kernel, "stride": stride, "padding": padding, "ceil": ceil}
            if dilated:
                params["dilation"] = dilation
            yield Sample((arg(draw(rng, shape), layout),), params)

    return samples


def _outputs(size: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    room = size + 2 * p - d * (k - 1) - 1
    n = (math.ceil(room / s) if ceil else room // s) + 1
    return n - 1 if ceil and (n - 1) * s >= size + p else n


def _pooled(
    x: np.ndarray,
    n: int,
    take: Callable[[np.ndarray, int, int], Any],
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    dilation: Any = 1,
) -> np.ndarray:
    """`take` of the elements of each window, their number, and their number with padding."""
    k, p, d = _each(kernel, n), _each(padding, n), _each(dilation, n)
    s = k if stride is None else _each(stride, n)
    lead, sizes = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    out = [_outputs(*v, ceil) for v in zip(sizes, k, s, p, d, strict=True)]
    y = np.zeros((*lead, *out))
    for at in product(*map(range, out)):
        inside, padded = [], 1
        for a in range(n):
            start = at[a] * s[a] - p[a]
            taps = [start + i * d[a] for i in range(k[a])]
            inside.append([i for i in taps if 0 <= i < sizes[a]])
            padded *= len([i for i in taps if i < sizes[a] + p[a]])
        window = x[(..., *np.ix_(*inside))].reshape(*lead, math.prod(map(len, inside)))
        y[(..., *at)] = take(window, window.shape[-1], padded)
    return y


def _max_ref(n: int) -> Callable[..., np.ndarray]:
    return lambda x, **p: _pooled(x, n, lambda w, _n, _m: w.max(-1), **p)


def _mean_ref(n: int, include: bool, divisor: int | None = None) -> Callable[..., np.ndarray]:
    return lambda x, **p: _pooled(x, n, lambda w, k, m: w.sum(-1) / (divisor or (m if include else k)), **p)


def _positions_ref(x: np.ndarray, **params: Any) -> tuple[np.ndarray, np.ndarray]:
    plane = np.arange(x.shape[-1] * x.shape[-2]).reshape(x.shape[-2:])
    # The places of all elements of each window, in the order of the window.
    places: list[np.ndarray] = []
    _pooled(plane.astype(float), 2, lambda w, _n, _m: places.append(w.astype(np.int64)) or 0.0, **params)
    values = _max_ref(2)(x, **params)
    flat = x.reshape(*x.shape[:-2], plane.size)
    at = np.stack([place[flat[..., place].argmax(-1)] for place in places], -1)
    return values, at.reshape(values.shape)


def _lp_ref(n: int, norm: float) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, kernel: Any, stride: Any, padding: Any, ceil: bool) -> np.ndarray:
        count = math.prod(_each(kernel, n))
        # The mean, times the size of a whole window.
        mean = _pooled(x**norm, n, lambda w, k, m: w.sum(-1) / m, kernel, stride, 0, ceil)
        return (mean * count) ** (1 / norm)

    return ref


OPS: list[Op] = []

for _n in (1, 2, 3):
    OPS += [
        Op(
            f"max_pool{_n}d",
            lambda T, x, kernel, stride, padding, dilation, ceil, n=_n: getattr(T.nn.functional, f"max_pool{n}d")(
                x, kernel, stride, padding, dilation, ceil
            ),
            _window_samples(_n),
            _max_ref(_n),
            family="pool",
        ),
        Op(
            f"avg_pool{_n}d",
            lambda T, x, kernel, stride, padding, ceil, n=_n: getattr(T.nn.functional, f"avg_pool{n}d")(
                x, kernel, stride, padding, ceil
            ),
            _window_samples(_n, dilated=False),
            _mean_ref(_n, True),
            family="pool",
        ),
        Op(
            f"lp_pool{_n}d",
            lambda T, x, kernel, stride, padding, ceil, n=_n: getattr(T.nn.functional, f"lp_pool{n}d")(
                x, 2.5, kernel, stride, ceil
            ),
            _window_samples(_n, dilated=False, draw=positive),
            _lp_ref(_n, 2.5),
            family="pool",
            tol=8,
        ),
    ]

OPS += [
    Op(
        "max_pool2d_with_indices",
        lambda T, x, kernel, stride, padding, dilation, ceil: T.nn.functional.max_pool2d(
            x, kernel, stride, padding, dilation, ceil, return_indices=True
        ),
        _window_samples(2),
        _positions_ref,
        family="pool",
    ),
    Op(
        "avg_pool2d_inside",
        lambda T, x, kernel, stride, padding, ceil: T.nn.functional.avg_pool2d(x, kernel, stride, padding, ceil, False),
        _window_samples(2, dilated=False),
        _mean_ref(2, False),
        family="pool",
    ),
    Op(
        "avg_pool3d_divided",
        lambda T, x, kernel, stride, padding, ceil: T.nn.functional.avg_pool3d(
            x, kernel, stride, padding, ceil, divisor_override=3
        ),
        _window_samples(3, dilated=False),
        _mean_ref(3, True, 3),
        family="pool",
    ),
]


def _adaptive_samples(n: int) -> Samples:
    shapes = {1: ((2, 1, 5), (2, 7)), 2: ((2, 1, 5, 4), (2, 3, 6), (1, 2, 4, 4)), 3: ((1, 1, 3, 4, 5), (2, 3, 2, 4))}

    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        layouts = ("dense", "transposed", "strided")
        for (shape, layout), size in product(zip(shapes[n], layouts, strict=False), ((2, 3, 5), (3, 6, 1))):
            yield Sample((arg(normal(rng, shape), layout),), {"size": size[-n:] if n > 1 else size[0]})

    return samples


def _adaptive_ref(n: int, take: Callable[[np.ndarray], Any]) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, size: Any) -> np.ndarray:
        out, sizes, lead = _each(size, n), x.shape[x.ndim - n :], x.shape[: x.ndim - n]
        y = np.zeros((*lead, *out))
        for at in product(*map(range, out)):
            ranges = [range(i * s // o, -(-(i + 1) * s // o)) for i, s, o in zip(at, sizes, out, strict=True)]
            y[(..., *at)] = take(x[(..., *np.ix_(*ranges))].reshape(*lead, -1))
        return y

    return ref


for _n in (1, 2, 3):
    OPS += [
        Op(
            f"adaptive_avg_pool{_n}d",
            lambda T, x, size, n=_n: getattr(T.nn.functional, f"adaptive_avg_pool{n}d")(x, size),
            _adaptive_samples(_n),
            _adaptive_ref(_n, lambda w: w.mean(-1)),
            family="pool",
        ),
        Op(
            f"adaptive_max_pool{_n}d",
            lambda T, x, size, n=_n: getattr(T.nn.functional, f"adaptive_max_pool{n}d")(x, size),
            _adaptive_samples(_n),
            _adaptive_ref(_n, lambda w: w.max(-1)),
            family="pool",
        ),
    ]


def _fractional_samples(n: int) -> Samples:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in (((2, 2, 6, 5, 6)[: n + 2], "dense"), ((2, 7, 6, 5)[: n + 1], "transposed")):
            batch = shape[0] if len(shape) == n + 2 else 1
            drawn = Arg(rng.uniform(0, 1, (batch, shape[-n - 1], n)), differentiable=False)
            yield Sample((arg(normal(rng, shape), layout), drawn), {"kernel": 2, "size": 3})

    return samples


def _fractional_ref(n: int) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, u: np.ndarray, kernel: int, size: int) -> np.ndarray:
        lead, sizes = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
        planes, drawn = x.reshape(-1, *sizes), u.reshape(-1, n)
        y = np.zeros((len(planes), *(size,) * n))
        for plane, at, to in zip(planes, drawn, y, strict=True):
            starts = []
            for a, room in enumerate(s - kernel for s in sizes):
                # Of an image the first number is that of the width.
                v, step = at[1 - a] if n == 2 else at[a], room / (size - 1)
                starts.append([int((i + v) * step) - int(v * step) for i in range(size - 1)] + [room])
            for i in product(range(size), repeat=n):
                to[i] = plane[tuple(slice(s[k], s[k] + kernel) for s, k in zip(starts, i, strict=True))].max()
        return y.reshape(*lead, *(size,) * n)

    return ref


for _n in (2, 3):
    OPS.append(
        Op(
            f"fractional_max_pool{_n}d",
            lambda T, x, u, kernel, size, n=_n: getattr(T.nn.functional, f"fractional_max_pool{n}d")(
                x, kernel, size, _random_samples=u.detach()
            ),
            _fractional_samples(_n),
            _fractional_ref(_n),
            family="pool",
        )
    )


def _unpool_samples(n: int) -> Samples:
    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for shape, layout in (((2, 1, 2, 2, 2)[: n + 2], "dense"), ((2, 3, 2, 2)[: n + 1], "strided")):
            plane = math.prod(2 * s for s in shape[len(shape) - n :])
            count = math.prod(shape[len(shape) - n :])
            at = [rng.permutation(plane)[:count] for _ in range(math.prod(shape[: len(shape) - n]))]
            yield Sample((arg(normal(rng, shape), layout), index(np.array(at).reshape(shape))))

    return samples


def _unpool_ref(n: int) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        lead, size = x.shape[: x.ndim - n], tuple(2 * s for s in x.shape[x.ndim - n :])
        y = np.zeros((*lead, math.prod(size)))
        np.put_along_axis(y, at.reshape(*lead, -1), x.reshape(*lead, -1), -1)
        return y.reshape(*lead, *size)

    return ref


for _n in (1, 2, 3):
    OPS.append(
        Op(
            f"max_unpool{_n}d",
            lambda T, x, at, n=_n: getattr(T.nn.functional, f"max_unpool{n}d")(x, at, 2),
            _unpool_samples(_n),
            _unpool_ref(_n),
            family="pool",
        )
    )


# Shape, layout, kernel, dilation, padding, stride.
COLUMNS: tuple[tuple[tuple[int, ...], str, Any, Any, Any, Any], ...] = (
    ((1, 2, 3, 4), "dense", 2, 1, 0, 1),
    ((2, 1, 4, 5), "transposed", (2, 3), 1, (1, 2), 2),
    ((2, 5, 4), "strided", (1, 2), (1, 2), 1, (2, 1)),
    ((2, 1, 4, 4), "expanded", 3, 1, 1, 3),
)


def _unfold_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout, *rest in COLUMNS:
        names = ("kernel", "dilation", "padding", "stride")
        yield Sample((arg(normal(rng, shape), layout),), dict(zip(names, rest, strict=True)))


def _unfold_ref(x: np.ndarray, kernel: Any, dilation: Any, padding: Any, stride: Any) -> np.ndarray:
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (_each(v, 2) for v in (kernel, dilation, padding, stride))
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(ph, ph), (pw, pw)])
    *lead, height, width = x.shape
    rows, columns = (height - dh * (kh - 1) - 1) // sh + 1, (width - dw * (kw - 1) - 1) // sw + 1
    parts = [
        x[..., i * dh : i * dh + (rows - 1) * sh + 1 : sh, j * dw : j * dw + (columns - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]
    stacked = np.stack(parts, -3)
    return stacked.reshape(*lead[:-1], lead[-1] * kh * kw, rows * columns)


def _fold_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout, *rest in COLUMNS:
        names = ("kernel", "dilation", "padding", "stride")
        params = dict(zip(names, rest, strict=True))
        columns = _unfold_ref(np.zeros(shape), **params).shape
        yield Sample((arg(normal(rng, columns), layout),), {"size": shape[-2:], **params})


def _fold_ref(x: np.ndarray, size: Any, **params: Any) -> np.ndarray:
    # Where each element of an image goes, once for each window that it is in.
    image = np.arange(math.prod(size), dtype=np.int64).reshape(1, 1, *size) + 1
    places = _unfold_ref(image, **params)[0]
    lead, channels = x.shape[:-2], x.shape[-2] // places.shape[0]
    y = np.zeros((*lead, channels, math.prod(size) + 1))
    parts = x.reshape(*lead, channels, -1)
    for k, place in enumerate(places.reshape(-1)):
        y[..., place] += parts[..., k]
    return y[..., 1:].reshape(*lead, channels, *size)


OPS += [
    Op(
        "unfold_columns",
        lambda T, x, kernel, dilation, padding, stride: T.nn.functional.unfold(x, kernel, dilation, padding, stride),
        _unfold_samples,
        _unfold_ref,
        family="pool",
    ),
    Op(
        "fold_columns",
        lambda T, x, size, kernel, dilation, padding, stride: T.nn.functional.fold(
            x, size, kernel, dilation, padding, stride
        ),
        _fold_samples,
        _fold_ref,
        family="pool",
    ),
]

# Shape, layout, parameters.
SIZES: tuple[tuple[tuple[int, ...], str, dict[str, Any]], ...] = (
    ((2, 1, 4), "dense", {"mode": "nearest", "size": 7}),
    ((2, 1, 4), "strided", {"mode": "nearest-exact", "scale_factor": 0.6}),
    ((1, 2, 4), "dense", {"mode": "linear", "size": 9, "align_corners": True}),
    ((1, 2, 5), "transposed", {"mode": "linear", "scale_factor": 1.7}),
    ((1, 2, 3, 4), "dense", {"mode": "nearest", "scale_factor": 2}),
    ((2, 1, 3, 4), "transposed", {"mode": "bilinear", "size": (5, 3)}),
    ((2, 1, 3, 4), "expanded", {"mode": "bilinear", "scale_factor": (1.3, 0.7), "align_corners": True}),
    ((1, 1, 7, 6), "dense", {"mode": "bilinear", "size": (3, 4), "antialias": True}),
    ((1, 1, 4, 3), "dense", {"mode": "bicubic", "size": (5, 7)}),
    ((1, 1, 7, 6), "offset", {"mode": "bicubic", "size": (3, 4), "antialias": True}),
    ((1, 1, 9, 8), "dense", {"mode": "lanczos", "size": (3, 4), "antialias": True}),
    ((2, 1, 4, 6), "dense", {"mode": "area", "size": (3, 4)}),
    ((1, 1, 2, 3, 2), "dense", {"mode": "trilinear", "size": (3, 2, 4)}),
    ((1, 1, 2, 3, 2), "strided", {"mode": "nearest", "scale_factor": 1.5}),
)


def _interpolate_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, layout, params in SIZES:
        yield Sample((arg(normal(rng, shape), layout),), params)


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _filtered(mode: str, x: float) -> float:
    if mode == "lanczos":
        return float(np.sinc(x) * np.sinc(x / 3)) if abs(x) < 3 else 0.0
    return _cubic(x, -0.5) if mode == "bicubic" else max(0.0, 1 - abs(x))


def _weights(mode: str, n: int, m: int, scale: float | None, corners: bool, antialias: bool) -> np.ndarray:
    """The matrix (m, n) of one axis."""
    w = np.zeros((m, n))
    step = ((n - 1) / (m - 1) if m > 1 else 0.0) if corners else 1 / scale if scale else n / m
    for o in range(m):
        at = o * step if corners else (o + 0.5) * step - 0.5
        low = math.floor(at)
        if mode == "area":
            begin, end = o * n // m, -(-(o + 1) * n // m)
            w[o, begin:end] = 1 / (end - begin)
        elif mode == "nearest":
            w[o, min(int(o * step), n - 1)] = 1
        elif mode == "nearest-exact":
            w[o, min(int((o + 0.5) * step), n - 1)] = 1
        elif antialias:
            wide = max(step, 1.0)
            each = np.array([_filtered(mode, (i + 0.5 - (o + 0.5) * step) / wide) for i in range(n)])
            w[o] = each / each.sum()
        elif mode == "bicubic":
            for i in range(low - 1, low + 3):
                w[o, min(max(i, 0), n - 1)] += _cubic(at - i, -0.75)
        else:
            at = min(max(at, 0), n - 1)
            low = min(math.floor(at), n - 2) if n > 1 else 0
            w[o, low] += 1 - (at - low)
            w[o, min(low + 1, n - 1)] += at - low
    return w


def _interpolate_ref(
    x: np.ndarray,
    mode: str,
    size: Any = None,
    scale_factor: Any = None,
    align_corners: bool = False,
    antialias: bool = False,
) -> np.ndarray:
    for a in range(x.ndim - 2):
        n = x.shape[a + 2]
        scale = (
            None if scale_factor is None else scale_factor if isinstance(scale_factor, float | int) else scale_factor[a]
        )
        m = int(n * scale) if scale else size if isinstance(size, int) else size[a]
        w = _weights(mode, n, m, scale, align_corners, antialias)
        x = np.moveaxis(np.tensordot(x, w, ([a + 2], [1])), -1, a + 2)
    return x


def _mirrored(u: float, n: int, corners: bool) -> float:
    low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
    if span == 0:
        return 0.0
    turns, rest = divmod(abs(u - low), span)
    return rest + low if turns % 2 == 0 else span - rest + low


def _grid_ref(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, corners: bool) -> np.ndarray:
    n, sizes = x.ndim - 2, x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))

    def brought(u: float, size: int) -> float:
        if padding == "reflection":
            u = _mirrored(u, size, corners)
        return u if padding == "zeros" else min(max(u, 0.0), size - 1.0)

    for place in product(*map(range, grid.shape[:-1])):
        along = []
        for a, size in enumerate(sizes):
            v = grid[place][n - 1 - a]
            u = (v + 1) / 2 * (size - 1) if corners else ((v + 1) * size - 1) / 2
            if mode == "bicubic":
                low = math.floor(u)
                along.append([(brought(i, size), _cubic(u - i, -0.75)) for i in range(low - 1, low + 3)])
                continue
            u = brought(u, size)
            low = math.floor(u)
            along.append([(round(u), 1.0)] if mode == "nearest" else [(low, 1 - (u - low)), (low + 1, u - low)])
        for corner in product(*along):
            at = [int(i) for i, _ in corner]
            if all(0 <= i < size for i, size in zip(at, sizes, strict=True)):
                y[(place[0], slice(None), *place[1:])] += (
                    math.prod(w for _, w in corner) * x[(place[0], slice(None), *at)]
                )
    return y


# Shape, grid, parameters.
GRIDS: tuple[tuple[tuple[int, ...], tuple[int, ...], str, str, bool], ...] = (
    ((2, 2, 3, 4), (2, 2, 3, 2), "bilinear", "zeros", False),
    ((1, 1, 3, 4), (1, 2, 2, 2), "bilinear", "border", True),
    ((1, 2, 3, 3), (1, 3, 1, 2), "bilinear", "reflection", False),
    ((1, 1, 4, 4), (1, 2, 2, 2), "bicubic", "zeros", True),
    ((1, 1, 4, 3), (1, 1, 3, 2), "bicubic", "reflection", False),
    ((1, 1, 2, 3, 3), (1, 1, 2, 2, 3), "bilinear", "zeros", True),
    ((1, 1, 2, 2, 3), (1, 1, 2, 1, 3), "bilinear", "border", False),
)


def _grid_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, places, mode, padding, corners in GRIDS:
        grid = rng.uniform(-1.4, 1.4, places)
        yield Sample((arg(normal(rng, shape)), arg(grid)), {"mode": mode, "padding": padding, "corners": corners})


def _nearest_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for shape, places, _, padding, corners in GRIDS:
        # Not near the edge of a pixel.
        size = np.array(shape[:1:-1])
        at = rng.integers(-1, size + 1, places) + rng.uniform(-0.3, 0.3, places)
        grid = 2 * at / np.maximum(size - 1, 1) - 1 if corners else (2 * at + 1) / size - 1
        params = {"mode": "nearest", "padding": padding, "corners": corners}
        yield Sample((arg(normal(rng, shape), "strided"), arg(grid)), params)


OPS += [
    Op(
        "interpolate",
        lambda T, x, **p: T.nn.functional.interpolate(x, **p),
        _interpolate_samples,
        _interpolate_ref,
        family="pool",
        tol=4,
    ),
    *(
        Op(
            name,
            lambda T, x, grid, mode, padding, corners: T.nn.functional.grid_sample(x, grid, mode, padding, corners),
            samples,
            _grid_ref,
            family="pool",
            tol=16,
        )
        for name, samples in (("grid_sample", _grid_samples), ("grid_sample_nearest", _nearest_samples))
    ),
]
