"""Factors of low rank by random products, and a few eigenvalues by search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.linalg as linalg

DTYPES = [rgrad.float32, rgrad.float64, rgrad.complex64, rgrad.complex128]


def numbers(seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.is_complex else 0)
    return rgrad.tensor(x).to(dtype)


def tolerance(dtype: Any) -> float:
    return 1e-4 if dtype in (rgrad.float32, rgrad.complex64) else 1e-10


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(20, 12), (12, 20), (3, 15, 9), (4, 4)], ids=str)
def test_svd_of_matrices_of_low_rank(shape: tuple[int, ...], dtype: Any) -> None:
    *batch, m, n = shape
    A = numbers(0, (*batch, m, 3), dtype) @ numbers(1, (*batch, 3, n), dtype)
    U, S, V = rgrad.svd_lowrank(A, q=4)
    assert (U.shape, S.shape, V.shape) == ((*batch, m, 4), (*batch, 4), (*batch, n, 4))
    assert S.dtype == A.real.dtype
    tol = tolerance(dtype)
    np.testing.assert_allclose((U * S.unsqueeze(-2) @ V.mH).numpy(), A.numpy(), rtol=tol, atol=10 * tol)
    np.testing.assert_allclose(S[..., :3].numpy(), linalg.svdvals(A)[..., :3].numpy(), rtol=tol)
    M = numbers(2, (m, n), dtype)
    U, S, V = rgrad.svd_lowrank(A + M, q=4, M=M)
    np.testing.assert_allclose((U * S.unsqueeze(-2) @ V.mH).numpy(), A.numpy(), rtol=tol, atol=20 * tol)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_principal_components(dtype: Any) -> None:
    A = numbers(3, (30, 2), dtype) @ numbers(4, (2, 6), dtype) + 5
    U, S, V = rgrad.pca_lowrank(A, q=3)
    centered = A - A.mean(0, keepdim=True)
    tol = tolerance(dtype)
    np.testing.assert_allclose((U * S @ V.mH).numpy(), centered.numpy(), rtol=tol, atol=50 * tol)
    np.testing.assert_allclose(
        rgrad.pca_lowrank(A, center=False)[1][:3].numpy(), linalg.svdvals(A)[:3].numpy(), rtol=tol
    )
    assert rgrad.pca_lowrank(A[:4]).__len__() == 3
    assert rgrad.pca_lowrank(A[:4])[1].shape == (4,)


def test_derivatives_of_low_rank() -> None:
    left = rgrad.tensor(np.random.default_rng(0).normal(size=(7, 2)), requires_grad=True)
    right = numbers(1, (2, 5), rgrad.float64)

    def product(x: Any) -> Any:
        U, S, V = rgrad.svd_lowrank(x @ right, q=2)
        return (U * S.sqrt()) @ V.mT

    assert rgrad.autograd.gradcheck(product, left)


def test_what_low_rank_refuses() -> None:
    with pytest.raises(ValueError, match=r"q\(=7\) must be non-negative"):
        rgrad.pca_lowrank(rgrad.ones(6, 8), q=7)
    with pytest.raises(ValueError, match="niter"):
        rgrad.pca_lowrank(rgrad.ones(6, 8), niter=-1)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        rgrad.svd_lowrank(rgrad.ones(6))
    with pytest.raises(RuntimeError, match="floating point or complex"):
        rgrad.pca_lowrank(rgrad.ones(6, 6, dtype=rgrad.int64))


def hermitian(seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
    x = numbers(seed, shape, dtype)
    return (x + x.mH) / 2


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(9, 9), (2, 2, 12, 12), (40, 40)], ids=str)
def test_pairs(shape: tuple[int, ...], dtype: Any, largest: bool) -> None:
    A = hermitian(0, shape, dtype)
    E, X = rgrad.lobpcg(A, k=2, n=3, largest=largest)
    assert (E.shape, X.shape) == ((*shape[:-2], 2), (*shape[:-1], 2))
    all_values = linalg.eigvalsh(A)
    wanted = all_values.flip(-1)[..., :2] if largest else all_values[..., :2]
    single = dtype in (rgrad.float32, rgrad.complex64)
    np.testing.assert_allclose(E.numpy(), wanted.numpy(), rtol=1e-4 if single else 1e-9, atol=1e-4 if single else 1e-9)
    error = (A @ X - X * E.unsqueeze(-2)).abs().max()
    assert error < (1e-2 if single else 1e-5)
    eye = (X.mH @ X).numpy()
    np.testing.assert_allclose(eye, np.broadcast_to(np.eye(2), eye.shape), atol=1e-5)


@pytest.mark.parametrize("dtype", [rgrad.float64, rgrad.complex128], ids=str)
def test_pairs_beside_another_matrix_with_a_preconditioner_and_a_tracker(dtype: Any) -> None:
    n = 30
    A = hermitian(1, (n, n), dtype) / 10 + rgrad.diag(rgrad.arange(1.0, n + 1)).to(dtype)
    B = hermitian(2, (n, n), dtype) / 20 + 2 * rgrad.eye(n, dtype=dtype)
    steps: list[tuple[int, int]] = []

    def tracker(worker: Any) -> None:
        steps.append((worker.ivars["istep"], worker.ivars["converged_count"]))
        assert worker.E.shape == worker.tvars["rerr"].shape == (2,)

    X0 = numbers(3, (n, 2), dtype)
    E, X = rgrad.lobpcg(A, B=B, X=X0, largest=False, tracker=tracker)
    np.testing.assert_allclose((A @ X).numpy(), (B @ X * E).numpy(), atol=1e-5)
    np.testing.assert_allclose((X.mH @ B @ X).numpy(), np.eye(2), atol=1e-8)
    wanted = linalg.eigvals(linalg.solve(B, A)).real.sort().values[:2]
    np.testing.assert_allclose(E.numpy(), wanted.numpy(), rtol=1e-9)
    assert [s for s, _ in steps] == list(range(len(steps)))
    assert steps[-1][1] == 2
    before = len(steps)
    steps.clear()
    rgrad.lobpcg(A, B=B, X=X0, largest=False, iK=linalg.inv(A), tracker=tracker)
    assert len(steps) < before
    steps.clear()
    rgrad.lobpcg(A, X=X0, niter=3, tol=0.0, tracker=tracker)
    assert len(steps) == 4

    def stop(worker: Any) -> None:
        worker.bvars["force_stop"] = True

    assert rgrad.lobpcg(A, X=X0, tracker=stop)[0].shape == (2,)


@pytest.mark.parametrize("dtype", [rgrad.float64, rgrad.complex128], ids=str)
def test_derivatives_of_pairs(dtype: Any) -> None:
    A = (hermitian(4, (9, 9), dtype) + rgrad.diag(rgrad.arange(1.0, 10)).to(dtype)).requires_grad_()
    B = (hermitian(5, (9, 9), dtype) / 20 + rgrad.eye(9, dtype=dtype)).requires_grad_()
    X0 = numbers(6, (9, 2), dtype)

    def values(a: Any) -> Any:
        return rgrad.lobpcg(a, X=X0, tol=1e-14)[0]

    def vectors(a: Any) -> Any:
        X = rgrad.lobpcg(a, X=X0, tol=1e-14)[1]
        return X @ rgrad.tensor([1.0, 2.0]).to(dtype).diag() @ X.mH

    assert rgrad.autograd.gradcheck(values, A)
    assert rgrad.autograd.gradcheck(vectors, A)
    assert rgrad.autograd.gradgradcheck(values, A)

    def both(a: Any, b: Any) -> Any:
        E, X = rgrad.lobpcg(a, B=b, X=X0, tol=1e-14)
        return X * E @ X.mH

    assert rgrad.autograd.gradcheck(both, (A, B))


def test_what_pairs_refuse() -> None:
    A = rgrad.eye(6)
    with pytest.raises(ValueError, match="smaller than 3 x the number"):
        rgrad.lobpcg(A, k=3)
    with pytest.raises(ValueError, match="'basic' or 'ortho'"):
        rgrad.lobpcg(A, method="other")
    with pytest.raises(ValueError, match=r"k \(=0\) and the number of vectors \(=1\) must be positive"):
        rgrad.lobpcg(A, k=0, n=1)
    assert rgrad.lobpcg(A, k=2, n=1)[0].shape == (1,)
    with pytest.raises(RuntimeError, match="square matrices"):
        rgrad.lobpcg(A[:, :3])
    with pytest.raises(linalg.LinAlgError, match="positive-definite"):
        rgrad.lobpcg(A, B=-A)
