"""Reductions, scans and softmax on the device: values and gradients beside the CPU's, over layouts and sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dtypes
import rgrad
from rgrad import Tensor

Function = Callable[..., Any]
NAN, INF = float("nan"), float("inf")


def parts(out: Any) -> list[Tensor]:
    return [out] if isinstance(out, Tensor) else list(out)


def same(got: Any, want: Any, tol: float = 2e-6) -> None:
    """Shapes and dtypes equal, integers exact, floats close relative to the largest finite value or 1."""
    for g, w in zip(parts(got), parts(want), strict=True):
        assert g.device.type == "wgpu"
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        a, b = g.detach().cpu().numpy(), w.detach().numpy()
        if b.dtype.kind == "f":
            size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * size, equal_nan=True)
        else:
            np.testing.assert_array_equal(a, b)


def layouts(x: Tensor) -> list[Function]:
    """Ways to see an array: as it is, transposed, every second, broadcast."""
    ways: list[Function] = [lambda t: t]
    if x.dim() > 0:
        ways.append(lambda t: t[1::2])
    if x.dim() > 1:
        ways += [lambda t: t.transpose(0, -1), lambda t: t[:, :1].expand(*t.shape)]
    return ways


def values(shape: tuple[int, ...], dtype: Any = rgrad.float32) -> Tensor:
    rng = np.random.default_rng(len(shape) + sum(shape))
    if dtype.is_floating_point:
        return rgrad.tensor(rng.standard_normal(shape).astype(np.float32))
    low = -4 if dtype.is_signed else 0
    return rgrad.tensor(rng.integers(low, 5, size=shape)).to(dtype)


def dims_of(rank: int) -> list[tuple[int, ...]]:
    return [c for n in range(1, rank + 1) for c in combinations(range(rank), n)]


SHAPES = [(7,), (3000,), (5, 17), (300, 3), (2, 600), (70, 80), (3, 4, 5), (20, 1, 33), (2, 3, 4, 5)]
DTYPES = dtypes.of(dtypes.ON_WGPU)
ORDERS = (0, 1, 2, 3.5, -1, -2.5, INF, -INF)
OVER_DIMS: dict[str, Function] = {
    "sum": rgrad.sum,
    "count_nonzero": rgrad.count_nonzero,
    "amax": rgrad.amax,
    "amin": rgrad.amin,
    "all": rgrad.all,
    "any": rgrad.any,
}
FLOATS_OVER_DIMS: dict[str, Function] = {
    "mean": rgrad.mean,
    "var": lambda x, dim: rgrad.var(x, dim, correction=0),
    "std": lambda x, dim: rgrad.std(x, dim, correction=0) + 1,
    "logsumexp": rgrad.logsumexp,
    **{f"norm{p}": (lambda x, dim, p=p: rgrad.norm(x, p, dim)) for p in ORDERS},
}
ALONG: dict[str, Function] = {
    "prod": rgrad.prod,
    "max": rgrad.max,
    "min": rgrad.min,
    "argmax": rgrad.argmax,
    "argmin": rgrad.argmin,
    "cumsum": rgrad.cumsum,
    "cumprod": rgrad.cumprod,
}


# Every shape in single precision, some of them in every dtype.
CASES = [(s, d) for s in SHAPES for d in DTYPES if d == rgrad.float32 or s in [(3000,), (5, 17), (20, 1, 33)]]


@pytest.mark.rotate("dtype")
@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_over_any_dims(shape: tuple[int, ...], dtype: Any) -> None:
    functions = OVER_DIMS | (FLOATS_OVER_DIMS if dtype == rgrad.float32 else {})
    x = values(shape, dtype)
    g = x.to("wgpu")
    for way in layouts(x):
        cpu, gpu = way(x), way(g)
        for dims in dims_of(len(shape)):
            for name, f in functions.items():
                tol = 2e-5 if name.startswith("norm") else 5e-6
                same(f(gpu, dim=dims), f(cpu, dim=dims), tol)
        same(rgrad.sum(gpu, dim=0, keepdim=True), rgrad.sum(cpu, dim=0, keepdim=True), 5e-6)


@pytest.mark.rotate("dtype", take=2)
@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
def test_along_one_dim(shape: tuple[int, ...], dtype: Any) -> None:
    x = values(shape, dtype)
    g = x.to("wgpu")
    for way in layouts(x):
        cpu, gpu = way(x), way(g)
        for dim in range(len(shape)):
            for name, f in ALONG.items():
                if dtype == rgrad.bool and name.startswith("arg"):
                    continue
                same(f(gpu, dim), f(cpu, dim), 1e-5)


@pytest.mark.rotate("f", take=4)
@pytest.mark.parametrize("f", [rgrad.softmax, rgrad.log_softmax])
@pytest.mark.parametrize("shape", [*SHAPES, (3, 20_000), (20_000, 2)], ids=str)
def test_softmax(shape: tuple[int, ...], f: Function) -> None:
    """Beside float64: sums one after the other in single precision, as the CPU's over columns, would not do."""
    x = values(shape) * 5
    for way in layouts(x):
        for dim in range(len(shape)):
            cpu = x.double().requires_grad_()
            gpu = x.to("wgpu").requires_grad_()
            want, got = f(way(cpu), dim), f(way(gpu), dim)
            same(got, want.float(), 4e-6)
            weight = values(tuple(want.shape)).flip(0)
            want.backward(weight.double())
            got.backward(weight.to("wgpu"))
            assert cpu.grad is not None
            # Where gradients cancel, what is left is the error of summing up n of them.
            same(gpu.grad, cpu.grad.float(), 1e-5 * max(1.0, shape[dim] / 1000))


