"""Matrix products on the device: values and gradients beside float64, over sizes, layouts, batches and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import dtypes
import rgrad
from rgrad import Tensor
from rgrad.nn import functional as F


def matrix(rng: np.random.Generator, *shape: int) -> Tensor:
    return rgrad.tensor(rng.standard_normal(shape).astype(np.float32))


def close(got: Tensor, want: np.ndarray, terms: int) -> None:
    """The error of a sum of products grows slower than with their number."""
    assert got.device.type == "wgpu"
    value = got.detach().cpu().numpy()
    assert value.shape == want.shape
    np.testing.assert_allclose(
        value, want, rtol=0, atol=3e-7 * max(terms, 4) ** 0.5 * max(1.0, np.abs(want).max(initial=0))
    )


def wide(t: Tensor) -> np.ndarray:
    return t.detach().numpy().astype(np.float64)


SIZES = [
    (1, 1, 1),
    (1, 1, 5000),
    (1, 70, 300),
    (65, 1, 33),
    (3, 5, 7),
    (9, 9, 16),
    (32, 32, 32),
    (33, 31, 17),
    (64, 64, 16),
    (65, 130, 100),
    (100, 10, 64),
    (16, 20, 20_000),
    (300, 200, 1),
    (200, 260, 50),
]


@pytest.mark.rotate(take=5)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes_and_layouts(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    for ta, tb in [(False, False), (True, False), (False, True), (True, True)]:
        a = matrix(rng, k, m) if ta else matrix(rng, m, k)
        b = matrix(rng, n, k) if tb else matrix(rng, k, n)
        x, y = a.to("wgpu"), b.to("wgpu")
        want = (wide(a).T if ta else wide(a)) @ (wide(b).T if tb else wide(b))
        got = (x.T if ta else x) @ (y.T if tb else y)
        close(got, want, k)
    a, b = matrix(rng, 2 * m, 3 * k), matrix(rng, k, n)
    close(a.to("wgpu")[::2, 1::3] @ b.to("wgpu"), wide(a)[::2, 1::3] @ wide(b), k)
    close(matrix(rng, m, 1).to("wgpu").expand(m, k) @ rgrad.ones(1, n).to("wgpu").expand(k, n) * 0, np.zeros((m, n)), k)


def test_large_tiles() -> None:
    """Enough of them that the largest are taken."""
    rng = np.random.default_rng(5)
    a, b = matrix(rng, 32, 130, 40), matrix(rng, 32, 40, 257)
    close(a.to("wgpu") @ b.to("wgpu"), wide(a) @ wide(b), 40)
    close(b.to("wgpu").mT @ a.to("wgpu").mT, wide(b).swapaxes(1, 2) @ wide(a).swapaxes(1, 2), 40)


@pytest.mark.rotate(take=4)
@pytest.mark.parametrize(
    ("sa", "sb"),
    [
        ((3, 4, 5), (3, 5, 6)),
        ((3, 4, 5), (5, 6)),
        ((4, 5), (3, 5, 6)),
        ((2, 1, 14, 15), (3, 15, 16)),
        ((2, 1, 3, 20, 9), (4, 1, 9, 11)),
        ((5,), (5,)),
        ((5,), (5, 6)),
        ((4, 5), (5,)),
        ((3, 4, 5), (5,)),
        ((0, 5), (5, 6)),
        ((4, 0), (0, 6)),
        ((2, 0, 5), (5, 6)),
    ],
)
def test_batches_broadcast(sa: tuple[int, ...], sb: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = matrix(rng, *sa), matrix(rng, *sb)
    p, q = a.to("wgpu").requires_grad_(), b.to("wgpu").requires_grad_()
    a.requires_grad_()
    b.requires_grad_()
    got, want = p @ q, a @ b
    close(got, wide(a) @ wide(b), 20)
    (got * got).sum().backward()
    (want * want).sum().backward()
    for g, w in [(p.grad, a.grad), (q.grad, b.grad)]:
        assert g is not None
        assert w is not None
        np.testing.assert_allclose(g.cpu().numpy(), w.numpy(), rtol=1e-5, atol=1e-4)


def test_a_matrix_with_itself() -> None:
    x = matrix(np.random.default_rng(2), 40, 40)
    g = x.to("wgpu")
    close(g @ g, wide(x) @ wide(x), 40)
    close(g @ g.T, wide(x) @ wide(x).T, 40)
    close(g[:3, :5] @ g[5:10, 1:4], wide(x)[:3, :5] @ wide(x)[5:10, 1:4], 5)


@pytest.mark.parametrize("dtype", dtypes.of(dtypes.INTEGERS), ids=str)
def test_integers_are_exact(dtype: rgrad.dtype) -> None:
    rng = np.random.default_rng(3)
    info = rgrad.iinfo(dtype)
    low, high = max(info.min, -(2**62)), min(info.max + 1, 2**62)
    for m, n, k in [(1, 1, 1), (3, 4, 5), (40, 30, 50), (2, 2, 9000)]:
        a = rgrad.tensor(rng.integers(low, high, size=(m, k))).to(dtype)
        b = rgrad.tensor(rng.integers(low, high, size=(k, n))).to(dtype)
        got = a.to("wgpu") @ b.to("wgpu")
        assert got.dtype == dtype
        assert rgrad.equal(got.cpu(), a @ b)


def test_special_values_pass() -> None:
    x = rgrad.ones(40, 40)
    x[3, 5] = float("nan")
    x[7, 1] = float("inf")
    x[9, 2] = float("-inf")
    for k in (40, 33):
        want = x[:, :k] @ rgrad.ones(k, 20)
        got = x.to("wgpu")[:, :k] @ rgrad.ones(k, 20).to("wgpu")
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


def test_linear_and_addmm() -> None:
    rng = np.random.default_rng(4)
    x, w, b = matrix(rng, 12, 30), matrix(rng, 20, 30), matrix(rng, 20)
    x.requires_grad_()
    w.requires_grad_()
    b.requires_grad_()
    gx, gw, gb = (t.detach().to("wgpu").requires_grad_() for t in (x, w, b))
    y, gy = F.linear(x, w, b), F.linear(gx, gw, gb)
    close(gy, wide(y), 30)
    y.sin().sum().backward()
    gy.sin().sum().backward()
    for g, t in [(gx, x), (gw, w), (gb, b)]:
        assert g.grad is not None
        assert t.grad is not None
        np.testing.assert_allclose(g.grad.cpu().numpy(), t.grad.numpy(), rtol=1e-5, atol=1e-5)
    c = matrix(rng, 1, 20)
    want = rgrad.addmm(c, x, w.T, beta=0.5, alpha=-2)
    close(rgrad.addmm(c.to("wgpu"), gx, gw.T, beta=0.5, alpha=-2), wide(want), 30)


def test_errors_are_the_cpus() -> None:
    x = rgrad.zeros(2, 3).to("wgpu")
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"):
        x @ rgrad.zeros(4, 5).to("wgpu")
    with pytest.raises(RuntimeError, match="same dtype"):
        x @ rgrad.zeros(3, 5, dtype=rgrad.int32).to("wgpu")
    with pytest.raises(RuntimeError, match="same device"):
        x @ rgrad.zeros(3, 5)
    with pytest.raises(NotImplementedError, match="not implemented"):
        rgrad.zeros(2, 2, dtype=rgrad.bool).to("wgpu") @ rgrad.zeros(2, 2, dtype=rgrad.bool).to("wgpu")
