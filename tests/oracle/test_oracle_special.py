"""Special functions beside PyTorch: values, dtypes, special values, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rgrad.special  # noqa: E402

pytestmark = pytest.mark.oracle

NAN, INF = float("nan"), float("inf")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.5, NAN, 1e-30]
WIDE = (-12.0, 12.0)

# Function: where its arguments lie; PyTorch's own values are this far off for float32 and float64.
RANGES: dict[str, tuple[float, float]] = {
    "digamma": WIDE,
    "entr": (-1.0, 5.0),
    "erfcx": WIDE,
    "erfinv": (-1.0, 1.0),
    "gammaln": WIDE,
    "i0": WIDE,
    "i0e": WIDE,
    "i1": WIDE,
    "i1e": WIDE,
    "log_ndtr": WIDE,
    "ndtr": (-4.0, 12.0),
    "ndtri": (0.0, 1.0),
    "sinc": (-0.95, 0.95),
}
# The absolute error beside which a relative one does not count: near zeros of the function.
NEAR = {"digamma": 1e-2, "gammaln": 1e-2, "erfinv": 0.0, "sinc": 1e-2}


def points(name: str, count: int = 400) -> np.ndarray:
    low, high = RANGES[name]
    rng = np.random.default_rng(len(name))
    return np.concatenate([rng.uniform(low, high, count), rng.uniform(low, high, count) * 1e-2, SPECIAL])


def close(got: Any, wanted: Any, name: str, bound: float) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    with np.errstate(all="ignore"):
        off = np.abs(got - wanted) / (np.abs(wanted) + NEAR.get(name, 1e-30))
    off[(got == wanted) | (np.isnan(got) & np.isnan(wanted))] = 0
    assert off.max() < bound, (got[off.argmax()], wanted[off.argmax()])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RANGES)
def test_values(name: str, dtype: str) -> None:
    x = points(name).astype(dtype)
    if name in ("ndtr", "log_ndtr") and dtype == "float32":
        x = x[~(x < -2)]  # PyTorch's float32 has no digits below
    got = getattr(rgrad.special, name)(rgrad.tensor(x)).numpy()
    wanted = getattr(torch.special, name)(torch.tensor(x)).numpy()
    close(got, wanted, name, 5e-5 if dtype == "float32" else 2e-12)


@pytest.mark.parametrize("name", RANGES)
def test_gradients(name: str) -> None:
    low, high = (-2.0, 12.0) if name == "erfcx" else RANGES[name]
    x = np.random.default_rng(3).uniform(low + 0.03, high - 0.03, 200)
    found = []
    for library in (torch, rgrad):
        leaf = library.tensor(x, requires_grad=True)
        (g,) = library.autograd.grad(getattr(library.special, name)(leaf).sum(), leaf, create_graph=True)
        (h,) = library.autograd.grad(g.cos().sum(), leaf)
        found.append((g.detach().numpy(), h.numpy()))
    for wanted, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=3e-8, atol=1e-7)  # PyTorch's polygamma(1, x) has nine digits


@pytest.mark.parametrize("n", range(6))
def test_polygamma(n: int) -> None:
    x = np.random.default_rng(n).uniform(-5, 9, 300)
    wanted = torch.polygamma(n, torch.tensor(x)).numpy()
    np.testing.assert_allclose(rgrad.polygamma(n, rgrad.tensor(x)).numpy(), wanted, rtol=2e-8, atol=1e-8)
    np.testing.assert_allclose(rgrad.tensor(x).polygamma(n).numpy(), wanted, rtol=2e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["zeta", "gammainc", "gammaincc", "xlog1py"])
def test_pairs(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1.1, 20, (7, 1)), rng.uniform(0.05, 30, (1, 60))
    wanted = getattr(torch.special, name)(torch.tensor(a), torch.tensor(b)).numpy()
    got = getattr(rgrad.special, name)(rgrad.tensor(a), rgrad.tensor(b)).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-14)
    leaves = []
    for library in (torch, rgrad):
        y = library.tensor(b, requires_grad=True)
        getattr(library.special, name)(library.tensor(a), y).sum().backward()
        leaves.append(y.grad.numpy())
    np.testing.assert_allclose(leaves[1], leaves[0], rtol=1e-8, atol=1e-12)


EDGES = {
    "zeta": ([2.0, 3, 2, 2, 2.5, 1, 0.5], [-0.5, -1.5, -1, 0, -0.5, 2, 2]),
    "gammainc": ([0.0, 0, 1, INF, INF, 1, -1, 1, NAN, 1], [0.0, 1, 0, 1, INF, INF, 1, -1, 1, NAN]),
    "gammaincc": ([0.0, 0, 1, INF, INF, 1, -1, 1, NAN, 1], [0.0, 1, 0, 1, INF, INF, 1, -1, 1, NAN]),
    "xlog1py": ([0.0, 0, 0, 0, 1, 1, 2, 0, NAN, 0, 1], [-1.0, -2, NAN, INF, -1, -2, 1, 3, 1, 5, NAN]),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    a, b = EDGES[name]
    wanted = getattr(torch.special, name)(torch.tensor(a), torch.tensor(b)).numpy()
    got = getattr(rgrad.special, name)(rgrad.tensor(a), rgrad.tensor(b)).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


POLYNOMIALS = [name for name in rgrad.special.__all__ if "polynomial" in name]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    x = np.append(np.random.default_rng(0).normal(size=60), [1.0, -1.0, 0.0])
    for n in (-1, 0, 1, 2, 3, 5, 9):
        wanted = getattr(torch.special, name)(torch.tensor(x), n).numpy()
        np.testing.assert_allclose(getattr(rgrad.special, name)(rgrad.tensor(x), n).numpy(), wanted, 1e-9, 1e-12)
    for T in (rgrad, torch):
        assert not getattr(T.special, name)(T.ones(2, requires_grad=True), 2).requires_grad
        with T.autograd.forward_ad.dual_level():
            dual = T.autograd.forward_ad.make_dual(T.ones(2), T.ones(2))
            assert T.autograd.forward_ad.unpack_dual(getattr(T.special, name)(dual, 2)).tangent is None


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["lgamma", "digamma", "sinc", "i0", "erfinv"])
def test_other_dtypes(name: str, dtype: str) -> None:
    wanted = getattr(torch, name)(torch.tensor([0, 1, 1], dtype=getattr(torch, dtype)))
    got = getattr(rgrad, name)(rgrad.tensor([0, 1, 1], dtype=getattr(rgrad, dtype)))
    assert str(wanted.dtype).rpartition(".")[2] == str(got.dtype).rpartition(".")[2]
    np.testing.assert_allclose(got.float().numpy(), wanted.float().numpy(), rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda T: T.polygamma(-1, T.ones(2)),
        lambda T: T.mvlgamma(T.ones(2), 0),
        lambda T: T.lgamma(3.0),
        lambda T: T.ones(2).long().lgamma_(),
        lambda T: T.lgamma(T.ones(2), out=T.ones(2).long()),
        lambda T: T.igamma(T.ones(2), T.ones(3)),
    ],
)
def test_errors(call: Any) -> None:
    kinds = []
    for library in (torch, rgrad):
        with pytest.raises((RuntimeError, TypeError)) as e:
            call(library)
        kinds.append(TypeError if isinstance(e.value, TypeError) else RuntimeError)
    assert kinds[0] is kinds[1]