LONG = [((1_000_000,), 0), ((3, 70_001), 1), ((70_001, 3), 0), ((9000, 40), 0), ((3000, 300), 0), ((2, 5000, 3), 1)]


@pytest.mark.rotate(take=3)
@pytest.mark.parametrize(("shape", "dim"), LONG)
def test_long_dimensions(shape: tuple[int, ...], dim: int) -> None:
    """Sums of many workgroups are as accurate as pairwise sums are, and the same bits every time."""
    x = values(shape) + 1
    g = x.to("wgpu")
    exact = x.numpy().astype(np.float64)
    for got, want in [
        (rgrad.sum(g, dim), exact.sum(dim)),
        (rgrad.cumsum(g, dim), exact.cumsum(dim)),
        (rgrad.var(g, dim), exact.var(dim, ddof=1)),
    ]:
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=2e-6, atol=1e-6)
    for f in (rgrad.sum, rgrad.cumsum, lambda t, d: rgrad.softmax(t, d)):
        assert rgrad.equal(f(g, dim).cpu(), f(g, dim).cpu())
    same(rgrad.max(g, dim), rgrad.max(x, dim))
    same(rgrad.argmin(g, dim), rgrad.argmin(x, dim))
    n = rgrad.arange(x.numel()).reshape(*shape) - 1000
    for f in (rgrad.sum, rgrad.cumsum, rgrad.amax, rgrad.count_nonzero, rgrad.cumprod):
        same(f(n.to("wgpu"), dim), f(n, dim))


def test_int64_has_64_bits() -> None:
    x = rgrad.tensor([2**62, 2**62 - 1, -(2**63), 2**63 - 1, -1, 2**32, -(2**32) - 5, 3_000_000_000])
    for f in (rgrad.sum, rgrad.prod, rgrad.amax, rgrad.amin, rgrad.argmax, rgrad.argmin):
        same(f(x.to("wgpu")), f(x))
        same(f(x[4:].to("wgpu")), f(x[4:]))
    for f in (rgrad.cumsum, rgrad.cumprod):
        same(f(x.to("wgpu"), 0), f(x, 0))
    y = rgrad.tensor([2**31 - 1] * 5, dtype=rgrad.int32)
    same(rgrad.sum(y.to("wgpu")), rgrad.sum(y))


@pytest.mark.rotate(take=2)
@pytest.mark.parametrize("n", [3, 40, 3000])
def test_special_values(n: int) -> None:
    for special in ([NAN], [INF], [-INF], [INF, -INF], [INF, NAN], [-0.0], [-INF] * n):
        # Near 1: products of many small numbers would vanish, and how inf meets them depends on the order.
        x = rgrad.linspace(-1.001, -0.999, n)
        x[: len(special)] = rgrad.tensor(special)
        g = x.to("wgpu")
        for f in (*OVER_DIMS.values(), rgrad.prod, rgrad.argmax, rgrad.argmin):
            same(f(g), f(x), 1e-5)
        for p in (0, 1, 2, 3, -2, INF, -INF):
            same(rgrad.norm(g, p), rgrad.norm(x, p), 1e-5)
        for f in (rgrad.cumsum, rgrad.cumprod, rgrad.softmax, rgrad.log_softmax, rgrad.logsumexp, rgrad.max, rgrad.min):
            same(f(g, 0), f(x, 0), 1e-5)


