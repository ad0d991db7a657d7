"""Functions of `nn.functional` beside PyTorch's at random configurations: values, gradients of two orders, errors."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt, dtype_name  # noqa: E402
from nn_calls import CALLS  # noqa: E402

Build = Callable[[np.random.Generator], tuple[Callable[..., Any], list[np.ndarray]]]
CASES: dict[str, Build] = {}
ROUNDS = 12


def case(build: Build) -> Build:
    CASES[build.__name__] = build
    return build


def sizes(rng: np.random.Generator, rank: int, low: int = 1, high: int = 5) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high, rank))


def pick(rng: np.random.Generator, *options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def reduction(rng: np.random.Generator) -> str:
    return str(pick(rng, "mean", "sum", "none"))


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


@case
def prelu(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 5)), 2)
    weights = pick(rng, 1, shape[1]) if len(shape) > 1 else 1
    return lambda T, x, w: T.nn.functional.prelu(x, w), [draw(rng, *shape), draw(rng, weights)]


@case
def glu(rng: np.random.Generator) -> Any:
    rank = int(rng.integers(1, 4))
    dim = int(rng.integers(-rank, rank))
    shape = list(sizes(rng, rank))
    shape[dim] *= 2
    return lambda T, x: T.nn.functional.glu(x, dim), [draw(rng, *shape)]


@case
def selu(rng: np.random.Generator) -> Any:
    return lambda T, x: T.nn.functional.selu(x), [draw(rng, *sizes(rng, 2))]


@case
def rrelu_in_evaluation(rng: np.random.Generator) -> Any:
    lower = float(rng.uniform(0, 0.3))
    return lambda T, x: T.nn.functional.rrelu(x, lower, 0.5), [draw(rng, *sizes(rng, 2))]


@case
def gaussian_nll_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 4)))
    var = np.abs(draw(rng, *pick(rng, shape, shape[:-1], (*shape[:-1], 1))))
    var.flat[:: int(rng.integers(2, 4))] = 0.0
    kw = {"full": pick(rng, True, False), "eps": 0.1, "reduction": reduction(rng)}
    return lambda T, x, y, v: T.nn.functional.gaussian_nll_loss(x, y, v, **kw), [
        draw(rng, *shape),
        draw(rng, *shape),
        var,
    ]


@case
def poisson_nll_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2)
    log_input = pick(rng, True, False)
    kw = {"log_input": log_input, "full": pick(rng, True, False), "reduction": reduction(rng)}
    x = draw(rng, *shape) if log_input else rng.uniform(0.5, 2, shape)
    return lambda T, x, y: T.nn.functional.poisson_nll_loss(x, y, **kw), [x, rng.uniform(0.1, 4, shape)]


@case
def margin_ranking_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 3)))
    sign = np.sign(draw(rng, *shape))
    kw = {"margin": float(rng.uniform(0, 1)), "reduction": reduction(rng)}
    return (
        lambda T, x, y: T.nn.functional.margin_ranking_loss(x, y, T.tensor(sign).to(x.dtype), **kw),
        [draw(rng, *shape), draw(rng, *shape)],
    )


@case
def hinge_embedding_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2)
    sign = np.sign(draw(rng, *shape))
    kw = {"margin": float(rng.uniform(0, 2)), "reduction": reduction(rng)}
    return lambda T, x: T.nn.functional.hinge_embedding_loss(x, T.tensor(sign).to(x.dtype), **kw), [draw(rng, *shape)]


@case
def cosine_embedding_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 3)))
    sign = np.sign(draw(rng, *shape[:-1]))
    kw = {"margin": float(rng.uniform(-0.5, 0.5)), "reduction": reduction(rng)}
    return (
        lambda T, x, y: T.nn.functional.cosine_embedding_loss(x, y, T.tensor(sign), **kw),
        [draw(rng, *shape), draw(rng, *shape)],
    )


@case
def soft_margin_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2)
    sign = np.sign(draw(rng, *shape))
    how = reduction(rng)
    return lambda T, x: T.nn.functional.soft_margin_loss(x, T.tensor(sign).to(x.dtype), reduction=how), [
        draw(rng, *shape)
    ]


@case
def multilabel_soft_margin_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 4)))
    target = (draw(rng, *shape) > 0).astype(float)
    weight = pick(rng, None, rng.uniform(0.1, 1, shape[-1]))
    how = reduction(rng)

    def call(T, x):
        w = None if weight is None else T.tensor(weight).to(x.dtype)
        return T.nn.functional.multilabel_soft_margin_loss(x, T.tensor(target), w, reduction=how)

    return call, [draw(rng, *shape)]


@case
def multilabel_margin_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 3)), 2)
    classes = shape[-1]
    target = np.array([rng.permutation(classes) for _ in range(int(np.prod(shape[:-1])))]).reshape(shape)
    for row in target.reshape(-1, classes):
        row[int(rng.integers(0, classes + 1)) :] = -1
        if row[-1] == -1 and row[0] != -1 and classes > 2:
            row[-1] = 0  # behind the end: does not count
            row[-2] = -1
    how = reduction(rng)
    return lambda T, x: T.nn.functional.multilabel_margin_loss(x, T.tensor(target), reduction=how), [draw(rng, *shape)]


@case
def multi_margin_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 3)), 2)
    target = rng.integers(0, shape[-1], shape[:-1])
    weight = pick(rng, None, rng.uniform(0.1, 1, shape[-1]))
    kw = {"p": pick(rng, 1, 2), "margin": float(rng.uniform(0.2, 2)), "reduction": reduction(rng)}

    def call(T, x):
        w = None if weight is None else T.tensor(weight).to(x.dtype)
        return T.nn.functional.multi_margin_loss(x, T.tensor(target), weight=w, **kw)

    return call, [draw(rng, *shape)]


@case
def triplet_margin_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 3)), 2)
    kw = {"p": pick(rng, 1, 2, 3.5), "swap": pick(rng, True, False), "margin": 1.5, "reduction": reduction(rng)}
    return (
        lambda T, a, p, n: T.nn.functional.triplet_margin_loss(a, p, n, **kw),
        [draw(rng, *shape) for _ in range(3)],
    )


@case
def triplet_margin_with_distance_loss(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2, 2)
    kw = {"swap": pick(rng, True, False), "reduction": reduction(rng)}

    def call(T, a, p, n):
        def far(x, y):
            return ((x - y) ** 2).sum(-1)

        return T.nn.functional.triplet_margin_with_distance_loss(a, p, n, distance_function=far, **kw)

    return call, [draw(rng, *shape) for _ in range(3)]


@case
def cosine_similarity(rng: np.random.Generator) -> Any:
    rank = int(rng.integers(1, 4))
    shape = sizes(rng, rank, 2)
    other = tuple(1 if rng.random() < 0.2 else n for n in shape)
    dim = int(rng.integers(-rank, rank))
    return (
        lambda T, x, y: T.nn.functional.cosine_similarity(x, y, dim, 1e-8),
        [draw(rng, *shape), draw(rng, *other)],
    )


@case
def cosine_similarity_of_short_vectors(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2, 2)
    return (
        lambda T, x, y: T.nn.functional.cosine_similarity(x, y, eps=1.0),
        [0.2 * draw(rng, *shape), draw(rng, *shape)],
    )


@case
def pairwise_distance(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 4)), 2)
    kw = {"p": pick(rng, 1.0, 2.0, 3.0, float("inf")), "keepdim": pick(rng, True, False)}
    return lambda T, x, y: T.nn.functional.pairwise_distance(x, y, **kw), [draw(rng, *shape), draw(rng, *shape)]


@case
def cdist(rng: np.random.Generator) -> Any:
    p = pick(rng, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))
    mode = pick(rng, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    lead = pick(rng, ((), ()), ((2,), (2,)), ((3, 1), (2,)), ((), (2,)))
    m = int(rng.integers(1, 4))
    n, k = pick(rng, (3, 4), (2, 1), (30, 3))
    return (
        lambda T, x, y: T.cdist(x, y, p, mode),
        [draw(rng, *lead[0], n, m), draw(rng, *lead[1], k, m)],
    )


@case
def pdist(rng: np.random.Generator) -> Any:
    p = pick(rng, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))
    return lambda T, x: T.nn.functional.pdist(x, p), [draw(rng, *sizes(rng, 2, 1, 6))]


@case
def bilinear(rng: np.random.Generator) -> Any:
    lead = sizes(rng, int(rng.integers(0, 3)))
    i, j, k = sizes(rng, 3)
    bias = [draw(rng, k)] if rng.random() < 0.5 else []
    return (
        lambda T, *xs: T.nn.functional.bilinear(*xs),
        [draw(rng, *lead, i), draw(rng, *lead, j), draw(rng, k, i, j), *bias],
    )


@case
def embedding(rng: np.random.Generator) -> Any:
    rows, width = sizes(rng, 2, 2, 6)
    index = rng.integers(0, rows, sizes(rng, int(rng.integers(0, 3))))
    kw = {"padding_idx": pick(rng, None, 0, -1), "scale_grad_by_freq": pick(rng, True, False)}
    index = index.astype(pick(rng, "int64", "int32"))
    return lambda T, w: T.nn.functional.embedding(T.tensor(index), w, **kw), [draw(rng, rows, width)]


@case
def embedding_with_max_norm(rng: np.random.Generator) -> Any:
    rows, width = sizes(rng, 2, 2, 6)
    index = rng.integers(0, rows, sizes(rng, 1))
    kw = {"max_norm": 1.0, "norm_type": pick(rng, 1.0, 2.0)}

    def call(T, w):
        table = w.detach().clone()
        out = T.nn.functional.embedding(T.tensor(index), table, **kw)
        return T.cat([out, table]) + 0 * w.sum()

    return call, [draw(rng, rows, width)]


@case
def embedding_bag(rng: np.random.Generator) -> Any:
    rows, width = sizes(rng, 2, 2, 6)
    mode = pick(rng, "sum", "mean", "max")
    n = int(rng.integers(1, 8))
    flat = rng.random() < 0.6
    shape = (n,) if flat else (n, int(rng.integers(1, 4)))
    index = rng.integers(0, rows, shape)
    kw: dict[str, Any] = {"mode": mode, "padding_idx": pick(rng, None, 1, -1)}
    offsets = None
    if flat:
        offsets = np.sort(np.concatenate([[0], rng.integers(0, n + 1, int(rng.integers(0, 4)))]))
        kw["include_last_offset"] = pick(rng, True, False)
        if kw["include_last_offset"]:
            offsets = np.concatenate([offsets, [n]])
    if mode != "max":
        kw["scale_grad_by_freq"] = pick(rng, True, False) and kw["padding_idx"] is None
    weighted = mode == "sum" and rng.random() < 0.5 and not kw.get("scale_grad_by_freq")

    def call(T, w, *factors):
        at = None if offsets is None else T.tensor(offsets)
        more = {"per_sample_weights": factors[0]} if factors else {}
        return T.nn.functional.embedding_bag(T.tensor(index), w, at, **kw, **more)

    return call, [draw(rng, rows, width), *([draw(rng, *shape)] if weighted else [])]


@case
def pixel_shuffle(rng: np.random.Generator) -> Any:
    r = int(rng.integers(1, 4))
    *lead, c, h, w = sizes(rng, int(rng.integers(3, 6)), 1, 4)
    return lambda T, x: T.nn.functional.pixel_shuffle(x, r), [draw(rng, *lead, c * r * r, h, w)]


@case
def pixel_unshuffle(rng: np.random.Generator) -> Any:
    r = int(rng.integers(1, 4))
    *lead, c, h, w = sizes(rng, int(rng.integers(3, 6)), 1, 4)
    return lambda T, x: T.nn.functional.pixel_unshuffle(x, r), [draw(rng, *lead, c, h * r, w * r)]


@case
def channel_shuffle(rng: np.random.Generator) -> Any:
    g = int(rng.integers(1, 4))
    n, c, *rest = sizes(rng, int(rng.integers(3, 6)), 1, 4)
    return lambda T, x: T.nn.functional.channel_shuffle(x, g), [draw(rng, n, c * g, *rest)]


@case
def pad_with_a_constant(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(1, 5)), 2, 6)
    pads = [int(n) for n in rng.integers(-1, 4, 2 * int(rng.integers(0, len(shape) + 1)))]
    value = float(rng.uniform(-1, 1))
    return lambda T, x: T.nn.functional.pad(x, pads, value=value), [draw(rng, *shape)]


@case
def pad_in_other_modes(rng: np.random.Generator) -> Any:
    dims = int(rng.integers(1, 4))
    shape = sizes(rng, dims + int(rng.integers(1, 3)), 3, 6)
    mode = pick(rng, "reflect", "replicate", "circular")
    pads = [int(n) for n in rng.integers(-1, 3, 2 * dims)]
    return lambda T, x: T.nn.functional.pad(x, pads, mode), [draw(rng, *shape)]


@case
def local_response_norm(rng: np.random.Generator) -> Any:
    shape = sizes(rng, int(rng.integers(3, 6)))
    kw = {"alpha": 0.5, "beta": float(rng.uniform(0.3, 1.2)), "k": 1.5}
    size = pick(rng, 1, 2, 3, 5, 20)
    return lambda T, x: T.nn.functional.local_response_norm(x, size, **kw), [draw(rng, *shape)]


@case
def affine_grid(rng: np.random.Generator) -> Any:
    dims = pick(rng, 2, 3)
    n, *size = sizes(rng, dims + 2, 2)
    corners = pick(rng, True, False)
    return (
        lambda T, t: T.nn.functional.affine_grid(t, (n, *size), corners),
        [draw(rng, n, dims, dims + 1)],
    )


@case
def logaddexp2(rng: np.random.Generator) -> Any:
    shape = sizes(rng, 2)
    return lambda T, x, y: T.logaddexp2(x, y), [draw(rng, *shape), draw(rng, *shape)]


@case
def degrees_and_radians(rng: np.random.Generator) -> Any:
    return lambda T, x: T.deg2rad(x) + T.rad2deg(x), [draw(rng, *sizes(rng, 2))]


@case
def ctc_loss(rng: np.random.Generator) -> Any:
    steps, batch, classes = int(rng.integers(4, 9)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    blank = int(rng.integers(classes))
    labels = [k for k in range(classes) if k != blank]
    counts = rng.integers(0, 3, batch)
    lengths = rng.integers(4, steps + 1, batch)
    width = int(counts.max()) + int(rng.integers(0, 2))
    target = rng.choice(labels, (batch, width))
    if rng.random() < 0.5:
        target = np.concatenate([row[:n] for row, n in zip(target, counts, strict=True)])
    how = reduction(rng)

    def call(T, x):
        return T.nn.functional.ctc_loss(
            x.log_softmax(2), T.tensor(target), T.tensor(lengths), T.tensor(counts), blank, how
        )

    return call, [draw(rng, steps, batch, classes)]


# PyTorch has no second derivative of these, or one that is an error.
ONE_ORDER = {"ctc_loss", "cdist", "pdist", "embedding_bag", "multilabel_margin_loss", "multi_margin_loss"}


def derivatives(T: Any, call: Callable[..., Any], arrays: list[np.ndarray], second: bool, seed: int) -> list[Any]:
    """The value, the gradients, and the gradients of a sum of the gradients with factors."""
    rng = np.random.default_rng(seed)
    xs = [T.tensor(a, requires_grad=True) for a in arrays]
    y = call(T, *xs)
    cotangent = T.tensor(np.asarray(rng.standard_normal(tuple(y.shape))))
    first = T.autograd.grad(y, xs, cotangent, create_graph=second, allow_unused=True, materialize_grads=True)
    found = [y, *first]
    if second:
        total = sum((g * T.tensor(np.asarray(rng.standard_normal(tuple(g.shape))))).sum() for g in first)
        if total.requires_grad:
            found += T.autograd.grad(total, xs, allow_unused=True, materialize_grads=True)
    # PyTorch gives tensors without memory for some zeros, which have no array.
    return [np.array(t.numpy(force=True) if T is torch else t.detach().numpy()) for t in found]


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for seed in range(ROUNDS):
        call, arrays = CASES[name](rng)
        second = name not in ONE_ORDER
        ours, theirs = (derivatives(T, call, arrays, second, seed) for T in (rgrad, torch))
        # Where PyTorch's gradient is constant, it may have no history; ours then has zeros.
        for i, (got, want) in enumerate(zip(ours, theirs, strict=False)):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9, err_msg=f"{name}, round {seed}, result {i}")
        assert all(not np.any(extra) for extra in [*ours[len(theirs) :], *theirs[len(ours) :]])


@pytest.mark.parametrize("name", sorted(ONE_ORDER))
def test_pytorch_has_no_second_derivative(name: str) -> None:
    call, arrays = CASES[name](np.random.default_rng(zlib.crc32(name.encode())))
    with pytest.raises(RuntimeError):
        derivatives(torch, call, arrays, True, 0)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"cdist", "pdist"}))
def test_float32(name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    call, arrays = CASES[name](rng)
    ours, theirs = (call(T, *(T.tensor(a.astype("float32")) for a in arrays)) for T in (rgrad, torch))
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CALLS)
def test_calls_end_the_same_way(name: str) -> None:
    ours, theirs = (attempt(lambda T=T: CALLS[name](T, T.nn.functional)) for T in (rgrad, torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned
    if theirs.error is None and hasattr(theirs.value, "numpy"):
        assert dtype_name(ours.value) == dtype_name(theirs.value)
        assert tuple(ours.value.shape) == tuple(theirs.value.shape)
        np.testing.assert_allclose(ours.value.numpy(), theirs.value.numpy(), rtol=1e-5, atol=1e-5)


LAID_OUT: dict[str, Callable[[Any], Any]] = {
    "permuted": lambda T: T.ones(3, 4, 5).permute(2, 0, 1),
    "permuted, of 4": lambda T: T.ones(2, 3, 4, 5).permute(0, 2, 3, 1),
    "channels last": lambda T: T.ones(2, 3, 4, 5).to(memory_format=T.channels_last),
    "expanded": lambda T: T.ones(2, 1, 4, 5).expand(2, 3, 4, 5),
    "stepped": lambda T: T.ones(4, 6)[::2, ::2],
}


@pytest.mark.parametrize("pad", [(), (0, 0), (0, 0, 0, 0), (1, 0), (0, 2, 1, 0), (-1, 0), (-1, -1), (-1, 2)])
@pytest.mark.parametrize("name", LAID_OUT)
def test_padded_tensors_are_laid_out_the_same_way(name: str, pad: tuple[int, ...]) -> None:
    ours, theirs = (T.nn.functional.pad(LAID_OUT[name](T), pad) for T in (rgrad, torch))
    assert tuple(ours.stride()) == tuple(theirs.stride())
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
