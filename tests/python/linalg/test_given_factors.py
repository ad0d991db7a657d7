"""Solutions and inverses from a Cholesky factor that is given, and nuclear norms: both derivatives, batches, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import linalg
from rgrad.autograd import gradcheck, gradgradcheck

BATCHES: list[tuple[int, ...]] = [(), (2,), (2, 1)]


def factor(*batch: int) -> Any:
    """Matrices with both triangles, one of which is read."""
    made = np.random.default_rng(3).normal(size=(*batch, 3, 3)) + 3 * np.eye(3)
    return rgrad.tensor(made, requires_grad=True)


def triangle(L: Any, upper: bool) -> np.ndarray:
    values = L.detach().numpy()
    return np.swapaxes(np.triu(values), -1, -2) if upper else np.tril(values)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_inverses(batch: tuple[int, ...], upper: bool) -> None:
    L = factor(*batch)
    lower = triangle(L, upper)
    wanted = np.linalg.inv(lower @ np.swapaxes(lower, -1, -2))
    np.testing.assert_allclose(rgrad.cholesky_inverse(L, upper).detach().numpy(), wanted, rtol=1e-9)
    assert gradcheck(lambda x: rgrad.cholesky_inverse(x, upper=upper), L, check_forward_ad=True)
    assert gradgradcheck(lambda x: rgrad.cholesky_inverse(x, upper=upper), L)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("one_side", [False, True], ids=["batches", "one right side for all"])
def test_solutions(batch: tuple[int, ...], upper: bool, one_side: bool) -> None:
    L = factor(*batch)
    sides = np.random.default_rng(4).normal(size=(*(() if one_side else batch), 3, 2))
    B = rgrad.tensor(sides, requires_grad=True)
    lower = triangle(L, upper)
    wanted = np.linalg.inv(lower @ np.swapaxes(lower, -1, -2)) @ sides
    np.testing.assert_allclose(rgrad.cholesky_solve(B, L, upper=upper).detach().numpy(), wanted, rtol=1e-9)
    assert gradcheck(lambda b, x: rgrad.cholesky_solve(b, x, upper), (B, L), check_forward_ad=True)
    assert gradgradcheck(lambda b, x: rgrad.cholesky_solve(b, x, upper), (B, L))


@pytest.mark.parametrize("upper", [False, True])
def test_the_other_triangle_has_no_gradient(upper: bool) -> None:
    L = factor(2)
    (grad,) = rgrad.autograd.grad(rgrad.cholesky_inverse(L, upper).sum(), L)
    assert (grad.tril(-1) if upper else grad.triu(1)).eq(0).all()
    assert (grad.triu() if upper else grad.tril()).ne(0).any()


def test_a_zero_on_the_diagonal() -> None:
    with pytest.raises(linalg.LinAlgError, match=r"cholesky_inverse: The diagonal element 1 is zero"):
        rgrad.cholesky_inverse(rgrad.zeros(2, 2))
    singular = rgrad.stack([rgrad.eye(2), rgrad.tensor([[1.0, 0.0], [2.0, 0.0]])])
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        rgrad.cholesky_inverse(singular, upper=True)
    assert rgrad.cholesky_inverse(rgrad.ones(0, 2, 2)).shape == (0, 2, 2)
    assert rgrad.func.vmap(rgrad.cholesky_inverse)(singular)[0].equal(rgrad.eye(2))


@pytest.mark.parametrize("dtype", [rgrad.float16, rgrad.bfloat16, rgrad.int64, rgrad.bool], ids=str)
def test_other_dtypes_are_refused(dtype: Any) -> None:
    L = rgrad.eye(2).to(dtype)
    with pytest.raises(NotImplementedError, match="cholesky_solve_cpu"):
        rgrad.cholesky_solve(L, L)
    with pytest.raises(NotImplementedError, match="cholesky_inverse_out_cpu"):
        rgrad.cholesky_inverse(L)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [(0, 1), (1, 0), (0, 2), (-1, 0), (2, 1)], ids=str)
def test_nuclear_norms(dim: tuple[int, int], keepdim: bool) -> None:
    values = np.random.default_rng(5).normal(size=(2, 3, 4))
    x = rgrad.tensor(values, requires_grad=True)
    made = linalg.norm(x, "nuc", dim, keepdim)
    wanted = np.linalg.norm(values, "nuc", dim, keepdims=keepdim)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made.detach().numpy(), wanted)
    assert linalg.matrix_norm(x, "nuc", dim, keepdim).equal(made)
    assert gradcheck(lambda a: linalg.norm(a, "nuc", dim, keepdim), x, check_forward_ad=True)
    assert gradgradcheck(lambda a: linalg.norm(a, "nuc", dim, keepdim), x)


@pytest.mark.parametrize(
    "call", [lambda x, **o: linalg.norm(x, "nuc", **o), rgrad.nuclear_norm], ids=["norm", "nuclear_norm"]
)
def test_nuclear_norms_of_one_matrix(call: Any) -> None:
    x = rgrad.tensor([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]], requires_grad=True)
    made = call(x)
    made.backward()
    assert made.item() == pytest.approx(7.0)
    np.testing.assert_allclose(x.grad.numpy(), [[1, 0, 0], [0, -1, 0]], atol=1e-6)  # type: ignore[union-attr]
    assert call(x, keepdim=True).shape == (1, 1)
    assert call(rgrad.ones(0, 3)).item() == 0


def test_nuclear_norms_by_the_older_name() -> None:
    x = rgrad.arange(12.0, dtype=rgrad.float64).view(2, 2, 3)
    assert rgrad.norm(x, "nuc", dim=(1, 2)).equal(linalg.matrix_norm(x, "nuc"))
    assert x[0].norm("nuc", keepdim=True).equal(linalg.matrix_norm(x[0], "nuc", keepdim=True))
    with pytest.raises(RuntimeError, match="Expected a tensor with 2 dimensions, but got a tensor with 3 dimensions"):
        x.norm("nuc")
    with pytest.raises(ValueError, match="dtype is not supported"):
        x[0].norm("nuc", dtype=rgrad.float32)
