"""Factorisations and solutions on the device, beside NumPy's in float64; larger matrices go by the host."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad
from rgrad import Tensor, linalg

SIZES = [1, 2, 5, 16, 17, 40, 100]


def matrices(*shape: int, seed: int = 0) -> Tensor:
    """Well conditioned ones."""
    rng = np.random.default_rng(seed)
    x = (
        rng.standard_normal(shape)
        + 3 * np.sqrt(shape[-1]) * np.eye(shape[-2], shape[-1])[:, rng.permutation(shape[-1])]
    )
    return rgrad.from_numpy(x.astype(np.float32))


def wide(t: Tensor) -> np.ndarray:
    return t.detach().cpu().numpy().astype(np.float64)


def close(got: Tensor, want: np.ndarray, scale: float = 2e-5) -> None:
    assert got.device.type == "wgpu"
    assert got.dtype == rgrad.float32
    assert got.shape == want.shape
    np.testing.assert_allclose(wide(got), want, rtol=scale, atol=scale * float(np.abs(want).max(initial=0)))


@pytest.mark.parametrize("n", SIZES)
def test_solutions(n: int) -> None:
    a, b = matrices(3, n, n, seed=n), matrices(3, n, 35 if n > 5 else 2, seed=n + 1)
    x, y = a.to("wgpu"), b.to("wgpu")
    close(linalg.solve(x, y), np.linalg.solve(wide(a), wide(b)))
    close(linalg.solve(x, y, left=True), np.linalg.solve(wide(a), wide(b)))
    close(linalg.solve(x, y.mT, left=False), np.linalg.solve(wide(a).swapaxes(-1, -2), wide(b)).swapaxes(-1, -2))
    close(linalg.inv(x), np.linalg.inv(wide(a)))
    close(linalg.inv(x.mT), np.linalg.inv(wide(a).swapaxes(-1, -2)))
    size = 3 * n**0.5
    close(linalg.det(x / size), np.linalg.det(wide(a) / size), 1e-4)
    sign, log = linalg.slogdet(x)
    signs, logs = np.linalg.slogdet(wide(a))
    close(sign, signs)
    close(log, logs)
    lu, pivots = linalg.lu_factor(x)
    assert pivots.device.type == "wgpu"
    close(linalg.lu_solve(lu, pivots, y), np.linalg.solve(wide(a), wide(b)))
    close(linalg.lu_solve(lu, pivots, y, adjoint=True), np.linalg.solve(wide(a).swapaxes(-1, -2), wide(b)))


@pytest.mark.parametrize("shape", [(4, 7, 3), (2, 3, 7), (2, 3, 20, 20), (60, 33), (0, 3, 3), (2, 0, 0)], ids=str)
def test_lu_factors_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a = rgrad.from_numpy(rng.standard_normal(shape).astype(np.float32))
    p, lower, upper = linalg.lu(a.to("wgpu"))
    close(p @ lower @ upper, wide(a))
    ours, theirs = linalg.lu_factor(a.to("wgpu")), linalg.lu_factor(a)
    np.testing.assert_array_equal(ours.pivots.cpu().numpy(), theirs.pivots.numpy())
    close(ours.LU, wide(theirs.LU), 1e-4)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int) -> None:
    a = matrices(3, n, n, seed=n)
    a = a @ a.mT
    close(linalg.cholesky(a.to("wgpu")), np.linalg.cholesky(wide(a)), 1e-4)
    close(linalg.cholesky(a.mT.to("wgpu"), upper=True), np.linalg.cholesky(wide(a)).swapaxes(-1, -2), 1e-4)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("upper", "unit"), [(False, False), (True, False), (False, True), (True, True)])
def test_triangular(n: int, upper: bool, unit: bool) -> None:
    rng = np.random.default_rng(n)
    a = (rng.standard_normal((2, n, n)) / n + 2 * np.eye(n)).astype(np.float32)
    b = rng.standard_normal((2, n, 40)).astype(np.float32)
    t = (np.triu if upper else np.tril)(a).astype(np.float64)
    if unit:
        t[:, range(n), range(n)] = 1
    x = rgrad.from_numpy(a).to("wgpu")
    y = rgrad.from_numpy(b).to("wgpu")
    close(linalg.solve_triangular(x, y, upper=upper, unitriangular=unit), np.linalg.solve(t, b))


def test_what_fails_says_which_matrix() -> None:
    good = rgrad.eye(3)
    bad = rgrad.tensor([[1.0, 2, 3], [2, 4, 6], [0, 1, 1]])
    x = rgrad.stack([good, bad, good]).to("wgpu")
    for call in (linalg.inv, lambda m: linalg.solve(m, m)):
        with pytest.raises(linalg.LinAlgError, match=r"(?i)batch element 1.*singular"):
            call(x)
    with pytest.raises(linalg.LinAlgError, match=r"(?i)batch element 2.*minor of order 2"):
        linalg.cholesky(rgrad.stack([good, good, rgrad.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])]).to("wgpu"))
    made, info = linalg.inv_ex(x)
    assert info.tolist() == linalg.inv_ex(x.cpu()).info.tolist()
    assert made[0].tolist() == good.tolist()
    made, info = linalg.cholesky_ex(-rgrad.eye(2, device="wgpu"))
    assert (made.tolist(), info.item()) == ([[-1, 0], [0, -1]], 1)
    assert linalg.det(x).tolist() == [1, 0, 1]
    assert [t.tolist() for t in linalg.slogdet(x)] == [[1, 0, 1], [0, float("-inf"), 0]]


def test_nan_stays() -> None:
    x = rgrad.eye(3, device="wgpu")
    x[1, 1] = float("nan")
    assert linalg.det(x).isnan().item()
    assert linalg.slogdet(x)[1].isnan().item()
    assert linalg.solve(x, rgrad.ones(3, 1, device="wgpu")).isnan().any().item()


@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet", "cholesky", "solve_triangular"])
def test_gradients_of_both_orders(name: str) -> None:
    def gradients(device: str) -> list[Tensor]:
        a = matrices(2, 4, 4).to(device).requires_grad_()
        b = matrices(2, 4, 3, seed=1).to(device).requires_grad_()
        spd = a @ a.mT
        outs = {
            "solve": lambda: linalg.solve(a, b),
            "inv": lambda: linalg.inv(a),
            "det": lambda: linalg.det(a) / 1000,
            "slogdet": lambda: linalg.slogdet(a)[1],
            "cholesky": lambda: linalg.cholesky(spd),
            "solve_triangular": lambda: linalg.solve_triangular(a, b, upper=True),
        }
        out = outs[name]()
        first = rgrad.autograd.grad((out**3).sum(), [a, b], create_graph=True, allow_unused=True)
        given = [g for g in first if g is not None]
        again = rgrad.autograd.grad(rgrad.stack([(g**2).sum() for g in given]).sum(), [a, b], allow_unused=True)
        return [*given, *(g for g in again if g is not None)]

    for got, want in zip(gradients("wgpu"), gradients("cpu"), strict=True):
        close(got, wide(want), 1e-3)


@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_others_go_by_the_host(dtype: str) -> None:
    """Complex matrices, and larger ones than a workgroup takes."""
    n = 300 if dtype == "float32" else 6
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((n, n)) + n * np.eye(n)).astype(dtype)
    x = rgrad.from_numpy(a).to("wgpu")
    got = linalg.inv(x)
    assert (got.device.type, got.dtype) == ("wgpu", x.dtype)
    np.testing.assert_allclose((x @ got).cpu().numpy(), np.eye(n), atol=1e-4)
    values, vectors = linalg.eigh(x + x.mH)
    assert (values.device.type, vectors.device.type) == ("wgpu", "wgpu")
