"""The algorithms of linear algebra: residuals, batches, threads, errors, and what is empty or not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import linalg

DTYPES = [rgrad.float32, rgrad.float64]
SIZES = [1, 2, 5, 16, 17, 33, 100, 200]


def eps(dtype: rgrad.dtype) -> float:
    return float(np.finfo(np.float32 if dtype == rgrad.float32 else np.float64).eps)


def matrix(kind: str, m: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(m * 1000 + n)
    a: np.ndarray = rng.normal(size=(m, n))
    k = min(m, n)
    if kind == "zero":
        return a * 0
    if kind == "rank":
        r = max(k // 3, 1)
        return a[:, :r] @ rng.normal(size=(r, n))
    if kind in ("repeated", "graded"):
        left, right = (np.linalg.qr(rng.normal(size=(s, s)))[0] for s in (m, n))
        values = np.where(np.arange(k) < k // 2, 2.0, 1.0) if kind == "repeated" else np.logspace(0, -20, k)
        return (left[:, :k] * values) @ right[:k]
    return a


def relative(got: np.ndarray, wanted: np.ndarray, dtype: rgrad.dtype) -> float:
    """The difference in units of the precision times the size."""
    scale = max(np.abs(wanted).max(initial=0.0), 1e-300) * eps(dtype) * max(wanted.shape)
    return float(np.abs(got - wanted).max(initial=0.0) / scale)


def exact(t: Any) -> np.ndarray:
    return np.asarray(t.numpy(), dtype=np.float64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_residuals_of_factors(n: int, dtype: rgrad.dtype) -> None:
    a = rgrad.tensor(matrix("random", n, n), dtype=dtype)
    x = exact(a)
    P, L, U = (exact(t) for t in linalg.lu(a))
    assert relative(P @ L @ U, x, dtype) < 20
    assert np.abs(L).max() <= 1
    definite = a @ a.mT + n * rgrad.eye(n, dtype=dtype)
    for upper in (False, True):
        factor = exact(linalg.cholesky(definite, upper=upper))
        made = factor.T @ factor if upper else factor @ factor.T
        assert relative(made, exact(definite), dtype) < 10
    inverse = exact(linalg.inv(definite))
    assert np.abs(inverse @ exact(definite) - np.eye(n)).max() < 50 * n * eps(dtype)
    b = rgrad.tensor(matrix("random", n, 7), dtype=dtype)
    assert relative(exact(definite) @ exact(linalg.solve(definite, b)), exact(b), dtype) < 50
    assert relative(exact(linalg.solve(definite, b.mT, left=False)) @ exact(definite), exact(b.mT), dtype) < 50


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (40, 40), (130, 70), (70, 130), (200, 200)], ids=str)
@pytest.mark.parametrize("kind", ["random", "rank", "graded", "zero"])
def test_residuals_of_qr(kind: str, shape: tuple[int, int], dtype: rgrad.dtype) -> None:
    a = rgrad.tensor(matrix(kind, *shape), dtype=dtype)
    for mode in ("reduced", "complete"):
        Q, R = (exact(t) for t in linalg.qr(a, mode))
        assert relative(Q @ R, exact(a), dtype) < 10
        assert relative(Q.T @ Q, np.eye(Q.shape[1]), dtype) < 10
        assert (np.tril(R, -1) == 0).all()
    assert (exact(linalg.qr(a, "r").R) == exact(linalg.qr(a).R)).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 40, 100, 200])
@pytest.mark.parametrize("kind", ["random", "repeated", "rank", "graded", "zero"])
def test_residuals_of_eigenvectors(kind: str, n: int, dtype: rgrad.dtype) -> None:
    half = matrix(kind, n, n)
    a = rgrad.tensor(half + half.T, dtype=dtype)
    for scale in (1.0, 2.0**100, 2.0**-100):
        values, vectors = (exact(t) for t in linalg.eigh(a * scale))
        x = exact(a)
        assert (np.diff(values) >= 0).all()
        assert relative((vectors * (values / scale)) @ vectors.T, x, dtype) < 30
        assert relative(vectors.T @ vectors, np.eye(n), dtype) < 30
        np.testing.assert_allclose(
            exact(linalg.eigvalsh(a * scale, "U")) / scale,
            values / scale,
            atol=20 * n * eps(dtype) * (np.abs(x).max() + 1e-30),
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (6, 4), (4, 6), (17, 17), (90, 40), (40, 90), (150, 150)], ids=str)
@pytest.mark.parametrize("kind", ["random", "repeated", "rank", "graded", "zero"])
def test_residuals_of_singular_vectors(kind: str, shape: tuple[int, int], dtype: rgrad.dtype) -> None:
    a = rgrad.tensor(matrix(kind, *shape), dtype=dtype)
    x, k = exact(a), min(shape)
    for scale in (1.0, 2.0**100, 2.0**-100):
        for full in (False, True):
            U, S, Vh = (exact(t) for t in linalg.svd(a * scale, full_matrices=full))
            assert (S >= 0).all()
            assert (np.diff(S) <= 0).all()
            assert relative((U[:, :k] * (S / scale)) @ Vh[:k], x, dtype) < 30
            assert relative(U.T @ U, np.eye(U.shape[1]), dtype) < 30
            assert relative(Vh @ Vh.T, np.eye(Vh.shape[0]), dtype) < 30
        bound = 20 * max(shape) * eps(dtype) * (np.abs(x).max() + 1e-30)
        np.testing.assert_allclose(exact(linalg.svdvals(a * scale)) / scale, S / scale, atol=bound)


def definite(x: Any) -> Any:
    return x @ x.mT + x.shape[-1] * rgrad.eye(x.shape[-1], dtype=x.dtype)


CALLS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: linalg.cholesky(definite(x)),
    "lu": lambda x: linalg.lu_factor_ex(x),
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x[..., :3]),
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "triangular": lambda x: linalg.solve_triangular(x, x[..., :3], upper=True),
    "qr": linalg.qr,
    "eigh": lambda x: linalg.eigh(x + x.mT),
    "svd": linalg.svd,
}


def results(made: Any) -> list[np.ndarray]:
    return [t.numpy() for t in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("count", "n"), [(35, 4), (5, 16), (3, 4), (20, 3), (2, 70)])
def test_a_batch_is_like_its_matrices(name: str, count: int, n: int) -> None:
    x = rgrad.tensor(np.random.default_rng(n).normal(size=(count, n, n)) + n * np.eye(n))
    batch = results(CALLS[name](x))
    singles = [results(CALLS[name](m)) for m in x]
    for k, whole in enumerate(batch):
        np.testing.assert_allclose(whole, np.stack([s[k] for s in singles]), rtol=1e-9, atol=1e-11)
    # Other strides, and an outer dimension.
    turned = x.mT.contiguous().mT.reshape(1, count, n, n)
    for whole, other in zip(batch, results(CALLS[name](turned)), strict=True):
        assert (other[0] == whole).all()


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    rng = np.random.default_rng(0)
    before = rgrad.get_num_threads()
    try:
        for shape in [(300, 300), (40, 5, 5), (7, 40, 40)]:
            x = rgrad.tensor(rng.normal(size=shape) + shape[-1] * np.eye(shape[-1]))
            made = []
            for threads in (1, 3):
                rgrad.set_num_threads(threads)
                made.append(results(CALLS[name](x)))
            for a, b in zip(*made, strict=True):
                assert a.tobytes() == b.tobytes()
    finally:
        rgrad.set_num_threads(before)


@pytest.mark.parametrize("count", [None, 2, 20])
def test_errors_name_the_matrix(count: int | None) -> None:
    x = np.eye(3) if count is None else np.tile(np.eye(3), (count, 1, 1))
    x[(..., 1, 1) if count is None else (count - 1, 1, 1)] = 0
    a = rgrad.tensor(x)
    place = "" if count is None else f"(Batch element {count - 1}): "
    no_factor = "The factorization could not be completed because the input is not positive-definite"
    no_inverse = (
        "The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
    )
    wanted: list[tuple[Callable[[Any], Any], str]] = [
        (
            linalg.cholesky,
            f"linalg.cholesky: {place}{no_factor} (the leading minor of order 2 is not positive-definite).",
        ),
        (linalg.inv, f"linalg.inv: {place}{no_inverse}"),
        (
            lambda a: linalg.solve(a, a),
            f"torch.linalg.solve: {place}The solver failed because the input matrix is singular.",
        ),
    ]
    for call, text in wanted:
        with pytest.raises(linalg.LinAlgError) as caught:
            call(a)
        assert str(caught.value) == text
    with pytest.raises(RuntimeError, match="division by zero"):
        linalg.lu_factor(a)
    inverse, info = linalg.inv_ex(a)
    L, failed = linalg.cholesky_ex(a)
    assert info.reshape(-1)[-1].item() == failed.reshape(-1)[-1].item() == 2
    assert bool(inverse.reshape(-1, 3, 3)[-1].isinf().all())
    assert bool((L.reshape(-1, 3, 3)[-1] == a.reshape(-1, 3, 3)[-1]).all())
    if count is not None:
        assert info[:-1].sum().item() == failed[:-1].sum().item() == 0
        assert bool((inverse[0] == a[0]).all())


def test_empty_matrices_and_batches() -> None:
    for shape in [(0, 0), (0, 3, 3), (2, 0, 0), (0, 0, 0)]:
        a = rgrad.zeros(*shape, dtype=rgrad.float64)
        batch = shape[:-2]
        assert linalg.inv(a).shape == linalg.cholesky(a).shape == shape
        assert (linalg.det(a) == 1).all()
        assert linalg.det(a).shape == batch
        assert (linalg.slogdet(a).logabsdet == 0).all()
        assert linalg.cholesky_ex(a).info.shape == batch
        assert linalg.lu_factor_ex(a).pivots.shape == shape[:-1]
        assert linalg.solve(a, a).shape == shape
        assert linalg.eigh(a).eigenvalues.shape == shape[:-1]
        assert linalg.svd(a).S.shape == shape[:-1]
    Q, R = linalg.qr(rgrad.zeros(2, 4, 0, dtype=rgrad.float64), "complete")
    assert Q.shape == (2, 4, 4)
    assert (rgrad.eye(4, dtype=rgrad.float64) == Q).all()
    assert R.shape == (2, 4, 0)
    U, S, Vh = linalg.svd(rgrad.zeros(3, 0, dtype=rgrad.float64))
    assert (rgrad.eye(3, dtype=rgrad.float64) == U).all()
    assert S.numel() == Vh.numel() == 0


def test_nan_is_no_endless_loop() -> None:
    for value in (float("nan"), float("inf")):
        a = rgrad.full((4, 4), value, dtype=rgrad.float64)
        for call in (linalg.eigh, linalg.svd, linalg.svdvals, linalg.eigvalsh):
            with pytest.raises(linalg.LinAlgError, match="failed to converge"):
                call(a)
        with pytest.raises(linalg.LinAlgError):
            linalg.cholesky(rgrad.full((4, 4), float("nan")))
        assert bool(linalg.qr(a).R[0, 0].isnan() | linalg.qr(a).R[0, 0].isinf())


@pytest.mark.parametrize("n", [4, 5, 30])
def test_cofactors_of_singular_and_regular_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    for rank in (n, n - 1, n - 2):
        x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
        a = rgrad.tensor(x, requires_grad=True)
        linalg.det(a).backward()
        U, S, Vh = np.linalg.svd(x)
        others = np.array([np.prod(np.delete(S, i)) for i in range(n)])
        wanted = np.linalg.det(U) * np.linalg.det(Vh) * (U * others) @ Vh
        np.testing.assert_allclose(a.grad.numpy(), wanted, rtol=1e-6, atol=1e-12 * S[: n - 2].prod() * S[0])


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 4, 4)], ids=str)
@pytest.mark.parametrize("pivot", [True, False])
def test_derivatives_of_compact_factors(shape: tuple[int, ...], pivot: bool) -> None:
    x = np.random.default_rng(1).normal(size=shape) + 3 * np.eye(*shape[-2:])
    a = rgrad.tensor(x, requires_grad=True)

    def compact(a: Any) -> Any:
        return linalg.lu_factor_ex(a, pivot=pivot).LU

    assert rgrad.autograd.gradcheck(compact, a, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(compact, a)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_derivatives_of_solutions_by_factors(left: bool, adjoint: bool) -> None:
    rng = np.random.default_rng(2)
    factors, pivots = linalg.lu_factor(rgrad.tensor(rng.normal(size=(2, 3, 3))))
    factors = factors.detach().requires_grad_()
    b = rgrad.tensor(rng.normal(size=(2, 3, 2) if left else (2, 2, 3)), requires_grad=True)

    def solved(LU: Any, B: Any) -> Any:
        return linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)

    assert rgrad.autograd.gradcheck(solved, (factors, b), check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(solved, (factors, b))


def test_out_and_info() -> None:
    a = 2 * rgrad.eye(3)
    out = rgrad.empty(0)
    assert linalg.inv(a, out=out) is out
    assert (out == rgrad.eye(3) / 2).all()
    L, info = rgrad.empty(0), rgrad.empty(0, dtype=rgrad.int32)
    linalg.cholesky_ex(a, out=(L, info))
    assert (L @ L.mT - a).abs().max() < 1e-6
    assert info.item() == 0