def test_the_first_of_equals_is_chosen() -> None:
    for n in (2, 300, 20_000):
        x = rgrad.ones(n)
        assert rgrad.argmax(x.to("wgpu")).item() == 0
        x[n // 2 :] = NAN
        assert rgrad.argmax(x.to("wgpu")).item() == n // 2
        assert rgrad.min(x.to("wgpu"), 0).indices.item() == n // 2


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e-3, 1e15, 1e25, 1e37])
def test_norms_neither_overflow_nor_vanish(scale: float) -> None:
    x = values((1000,)) * scale / 100
    x[0] = scale
    want = np.linalg.norm(x.numpy().astype(np.float64))
    assert rgrad.norm(x.to("wgpu")).item() == pytest.approx(want, rel=2e-6)
    want = (np.abs(x.numpy().astype(np.float64)) ** 3).sum() ** (1 / 3)
    assert rgrad.norm(x.to("wgpu"), 3).item() == pytest.approx(want, rel=1e-5)


def double(x: Tensor) -> Tensor:
    return x.double().to("wgpu")


@pytest.mark.needs("float64")
@pytest.mark.rotate
@pytest.mark.parametrize("way", range(4))
def test_float64_where_the_adapter_has_it(way: int) -> None:
    x = values((50, 40)).double() * 1e-3 + 1
    cpu, gpu = layouts(x)[way](x), layouts(x)[way](double(x))
    for dim in (0, 1):
        for f in (rgrad.sum, rgrad.mean, rgrad.amax, rgrad.amin, rgrad.any, rgrad.count_nonzero, *ALONG.values()):
            same(f(gpu, dim), f(cpu, dim), 1e-14)
        for f in (rgrad.softmax, rgrad.log_softmax, rgrad.logsumexp, rgrad.std):
            same(f(gpu, dim), f(cpu, dim), 1e-14)
        for p in ORDERS:
            same(rgrad.norm(gpu, p, dim), rgrad.norm(cpu, p, dim), 1e-14)


@pytest.mark.needs("float64")
def test_float64_of_special_values_and_long_rows() -> None:
    x = values((50, 40)).double() * 1e-3 + 1
    for special in ([NAN], [INF, -INF], [-INF], [-0.0, 0.0], [NAN, INF]):
        y = rgrad.linspace(-2, 2, 5, dtype=rgrad.float64)
        y[: len(special)] = rgrad.tensor(special)
        for f in (rgrad.sum, rgrad.amax, rgrad.amin, rgrad.argmax, rgrad.argmin, rgrad.all, rgrad.count_nonzero):
            same(f(double(y)), f(y))
        for f in (rgrad.softmax, rgrad.log_softmax, rgrad.cumsum):
            same(f(double(y), 0), f(y, 0), 1e-14)
    long = values((2, 20_000)).double()
    same(double(long).softmax(1), long.softmax(1), 1e-14)
    same(double(x) @ double(x).T, x @ x.T, 1e-14)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(NotImplementedError, match=r"sum: got 3000000000 elements; on wgpu at most 2147483647"):
        rgrad.ones(1).to("wgpu").expand(3_000_000_000).sum()


def test_nothing_to_reduce() -> None:
    x = rgrad.zeros(3, 0, 2)
    g = x.to("wgpu")
    for dim in (0, 1, 2):
        for f in (rgrad.sum, rgrad.prod, rgrad.all, rgrad.any, rgrad.cumsum, rgrad.softmax, rgrad.count_nonzero):
            same(f(g, dim), f(x, dim))
    with pytest.raises(IndexError, match="non-zero size"):
        rgrad.amax(g, 1)


def test_zero_dimensions() -> None:
    x = rgrad.tensor(-2.5)
    for f in (rgrad.sum, rgrad.amax, rgrad.argmax, rgrad.prod, rgrad.all):
        same(f(x.to("wgpu")), f(x))
    for f in (rgrad.cumsum, rgrad.softmax, rgrad.max):
        same(f(x.to("wgpu"), 0), f(x, 0))


GRADIENTS: dict[str, Function] = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 2)),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax((1, 2)),
    "max": lambda x: x.max(1).values,
    "var": lambda x: x.var((0, 1)),
    "std": lambda x: x.std(2),
    "norm": lambda x: rgrad.norm(x, 2, 1),
    "norm3": lambda x: rgrad.norm(x, 3, (0, 2)),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_two_orders(name: str) -> None:
    f = GRADIENTS[name]
    x = values((4, 5, 6))
    leaf = {"cpu": x.clone().requires_grad_(), "wgpu": x.to("wgpu").requires_grad_()}
    first, second = {}, {}
    for device, t in leaf.items():
        y = f(t)
        (g,) = rgrad.autograd.grad((y * y * y).sum(), t, create_graph=True)
        (h,) = rgrad.autograd.grad((g * g).sum(), t)
        first[device], second[device] = g, h
    same(first["wgpu"], first["cpu"], 2e-5)
    same(second["wgpu"], second["cpu"], 2e-4)
