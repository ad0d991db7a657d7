"""Linear algebra of complex matrices: derivatives of both orders, batches, tangents, reconstructions, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.linalg as linalg

Call = Callable[[Any], Any]


def numbers(seed: int, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def square(seed: int, *batch: int) -> np.ndarray:
    # Away from where values are equal, so that differences are good.
    return numbers(seed, *batch, 4, 4) + 2 * np.diag([1.0, 2, 3, 4])


def definite(a: Any) -> Any:
    return a @ a.mH + 3 * rgrad.eye(a.shape[-1], dtype=rgrad.complex128)


def hermitian(a: Any) -> Any:
    return a + a.mH


def of_values(L: Any, V: Any) -> Any:
    return (V * (L / 8).exp().unsqueeze(-2)) @ V.mH


def of_singular_values(U: Any, S: Any, Vh: Any) -> Any:
    return U @ ((S / 8).exp().unsqueeze(-1) * Vh)


def first_product(U: Any, S: Any, Vh: Any) -> Any:
    return U[..., :1] @ Vh[..., :1, :]


def all_products(U: Any, S: Any, V: Any) -> Any:
    return U @ V.mH


# What is not unique (phases of vectors) is taken out by magnitudes or by products.
CASES: dict[str, Call] = {
    "inv": linalg.inv,
    "inv_ex": lambda a: linalg.inv_ex(a)[0],
    "solve": lambda a: linalg.solve(a, a[..., :2] * a[..., 1:3]),
    "solve on the right": lambda a: linalg.solve(a, a[..., :2, :] ** 2, left=False),
    "solve_ex": lambda a: linalg.solve_ex(a, a[..., :2] ** 2)[0],
    "solve_triangular": lambda a: linalg.solve_triangular(a, a[..., :2] ** 2, upper=True),
    "solve_triangular with ones": lambda a: linalg.solve_triangular(
        a, a[..., :2, :] ** 2, upper=False, left=False, unitriangular=True
    ),
    "triangular_solve": lambda a: rgrad.triangular_solve(a[..., :2] ** 2, a, transpose=True)[0],
    "det": linalg.det,
    "det of three rows": lambda a: linalg.det(a[..., :3, :3]),
    "slogdet sign": lambda a: linalg.slogdet(a)[0],
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "logdet": rgrad.logdet,
    "cholesky": lambda a: linalg.cholesky(definite(a)),
    "cholesky upper": lambda a: linalg.cholesky(definite(a), upper=True),
    "cholesky_solve": lambda a: rgrad.cholesky_solve(a[..., :2] ** 2, linalg.cholesky(definite(a))),
    "cholesky_inverse": lambda a: rgrad.cholesky_inverse(linalg.cholesky(definite(a))),
    "qr Q": lambda a: linalg.qr(a)[0],
    "qr R": lambda a: linalg.qr(a)[1],
    "qr tall": lambda a: (linalg.qr(a[..., :2])[0] * rgrad.arange(2)).sum(-1),
    "qr wide R": lambda a: linalg.qr(a[..., :2, :])[1],
    "qr wide Q": lambda a: linalg.qr(a[..., :2, :], "complete")[0],
    "eigh values": lambda a: linalg.eigh(hermitian(a))[0],
    "eigh vectors": lambda a: linalg.eigh(hermitian(a))[1].abs() ** 2,
    "eigh both": lambda a: of_values(*linalg.eigh(hermitian(a), "U")),
    "eigvalsh": lambda a: linalg.eigvalsh(hermitian(a), "U"),
    "eig values": lambda a: linalg.eig(a)[0],
    "eig vectors": lambda a: linalg.eig(a)[1].abs() ** 2,
    "eig both": lambda a: of_values(*linalg.eig(a)),
    "eigvals": linalg.eigvals,
    "svdvals": linalg.svdvals,
    "svd U": lambda a: linalg.svd(a[..., :2], False)[0].abs() ** 2,
    "svd Vh": lambda a: linalg.svd(a[..., :2, :], False)[2].abs() ** 2,
    "svd both": lambda a: of_singular_values(*linalg.svd(a)),
    "svd phases": lambda a: first_product(*linalg.svd(a[..., :3], False)),
    "svd old": lambda a: all_products(*rgrad.svd(a)),
    "pinv tall": lambda a: linalg.pinv(a[..., :2]),
    "pinv wide": lambda a: linalg.pinv(a[..., :2, :]),
    "pinv hermitian": lambda a: linalg.pinv(hermitian(a), hermitian=True),
    "lstsq": lambda a: linalg.lstsq(a[..., :2], a[..., 2:] ** 2)[0],
    "lu L": lambda a: linalg.lu(a)[1],
    "lu U": lambda a: linalg.lu(a)[2],
    "lu tall": lambda a: linalg.lu(a[..., :2])[1],
    "lu wide": lambda a: linalg.lu(a[..., :2, :])[2],
    "lu_solve": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a[..., :2] ** 2),
    "lu_solve adjoint": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a[..., :2, :] ** 2, left=False, adjoint=True),
    "matrix_power": lambda a: linalg.matrix_power(a, 3),
    "matrix_power negative": lambda a: linalg.matrix_power(a, -2),
    "matrix_exp": lambda a: linalg.matrix_exp(a / 2),
    "matrix_norm nuc": lambda a: linalg.matrix_norm(a, "nuc"),
    "matrix_norm 2": lambda a: linalg.matrix_norm(a, 2),
    "matrix_norm -2": lambda a: linalg.matrix_norm(a, -2, keepdim=True),
    "matrix_norm 1": lambda a: linalg.matrix_norm(a, 1),
    "norm": linalg.norm,
    "cond": linalg.cond,
    "cond fro": lambda a: linalg.cond(a, "fro"),
    "multi_dot": lambda a: linalg.multi_dot([a.reshape(-1, 4)[0], a.reshape(-1, 4)[:4], a.reshape(-1, 4)[:4, :2]]),
    "vecdot": lambda a: linalg.vecdot(a, a**2),
    "householder_product": lambda a: linalg.householder_product(a, a[..., 0, :3]),
    "ormqr": lambda a: rgrad.ormqr(a[..., :3], a[..., 0, :3], a[..., 1:] ** 2),
    "ormqr of the right": lambda a: rgrad.ormqr(a[..., :3], a[..., 0, :3], a[..., 1:, :] ** 2, False, True),
    "tensorsolve": lambda a: linalg.tensorsolve(a.reshape(-1)[:16].reshape(2, 2, 4), a.reshape(-1)[:4].reshape(2, 2)),
    "tensorinv": lambda a: linalg.tensorinv(a.reshape(-1)[:16].reshape(2, 2, 4)),
}
# They mix the elements of a batch.
NO_BATCH = {"multi_dot", "tensorsolve", "tensorinv", "norm"}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    leaf = rgrad.tensor(square(len(name)), requires_grad=True)
    assert rgrad.autograd.gradcheck(CASES[name], leaf, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(CASES[name], leaf)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NO_BATCH])
def test_batches(name: str) -> None:
    """A batch of matrices, vmap over it and a loop agree; so do gradients under vmap, and both modes."""
    x = rgrad.tensor(square(1, 3))
    function = CASES[name]
    one_by_one = np.stack([function(m).numpy() for m in x])
    np.testing.assert_allclose(function(x).numpy(), one_by_one, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rgrad.func.vmap(function)(x).numpy(), one_by_one, rtol=1e-9, atol=1e-12)

    def total(a: Any) -> Any:
        made = function(a).sum()
        return made.real if made.is_complex() else made

    slopes = rgrad.func.vmap(rgrad.func.grad(total))(x)
    direction = rgrad.tensor(numbers(2, 4, 4))
    tangent = rgrad.func.jvp(total, (x[1],), (direction,))[1]
    np.testing.assert_allclose(tangent.item(), (slopes[1].conj() * direction).sum().real.item(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["eig values", "eig vectors", "eigvals"])
def test_general_eigenvalues_of_real_matrices(name: str) -> None:
    leaf = rgrad.tensor(square(len(name)).real.copy() + np.triu(np.full((4, 4), 3.0), 2) - 2 * np.eye(4, k=-2))
    assert linalg.eigvals(leaf).imag.abs().max() > 0.1
    leaf.requires_grad_()
    assert rgrad.autograd.gradcheck(CASES[name], leaf, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(CASES[name], leaf)


def assert_close(got: Any, wanted: Any, rtol: float) -> None:
    wanted = wanted.numpy() if isinstance(wanted, rgrad.Tensor) else np.asarray(wanted)
    size = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(got.numpy(), np.broadcast_to(wanted, got.shape), rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("dtype", [rgrad.complex64, rgrad.complex128], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (7, 4, 4), (5, 20, 20), (90, 90), (100, 70), (70, 100)], ids=str)
def test_reconstructions(shape: tuple[int, ...], dtype: Any) -> None:
    tol = (1e-5 if dtype == rgrad.complex64 else 1e-13) * 30
    a = rgrad.tensor(numbers(sum(shape), *shape)).to(dtype)
    m, n = shape[-2:]
    k = min(m, n)
    Q, R = linalg.qr(a, "complete")
    assert_close(Q @ R, a, tol)
    assert_close(Q.mH @ Q, np.eye(m), tol)
    U, S, Vh = linalg.svd(a)
    assert S.dtype == a.real.dtype
    assert_close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], a, tol)
    assert_close(U.mH @ U, np.eye(m), tol)
    assert_close(Vh @ Vh.mH, np.eye(n), tol)
    assert_close(linalg.svdvals(a), S, tol)
    P, L, U = linalg.lu(a)
    assert_close(P @ L @ U, a, tol)
    reflectors, tau = rgrad.geqrf(a)
    assert_close(rgrad.ormqr(reflectors, tau, a, transpose=True), reflectors.triu(), tol)
    if m != n:
        return
    h = a @ a.mH + n * rgrad.eye(n, dtype=dtype)
    for upper in (False, True):
        F = linalg.cholesky(h, upper=upper)
        assert_close(F.mH @ F if upper else F @ F.mH, h, tol)
    E, V = linalg.eigh(h)
    assert E.dtype == a.real.dtype
    assert_close(h @ V, V * E.unsqueeze(-2), tol)
    assert_close(linalg.eigvalsh(h), E, tol)
    assert_close(h @ linalg.inv(h), np.eye(n), tol)
    b = a[..., :1]
    assert_close(h @ linalg.solve(h, b), b, tol)
    assert_close(h @ linalg.lu_solve(*linalg.lu_factor(h), b, adjoint=True), b, tol)
    sign, size = linalg.slogdet(a)
    assert size.dtype == a.real.dtype
    np.testing.assert_allclose(sign.abs().numpy(), 1.0, rtol=1e-5)
    np.testing.assert_allclose(size.numpy(), np.linalg.slogdet(a.to(rgrad.complex128).numpy())[1], rtol=1e-4)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64, rgrad.complex64, rgrad.complex128], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (6, 5, 5), (60, 60)], ids=str)
def test_indefinite_factors(shape: tuple[int, ...], dtype: Any, hermitian: bool) -> None:
    x = numbers(sum(shape), *shape)
    # Zeros on the diagonal ask for blocks of two rows.
    x[..., range(0, shape[-1], 2), range(0, shape[-1], 2)] = 0 if shape[-1] > 1 else 1
    a = rgrad.tensor(x if dtype.is_complex else x.real.copy()).to(dtype)
    a = a.tril() + (a.tril(-1).mH if hermitian else a.tril(-1).mT)
    if hermitian and dtype.is_complex:
        a = a.real.to(dtype) + 1j * a.imag * (1 - rgrad.eye(shape[-1]))
    LD, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    if shape[-1] > 2:
        assert (pivots < 0).any()
    assert (LD.triu(1) == 0).all()
    # Another triangle is not read.
    other = linalg.ldl_factor(a.tril() + 7 * rgrad.ones_like(a).triu(1), hermitian=hermitian)
    assert (other.LD == LD).all()
    b = rgrad.tensor(numbers(1, shape[-1], 3) if dtype.is_complex else numbers(1, shape[-1], 3).real.copy()).to(dtype)
    X = linalg.ldl_solve(LD, pivots, b, hermitian=hermitian)
    single = dtype in (rgrad.float32, rgrad.complex64)
    assert_close(a @ X, b, 2e-3 if single else 1e-11)
    with pytest.raises(linalg.LinAlgError, match=r"Batch element 1.*D\[2,2\] is zero"):
        linalg.ldl_factor(rgrad.stack([rgrad.eye(2, dtype=dtype), rgrad.diag(rgrad.tensor([1, 0])).to(dtype)]))
    assert linalg.ldl_factor_ex(rgrad.zeros(2, 2, dtype=dtype)).info.item() == 1


def test_indefinite_factors_have_no_derivative_and_refuse_what_does_not_fit() -> None:
    a = rgrad.eye(3, requires_grad=True)
    LD, pivots = linalg.ldl_factor(a)
    with pytest.raises(RuntimeError, match="linalg_ldl_factor_ex is not implemented"):
        LD.sum().backward()
    with pytest.raises(RuntimeError, match="linalg_ldl_solve is not implemented"):
        linalg.ldl_solve(LD.detach(), pivots, a).sum().backward()
    LD = LD.detach()
    with pytest.raises(RuntimeError, match="Incompatible matrix sizes"):
        linalg.ldl_solve(LD, pivots, rgrad.ones(2, 1))
    with pytest.raises(RuntimeError, match=r"LD.shape\[:-1\] and pivots.shape"):
        linalg.ldl_solve(LD, pivots[:2], rgrad.ones(3, 1))
    with pytest.raises(RuntimeError, match="pivots to be integers"):
        linalg.ldl_solve(LD, pivots.float(), rgrad.ones(3, 1))
    with pytest.raises(RuntimeError, match="same dtype"):
        linalg.ldl_solve(LD, pivots, rgrad.ones(3, 1).double())
    # Pivots that no factorisation makes exchange nothing.
    wild = rgrad.tensor([99, -99, -1], dtype=rgrad.int32)
    assert linalg.ldl_solve(LD, wild, rgrad.ones(3, 1)).shape == (3, 1)


GENERAL: dict[str, np.ndarray] = {
    "one row": np.array([[3.0]]),
    "rotation": np.array([[0.0, -1.0], [1.0, 0.0]]),
    "two real values": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "upper triangle": np.triu(numbers(1, 6, 6).real),
    "lower triangle": np.tril(numbers(2, 6, 6)),
    "permutation": np.eye(7)[[3, 0, 1, 2, 6, 4, 5]],
    "cycle of nine": np.roll(np.eye(9), 1, 0),
    "companion": np.vstack([np.array([6.0, -11, 6]), np.eye(2, 3)]),
    "defective": np.eye(4, k=1) + 2 * np.eye(4),
    "zeros": np.zeros((3, 3)),
    "ones": np.ones((5, 5)),
    "sizes apart": numbers(3, 6, 6).real * np.logspace(-40, 40, 6)[:, None] * np.logspace(40, -40, 6),
    "symmetric": numbers(4, 8, 8).real + numbers(4, 8, 8).real.T,
    "real 30": numbers(5, 30, 30).real,
    "complex 30": numbers(6, 30, 30),
    "real 120": numbers(7, 120, 120).real,
    "complex 120": numbers(8, 120, 120),
}


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300], ids=str)
@pytest.mark.parametrize("name", GENERAL)
def test_general_eigenvalues(name: str, scale: float) -> None:
    x = GENERAL[name]
    if name == "sizes apart" and scale != 1.0:
        x = x / np.abs(x).max()
    x = x * (scale / np.abs(x).max() if scale != 1.0 and x.any() else 1.0)
    a = rgrad.tensor(x)
    values, vectors = linalg.eig(a)
    assert values.dtype == vectors.dtype == rgrad.complex128
    np.testing.assert_allclose(linalg.eigvals(a).numpy(), values.numpy(), rtol=1e-8, atol=1e-7 * np.abs(x).max())
    V, E = vectors.numpy(), values.numpy()
    np.testing.assert_allclose(np.linalg.norm(V, axis=0), 1.0, rtol=1e-12)
    size = np.abs(x).max() or 1.0
    np.testing.assert_allclose((x / size) @ V, V * (E / size), rtol=1e-10, atol=3e-12)
    if np.isrealobj(x):
        # Conjugate pairs, the positive imaginary part first.
        upper = np.flatnonzero(E.imag > 0)
        assert (E[upper + 1] == E[upper].conj()).all()
        assert (V[:, upper + 1] == V[:, upper].conj()).all()
        assert (E.imag < 0).sum() == len(upper)
    if scale == 1.0 and name not in ("sizes apart", "defective"):
        wanted = np.linalg.eigvals(x)
        distance = np.abs(E[:, None] - wanted).min(1)
        assert distance.max() <= 1e-10 * (1 + np.abs(wanted).max())


def test_general_eigenvalues_in_single_precision_of_batches_and_of_nothing() -> None:
    x = numbers(0, 3, 5, 5).astype(np.complex64)
    values, vectors = linalg.eig(rgrad.tensor(x))
    assert values.dtype == rgrad.complex64
    assert_close(rgrad.tensor(x) @ vectors, (vectors * values.unsqueeze(-2)).numpy(), 1e-5)
    made = linalg.eig(rgrad.tensor(x.real.copy()))
    assert made.eigenvectors.dtype == rgrad.complex64
    for shape in [(0, 0), (0, 3, 3), (2, 0, 0)]:
        for dtype in (rgrad.float64, rgrad.complex64):
            empty = linalg.eig(rgrad.zeros(shape, dtype=dtype))
            assert (empty.eigenvalues.shape, empty.eigenvectors.shape) == (shape[:-1], shape)
            assert linalg.eigvals(rgrad.zeros(shape, dtype=dtype)).dtype.is_complex
            assert linalg.ldl_factor(rgrad.zeros(shape, dtype=dtype)).pivots.shape == shape[:-1]
            assert linalg.matrix_exp(rgrad.zeros(shape, dtype=dtype)).shape == shape


def test_general_eigenvalues_refuse_what_has_none() -> None:
    for value in (float("nan"), float("inf")):
        a = rgrad.stack([rgrad.eye(3), rgrad.full((3, 3), value)])
        for call in (linalg.eig, linalg.eigvals):
            for dtype in (rgrad.float32, rgrad.complex128):
                with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
                    call(a.to(dtype))
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Int"):
        linalg.eig(rgrad.ones(2, 2, dtype=rgrad.int32))
    with pytest.raises(NotImplementedError, match="linalg_eig_out_cpu"):
        linalg.eig(rgrad.ones(2, 2, dtype=rgrad.float16))
    with pytest.raises(RuntimeError, match="square matrices"):
        linalg.eigvals(rgrad.ones(2, 3))


PHASES: dict[str, Call] = {
    "linalg_eigh_backward": lambda a: linalg.eigh(hermitian(a))[1].sum().abs(),
    "linalg_eig_backward": lambda a: linalg.eig(a)[1].real.sum(),
    "svd_backward": lambda a: linalg.svd(a)[0].real.sum(),
}


@pytest.mark.parametrize("name", PHASES)
def test_gradients_that_depend_on_phases_are_refused(name: str) -> None:
    a = rgrad.tensor(numbers(3, 4, 4), requires_grad=True)
    with pytest.raises(RuntimeError, match=name):
        PHASES[name](a).backward()


def test_singular_complex_matrices_are_named() -> None:
    good = numbers(0, 3, 3)
    a = rgrad.tensor(np.stack([good, np.ones((3, 3)) * 1j]))
    with pytest.raises(linalg.LinAlgError, match="Batch element 1"):
        linalg.inv(a)
    with pytest.raises(linalg.LinAlgError, match="Batch element 1"):
        linalg.solve(a, a)
    with pytest.raises(linalg.LinAlgError, match="Batch element 0"):
        linalg.cholesky(a)
    assert linalg.inv_ex(a).info.tolist() == [0, 2]
    assert linalg.matrix_rank(a).tolist() == [3, 1]
    assert linalg.cond(a)[1] > 1e15
    assert linalg.slogdet(a).sign[1] == 0
    for value in (complex("nan"), complex(0, float("inf"))):
        bad = rgrad.full((4, 4), value, dtype=rgrad.complex128)
        for call in (linalg.eigh, linalg.svd, linalg.svdvals, linalg.eigvalsh):
            with pytest.raises(linalg.LinAlgError, match="failed to converge"):
                call(bad + bad.mH if call in (linalg.eigh, linalg.eigvalsh) else bad)


def test_real_parts_are_real() -> None:
    a = rgrad.tensor(numbers(0, 4, 3).astype(np.complex64))
    assert linalg.cond(a).dtype == rgrad.float32
    assert linalg.cond(rgrad.zeros(2, 0, 0, dtype=rgrad.complex64)).dtype == rgrad.float32
    made = linalg.lstsq(a, a[:, :1], driver="gelsd")
    assert (made.residuals.dtype, made.singular_values.dtype) == (rgrad.float32, rgrad.float32)
    assert linalg.matrix_norm(a, "nuc").dtype == rgrad.float32
    assert linalg.slogdet(rgrad.zeros(0, 0, dtype=rgrad.complex64)).logabsdet.dtype == rgrad.float32
    with pytest.raises(RuntimeError, match="Low precision"):
        linalg.inv(rgrad.zeros(2, 2, dtype=rgrad.complex32))


def test_exponentials() -> None:
    from scipy.linalg import expm

    for dtype in (rgrad.float32, rgrad.float64, rgrad.complex64, rgrad.complex128):
        for n in (1, 2, 5, 20):
            x = numbers(n, 3, n, n) * np.array([1e-3, 0.4, 5.0])[:, None, None] / n
            a = rgrad.tensor(x if dtype.is_complex else x.real.copy()).to(dtype)
            single = dtype in (rgrad.float32, rgrad.complex64)
            made, wide = linalg.matrix_exp(a), a.to(rgrad.complex128).numpy()
            assert made.dtype == dtype
            for one, wanted in zip(made, wide, strict=True):
                assert_close(one.to(rgrad.complex128), expm(wanted), 1e-5 if single else 1e-13)
            # A matrix does not depend on those beside it.
            assert (linalg.matrix_exp(a[1]) == made[1]).all()
    assert linalg.matrix_exp(rgrad.full((2, 2), float("nan"))).isnan().all()
