"""Linear algebra by itself: values from NumPy, numeric derivatives of both orders, tangents, batches, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.linalg as linalg
from linalg_cases import CASES, WITHOUT_SECOND

ALL = CASES | WITHOUT_SECOND
# They mix the elements of a batch.
NO_BATCH = {"multi_dot", "tensorsolve", "tensorinv", "norm", "matrix_norm -inf"}


def square(seed: int, *batch: int) -> np.ndarray:
    # Away from where values are equal, so that differences are good.
    return np.random.default_rng(seed).normal(size=(*batch, 4, 4)) + 2 * np.diag([1.0, 2, 3, 4])


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    leaf = rgrad.tensor(square(len(name)), requires_grad=True)

    def function(a: Any) -> Any:
        return ALL[name](rgrad, a)

    assert rgrad.autograd.gradcheck(function, leaf, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(function, leaf)


@pytest.mark.parametrize("name", [name for name in ALL if name not in NO_BATCH])
def test_batches(name: str) -> None:
    """A batch of matrices, vmap over it and a loop agree; so do gradients under vmap, and both modes."""
    x = rgrad.tensor(square(1, 3))

    def function(a: Any) -> Any:
        return ALL[name](rgrad, a)

    one_by_one = np.stack([function(m).numpy() for m in x])
    np.testing.assert_allclose(function(x).numpy(), one_by_one, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rgrad.func.vmap(function)(x).numpy(), one_by_one, rtol=1e-9, atol=1e-12)

    def total(a: Any) -> Any:
        return function(a).sum()

    slopes = rgrad.func.vmap(rgrad.func.grad(total))(x)
    tangent = rgrad.func.jvp(total, (x[1],), (rgrad.ones_like(x[1]),))[1]
    np.testing.assert_allclose(tangent.item(), slopes[1].sum().item(), rtol=1e-8, atol=1e-9)


def test_values_and_devices(device: str) -> None:
    x = square(0).astype(np.float32)
    a = rgrad.tensor(x, device=device, requires_grad=True)
    made = linalg.inv(a)
    assert made.device == a.device
    np.testing.assert_allclose(made.detach().cpu().numpy(), np.linalg.inv(x), rtol=1e-4, atol=1e-5)
    made.sum().backward()
    inverse = np.linalg.inv(x).T
    np.testing.assert_allclose(a.grad.cpu().numpy(), -inverse @ np.ones((4, 4)) @ inverse, rtol=1e-3, atol=1e-5)
    for got, wanted in zip(linalg.slogdet(a.detach()), np.linalg.slogdet(x), strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), wanted, rtol=1e-5)
    L, U = (t.cpu().numpy() for t in rgrad.linalg.lu(a.detach())[1:])
    P = rgrad.linalg.lu(a.detach()).P.cpu().numpy()
    np.testing.assert_allclose(P @ L @ U, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (0, 3), (3, 0)], ids=str)
def test_factors_give_the_matrix(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    a = rgrad.tensor(x)
    for mode in ("reduced", "complete"):
        Q, R = linalg.qr(a, mode)
        np.testing.assert_allclose((Q @ R).numpy(), x, atol=1e-12)
    U, S, Vh = linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(((U * S.unsqueeze(-2)) @ Vh).numpy(), x, atol=1e-12)
    P, L, U = linalg.lu(a)
    np.testing.assert_allclose((P @ L @ U).numpy(), x, atol=1e-12)


@pytest.mark.parametrize("n", [1, 31, 33, 70])
def test_triangular_systems_of_many_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(n, n)) / n + 2 * np.eye(n), rng.normal(size=(n, 3))
    for upper in (True, False):
        part = np.triu(A) if upper else np.tril(A)
        got = linalg.solve_triangular(rgrad.tensor(A), rgrad.tensor(B), upper=upper).numpy()
        np.testing.assert_allclose(part @ got, B, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_the_determinant_of_singular_matrices_has_a_gradient(rank: int) -> None:
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 4))
    a = rgrad.tensor(x, requires_grad=True)
    linalg.det(a).backward()
    minors = [
        [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(4)] for i in range(4)
    ]
    np.testing.assert_allclose(a.grad.numpy(), minors, atol=1e-12)


def test_the_determinant_of_singular_small_matrices_has_second_derivatives() -> None:
    for n in (1, 2, 3):
        leaf = rgrad.tensor(np.ones((n, n)), requires_grad=True)
        assert rgrad.autograd.gradgradcheck(linalg.det, leaf)


def test_inputs_are_left_alone() -> None:
    x = square(3)
    a = rgrad.tensor(x)
    for call in ALL.values():
        call(rgrad, a)
    assert (a.numpy() == x).all()
    with pytest.raises(linalg.LinAlgError):
        linalg.inv(rgrad.zeros(2, 2))


def test_least_squares_of_low_rank() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(6, 3))
    wanted = np.linalg.lstsq(A, B, rcond=None)[0]
    made = linalg.lstsq(rgrad.tensor(A), rgrad.tensor(B), driver="gelsd")
    np.testing.assert_allclose(made.solution.numpy(), wanted, atol=1e-12)
    assert made.rank.item() == 2
    assert made.residuals.numel() == 0


def test_exponentials_of_large_and_small_matrices() -> None:
    angle = 40.0
    a = rgrad.tensor([[[0.0, angle], [-angle, 0.0]], [[1e-9, 0.0], [0.0, -1e-9]]], dtype=rgrad.float64)
    wanted = [[[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]], [[1 + 1e-9, 0], [0, 1 - 1e-9]]]
    np.testing.assert_allclose(linalg.matrix_exp(a).numpy(), wanted, atol=2e-12)
