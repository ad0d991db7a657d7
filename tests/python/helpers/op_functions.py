"""Rows of the operation table: functions of `nn.functional` that are composed of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special
from scipy.spatial import distance

from op_kit import Arg, Op, Sample, arg, index, uniform

OPS: list[Op] = []

# Rows that are several nodes here, and PyTorch's node (of one of their forms, or the last of its own steps).
COMPOSED = {
    "glu": "GluBackward0",
    "cosine_similarity": "SumBackward1",
    "pairwise_distance": "NormBackward1",
    "cdist": "CdistBackward0",
    "pdist": "PdistBackward0",
    "soft_margin_loss": "SoftMarginLossBackward0",
    "multi_margin_loss": "MultiMarginLossBackward0",
    "multilabel_margin_loss": "MultilabelMarginLossBackward0",
    "embedding": "EmbeddingBackward0",
    "pixel_shuffle": "PixelShuffleBackward0",
    "pixel_unshuffle": "PixelUnshuffleBackward0",
    "channel_shuffle": "ChannelShuffleBackward0",
    "pad": "ConstantPadNdBackward0",
    "affine_grid": "AffineGridGeneratorBackward0",
    "addmv": "AddmvBackward0",
    "addr": "AddrBackward0",
    "addbmm": "AddbmmBackward0",
    "vdot": "VdotBackward0",
    "ldexp": "LdexpBackward0",
    "matrix_power": "UnsafeViewBackward0",
    "renorm": "RenormBackward0",
    "select_scatter": "SelectScatterBackward0",
    "slice_scatter": "SliceScatterBackward0",
    "diagonal_scatter": "DiagonalScatterBackward0",
}

# Away from the kinks at 0.
off_zero = uniform(-2.0, 2.0, avoid=(0.0,))


def _add(name: str, call: Callable[..., Any], cases: Sequence[Any], ref: Callable[..., Any] | None, **kw: Any) -> None:
    """Cases of ([argument, ...], params); an argument is a shape, (shape, layout) or a ready Arg."""
    draw = kw.pop("draw", off_zero)

    def make(rng: np.random.Generator, a: Any) -> Arg:
        if isinstance(a, Arg):
            return a
        if len(a) == 2 and isinstance(a[0], tuple):
            return arg(draw(rng, a[0]), a[1])
        return arg(draw(rng, a))

    def samples(rng: np.random.Generator) -> Iterator[Sample]:
        for args, params in cases:
            yield Sample(tuple(make(rng, a) for a in args), dict(params))

    family = "loss" if name.endswith("loss") else "function"
    OPS.append(Op(name, call, samples, ref, family=family, composed=name in COMPOSED, **kw))


def _functional(name: str, cases: Sequence[Any], ref: Callable[..., Any] | None, **kw: Any) -> None:
    _add(name, lambda T, *xs, **p: getattr(T.nn.functional, name)(*xs, **p), cases, ref, **kw)


SHAPES = [(), (3,), (2, 3), ((3, 2), "transposed"), ((2, 2), "strided"), (0, 2)]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848, 1.0507009873554804934
_functional("selu", [([s], {}) for s in SHAPES], lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x)))


def _prelu(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    along = w.reshape([-1 if d == 1 else 1 for d in range(x.ndim)]) if w.size > 1 else w.reshape(())
    return np.where(x > 0, x, along * x)


_functional(
    "prelu",
    [([(), ()], {}), ([(3,), (1,)], {}), ([(2, 3), (3,)], {}), ([((2, 3), "transposed"), ((3,), "offset")], {})]
    + [([(2, 3, 2), (3,)], {}), ([(0, 3), (3,)], {})],
    _prelu,
)


def _glu(x: np.ndarray, dim: int = -1) -> np.ndarray:
    a, b = np.split(x, 2, dim)
    return a * special.expit(b)


_functional("glu", [([(4,)], {}), ([(2, 3)], {"dim": 0}), ([((3, 4), "transposed")], {"dim": 1})], _glu)

_add(
    "logaddexp2",
    lambda T, x, y: T.logaddexp2(x, y),
    [([(), ()], {}), ([(2, 3), (3,)], {}), ([((2, 3), "transposed"), ((2, 3), "strided")], {})],
    np.logaddexp2,
    tol=2,
)
_add("deg2rad", lambda T, x: T.deg2rad(x), [([s], {}) for s in SHAPES], np.deg2rad)
_add("rad2deg", lambda T, x: T.rad2deg(x), [([s], {}) for s in SHAPES], np.rad2deg)


# --- distances -------------------------------------------------------------------------------------
def _cosine(x: np.ndarray, y: np.ndarray, dim: int = 1) -> np.ndarray:
    norms = np.linalg.norm(x, axis=dim) * np.linalg.norm(y, axis=dim)
    return (x * y).sum(dim) / norms


_functional(
    "cosine_similarity",
    [([(2, 3), (2, 3)], {}), ([(3,), (3,)], {"dim": 0}), ([((2, 3), "transposed"), ((2, 3), "strided")], {"dim": -1})]
    + [([(2, 3, 2), (2, 3, 2)], {"dim": 1})],
    _cosine,
    tol=2,
)
_functional(
    "pairwise_distance",
    [([(2, 3), (2, 3)], {"p": p}) for p in (1.0, 2.0, 3.0)]
    + [([(3,), (2, 3)], {}), ([(2, 3), (2, 3)], {"keepdim": True})],
    lambda x, y, p=2.0, keepdim=False: (np.abs(x - y + 1e-6) ** p).sum(-1, keepdims=keepdim) ** (1 / p),
    draw=uniform(-2.0, 2.0, step=0.5),
    tol=4,
)


def _cdist(x: np.ndarray, y: np.ndarray, p: float = 2.0, compute_mode: str = "") -> np.ndarray:
    return (np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p).sum(-1) ** (1 / p)


_add(
    "cdist",
    lambda T, x, y, **p: T.cdist(x, y, **p),
    [([(2, 3), (4, 3)], {"p": p}) for p in (1.0, 2.0, 3.0)]
    + [([(2, 3), (4, 3)], {"compute_mode": "use_mm_for_euclid_dist"}), ([(2, 3, 2), (1, 2, 2)], {})]
    + [([((2, 3), "transposed"), ((2, 3), "strided")], {})],
    _cdist,
    draw=uniform(-2.0, 2.0),
    tol=8,
)
_functional(
    "pdist",
    [([(4, 3)], {"p": p}) for p in (1.0, 2.0, 3.0)] + [([((3, 4), "transposed")], {})],
    lambda x, p=2.0: distance.pdist(x.astype(float), "minkowski", p=p).astype(x.dtype),
    draw=uniform(-2.0, 2.0),
    tol=8,
)
_functional(
    "bilinear",
    [([(2, 3), (2, 4), (5, 3, 4)], {}), ([(3,), (2,), (2, 3, 2), (2,)], {})],
    lambda x, y, w, b=0.0: np.einsum("...i,kij,...j->...k", x, w, y) + b,
    tol=4,
)


# --- losses of elements and rows --------------------------------------------------------------------
def _reduced(x: np.ndarray, reduction: str) -> np.ndarray:
    return {"none": lambda: x, "mean": x.mean, "sum": x.sum}[reduction]()


def _signs(*shape: int) -> Arg:
    return index(np.where(np.arange(int(np.prod(shape))) % 3 == 0, -1, 1).reshape(shape))


_functional(
    "hinge_embedding_loss",
    [([(2, 3), _signs(2, 3)], {"reduction": r}) for r in ("none", "mean")],
    lambda x, t, reduction: _reduced(np.where(t == 1, x, np.maximum(0, 1 - x)), reduction),
    draw=uniform(-2.0, 2.0, avoid=(0.0, 1.0)),
)
_functional(
    "soft_margin_loss",
    [([(2, 3), _signs(2, 3)], {"reduction": "none"}), ([(3,), _signs(3)], {"reduction": "sum"})],
    lambda x, t, reduction: _reduced(np.logaddexp(0, -t * x), reduction),
    tol=2,
)
_functional(
    "poisson_nll_loss",
    [([(2, 3), (2, 3)], {"reduction": "none"}), ([(3,), (3,)], {"reduction": "mean"})],
    lambda x, t, reduction: _reduced(np.exp(x) - t * x, reduction),
    tol=2,
)
_functional(
    "multilabel_soft_margin_loss",
    [([(2, 3), index(np.array([[0, 1, 1], [1, 0, 0]]))], {"reduction": "none"})],
    lambda x, t, reduction: (t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)).mean(-1),
    tol=2,
)


def _multi_margin(x: np.ndarray, t: np.ndarray, p: int, reduction: str) -> np.ndarray:
    own = np.take_along_axis(x, t[:, None], 1)
    z = np.maximum(0, 3.0 - own + x) ** p
    np.put_along_axis(z, t[:, None], 0, 1)
    return z.sum(1) / x.shape[1]


_add(
    "multi_margin_loss",
    lambda T, x, t, **p: T.nn.functional.multi_margin_loss(x, t, margin=3.0, **p),
    [([(2, 3), index(np.array([2, 0]))], {"p": p, "reduction": "none"}) for p in (1, 2)],
    _multi_margin,
    draw=uniform(-1.2, 1.2),
    tol=2,
)


def _multilabel_margin(x: np.ndarray, t: np.ndarray, reduction: str) -> np.ndarray:
    out = []
    for row, targets in zip(x, t, strict=True):
        chosen = list(targets[: list(targets).index(-1)]) if -1 in targets else list(targets)
        others = [i for i in range(len(row)) if i not in chosen]
        out.append(sum(max(0, 1 - (row[j] - row[i])) for j in chosen for i in others) / len(row))
    return np.array(out, x.dtype)


_functional(
    "multilabel_margin_loss",
    [([(2, 4), index(np.array([[3, 0, -1, 1], [-1, 2, 1, 0]]))], {"reduction": "none"})],
    _multilabel_margin,
    draw=uniform(-0.4, 0.4),
    tol=2,
)


# --- tables and rearrangements ----------------------------------------------------------------------
_add(
    "embedding",
    lambda T, w, i: T.nn.functional.embedding(i, w),
    [([(4, 3), index(np.array([[0, 3], [3, 1]]))], {}), ([((3, 4), "transposed"), index(np.array([1]))], {})]
    + [([(4, 3), index(np.zeros((0,), np.int64))], {}), ([(4, 3), index(np.array(2))], {})],
    lambda w, i: w[i],
)


def _pixels(x: np.ndarray, upscale_factor: int) -> np.ndarray:
    r = upscale_factor
    *lead, c, h, w = x.shape
    y = x.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    return y.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // r**2, h * r, w * r)


_functional(
    "pixel_shuffle",
    [([(1, 4, 2, 1)], {"upscale_factor": 2}), ([(8, 1, 2)], {"upscale_factor": 2})],
    _pixels,
)
_functional(
    "pixel_unshuffle",
    [([(1, 1, 4, 2)], {"downscale_factor": 2})],
    lambda x, downscale_factor: x.reshape(1, 1, 2, 2, 1, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 4, 2, 1),
)
_functional(
    "channel_shuffle",
    [([(2, 6, 2)], {"groups": 3})],
    lambda x, groups: x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(2, 6, 2),
)

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(x: np.ndarray, pad: Sequence[int], mode: str = "constant") -> np.ndarray:
    widths = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        widths[x.ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return np.pad(x, widths, mode=_MODES[mode])  # type: ignore[call-overload]


_functional(
    "pad",
    [([(2, 3)], {"pad": (1, 2), "mode": m}) for m in _MODES]
    + [([(2, 3, 3)], {"pad": (2, 0, 1, 1), "mode": m}) for m in _MODES]
    + [([((3, 2), "transposed")], {"pad": (0, 1)}), ([(3,)], {"pad": (1, 1)}), ([(0, 2)], {"pad": (1, 1, 1, 0)})],
    _pad,
)


def _local(x: np.ndarray, size: int) -> np.ndarray:
    c = x.shape[1]
    sums = [(x[:, max(i - size // 2, 0) : i + (size - 1) // 2 + 1] ** 2).sum(1) for i in range(c)]
    return x / (np.stack(sums, 1) * 0.5 / size + 1.5) ** 0.75


_add(
    "local_response_norm",
    lambda T, x, size: T.nn.functional.local_response_norm(x, size, alpha=0.5, k=1.5),
    [([(2, 4, 2)], {"size": n}) for n in (1, 2, 3, 9, 18)],
    _local,
    tol=4,
)


def _grid(theta: np.ndarray, align_corners: bool) -> np.ndarray:
    h, w = 2, 3
    y, x = (np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) for n in (h, w))
    yy, xx = np.meshgrid(y, x, indexing="ij")
    base = np.stack([xx, yy, np.ones_like(xx)], -1)
    return np.einsum("hwk,nik->nhwi", base, theta).astype(theta.dtype)


_add(
    "affine_grid",
    lambda T, t, align_corners: T.nn.functional.affine_grid(t, (t.shape[0], 1, 2, 3), align_corners),
    [([(2, 2, 3)], {"align_corners": c}) for c in (True, False)],
    _grid,
    tol=4,
)


# --- products with an addend, copies with a part replaced --------------------------------------------
_add(
    "addmv",
    lambda T, c, m, v, **p: T.addmv(c, m, v, **p),
    [([(2,), (2, 3), (3,)], {}), ([(2,), ((2, 3), "transposed"), (3,)], {"beta": 0.5, "alpha": 2})]
    + [([(1,), (2, 3), (3,)], {}), ([(2,), (2, 0), (0,)], {})],
    lambda c, m, v, beta=1, alpha=1: beta * c + alpha * (m @ v),
    tol=2,
)
_add(
    "addr",
    lambda T, c, v, w, **p: T.addr(c, v, w, **p),
    [([(2, 3), (2,), (3,)], {}), ([(3,), (2,), ((3,), "offset")], {"beta": 0.5, "alpha": 2})],
    lambda c, v, w, beta=1, alpha=1: beta * c + alpha * np.outer(v, w),
    tol=2,
)
_add(
    "addbmm",
    lambda T, c, a, b, **p: T.addbmm(c, a, b, **p),
    [([(2, 4), (3, 2, 5), (3, 5, 4)], {}), ([(4,), (2, 2, 3), ((2, 3, 4), "transposed")], {"beta": 0.5, "alpha": 2})],
    lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b).sum(0),
    tol=4,
)
_add("vdot", lambda T, v, w: T.vdot(v, w), [([(3,), (3,)], {}), ([((3,), "offset"), (3,)], {})], np.vdot, tol=2)
_add(
    "ldexp",
    lambda T, x, e: T.ldexp(x, e),
    [([(2, 3), (3,)], {}), ([(), ()], {})],
    lambda x, e: x * 2**e,
    tol=2,
)
_add(
    "matrix_power",
    lambda T, m, n: T.matrix_power(m, n),
    [([(3, 3)], {"n": n}) for n in (0, 1, 2, 5)] + [([((2, 2, 2), "transposed")], {"n": 3})],
    np.linalg.matrix_power,
    draw=uniform(-0.9, 0.9),
    tol=8,
)


def _renorm(x: np.ndarray, p: float, dim: int, maxnorm: float) -> np.ndarray:
    norms = (np.abs(x) ** p).sum(tuple(d for d in range(x.ndim) if d != dim), keepdims=True) ** (1 / p)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


_add(
    "renorm",
    lambda T, x, p, dim, maxnorm: T.renorm(x, p, dim, maxnorm),
    [([(3, 2)], {"p": 2, "dim": 0, "maxnorm": 1.3}), ([((2, 3, 2), "transposed")], {"p": 3, "dim": 1, "maxnorm": 1.0})],
    _renorm,
    tol=4,
)


def _replaced(part: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def ref(x: np.ndarray, src: np.ndarray, **params: Any) -> np.ndarray:
        out = x.copy()
        part(out, src, **params)
        return out

    return ref


def _select(x: np.ndarray, src: np.ndarray, dim: int, index: int) -> None:
    np.moveaxis(x, dim, 0)[index] = src


def _slice(x: np.ndarray, src: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> None:
    np.moveaxis(x, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)


def _diagonal(x: np.ndarray, src: np.ndarray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> None:
    view = np.moveaxis(x, (dim1, dim2), (-2, -1))
    for i in range(src.shape[-1]):
        view[..., i + max(-offset, 0), i + max(offset, 0)] = src[..., i]


_add(
    "select_scatter",
    lambda T, x, s, **p: T.select_scatter(x, s, **p),
    [([(2, 3), (3,)], {"dim": 0, "index": -1}), ([((2, 3), "transposed"), (2,)], {"dim": 1, "index": 1})],
    _replaced(_select),
)
_add(
    "slice_scatter",
    lambda T, x, s, **p: T.slice_scatter(x, s, **p),
    [([(5, 2), (2, 2)], {"start": -4, "step": 2}), ([(2, 4), ((2, 2), "strided")], {"dim": 1, "start": 1, "end": 3})]
    + [([(2, 3), (2, 3)], {}), ([(2, 3), (0, 3)], {"start": 1, "end": 1})],
    _replaced(_slice),
)
_add(
    "diagonal_scatter",
    lambda T, x, s, **p: T.diagonal_scatter(x, s, **p),
    [([(3, 4), (3,)], {}), ([(4, 3), (2,)], {"offset": -2}), ([(2, 5), (2,)], {"offset": 1})]
    + [([(3, 2, 3), (2, 3)], {"dim1": 2, "dim2": 0})],
    _replaced(_diagonal),
)
