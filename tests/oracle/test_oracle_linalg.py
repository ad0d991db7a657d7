"""Linear algebra beside PyTorch: values, gradients of both orders, shapes, dtypes, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from linalg_cases import CASES, WITHOUT_SECOND, Call  # noqa: E402

pytestmark = pytest.mark.oracle
NAN, INF = float("nan"), float("inf")
SHAPES = [(4, 4), (2, 4, 4), (2, 1, 4, 4)]


def derivatives(T: Any, call: Call, x: np.ndarray, second: bool) -> list[np.ndarray]:
    a = T.tensor(x, requires_grad=True)
    y = call(T, a)
    weights = T.tensor(np.random.default_rng(1).normal(size=tuple(y.shape)))
    (g,) = T.autograd.grad((y * weights).sum(), a, create_graph=second)
    found = [y.detach().numpy(), g.detach().numpy()]
    if second:
        (h,) = T.autograd.grad((g * g.cos()).sum(), a)
        found.append(h.numpy())
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*CASES, *WITHOUT_SECOND])
def test_derivatives(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(len(name)).normal(size=shape)
    second = name in CASES
    call = CASES[name] if second else WITHOUT_SECOND[name]
    theirs = call
    if name.startswith("cond "):  # PyTorch's own backward fails: it writes to what it has saved
        order = 1 if name.endswith("1") else "fro"

        def theirs(T: Any, a: Any) -> Any:
            return T.linalg.matrix_norm(a, order) * T.linalg.matrix_norm(T.linalg.inv(a), order)

    wanted, got = derivatives(torch, theirs, x, second), derivatives(rgrad, call, x, second)
    for w, g in zip(wanted, got, strict=True):
        assert w.shape == g.shape
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(w).max()))


VALUES: dict[str, Callable[[Any], Any]] = {
    "rank": lambda T: T.linalg.matrix_rank(T.tensor([[1.0, 2], [2, 4], [0, 1e-9]])),
    "rank tol": lambda T: T.linalg.matrix_rank(T.tensor([[[1.0, 2], [2, 4.1]], [[0, 0], [0, 0]]]), tol=0.1),
    "rank hermitian": lambda T: T.linalg.matrix_rank(T.ones(3, 3), hermitian=True),
    "rank atol": lambda T: T.linalg.matrix_rank(T.eye(3) * 0.1, atol=1.0, rtol=0.0),
    "pinv singular": lambda T: T.linalg.pinv(T.ones(3, 2, dtype=T.float64)),
    "pinv hermitian": lambda T: T.linalg.pinv(T.tensor([[2.0, 1], [1, 2]]), hermitian=True),
    "pinv rtol": lambda T: T.linalg.pinv(T.tensor([[2.0, 0], [0, 0.1]]), rtol=0.1),
    "pinv empty": lambda T: T.linalg.pinv(T.ones(0, 3)),
    "lstsq gelsd": lambda T: T.linalg.lstsq(T.tensor([[1.0, 0], [1, 1], [1, 2]]), T.ones(3, 2), driver="gelsd"),
    "lstsq gels": lambda T: T.linalg.lstsq(T.tensor([[1.0, 0], [1, 1], [1, 3]]), T.arange(3.0)[:, None], driver="gels"),
    "lstsq gelss": lambda T: T.linalg.lstsq(T.tensor([[1.0, 0], [1, 1]]), T.ones(2, 1), driver="gelss"),
    "lstsq default": lambda T: T.linalg.lstsq(T.tensor([[1.0, 0], [1, 1], [1, 3]]), T.arange(3.0)[:, None]),
    "slogdet singular": lambda T: T.linalg.slogdet(T.ones(2, 2)),
    "det empty": lambda T: T.linalg.det(T.ones(0, 0)),
    "logdet negative": lambda T: T.logdet(T.tensor([[-1.0]])),
    "lu_factor": lambda T: T.linalg.lu_factor(T.tensor([[0.0, 1, 5], [2, 3, 1]])),
    "lu P": lambda T: T.linalg.lu(T.tensor([[0.0, 1], [2, 3], [4, 1]])),
    "lu without pivots": lambda T: T.lu_unpack(*T.linalg.lu_factor(T.tensor([[0.0, 1], [2, 3]]))),
    "lu old": lambda T: T.lu(T.tensor([[1.0, 2], [2, 4]]), get_infos=True)[2],
    "inv_ex singular": lambda T: T.linalg.inv_ex(T.zeros(2, 2)).info,
    "cholesky_ex": lambda T: T.linalg.cholesky_ex(T.tensor([[[1.0, 0], [0, -1]], [[4, 0], [0, 4]]])).info,
    "triangular_solve": lambda T: T.triangular_solve(T.ones(2, 1), T.tensor([[2.0, 1], [1, 4]]), transpose=True),
    "solve_triangular singular": lambda T: T.linalg.solve_triangular(T.zeros(1, 1), T.ones(1, 1), upper=True),
    "matrix_exp": lambda T: T.linalg.matrix_exp(T.tensor([[0.0, 30], [-30, 0]], dtype=T.float64)),
    "matrix_exp empty": lambda T: T.linalg.matrix_exp(T.ones(2, 0, 0)),
    "vander": lambda T: T.linalg.vander(T.tensor([1.0, 2, 3]), N=4),
    "vander of a batch": lambda T: T.linalg.vander(T.tensor([[1, 2, 3], [4, 5, 6]])),
    "vander of a number": lambda T: T.linalg.vander(T.tensor(3), N=3),
    "matrix_norm empty": lambda T: (T.linalg.matrix_norm(T.ones(2, 0), 2), T.linalg.matrix_norm(T.ones(2, 0), 1)),
    "vector_norm 0": lambda T: T.linalg.vector_norm(T.tensor([[0.0, 1], [2, 3]]), 0, 1),
    "vector_norm inf": lambda T: T.linalg.vector_norm(T.tensor([[0.0, -1], [2, 3]]), INF),
    "vector_norm dtype": lambda T: T.linalg.vector_norm(T.ones(3), dtype=T.float64),
    "vector_norm of number": lambda T: T.linalg.vector_norm(T.tensor(-3.0)),
    "norm vector": lambda T: T.linalg.norm(T.tensor([3.0, 4]), 1),
    "norm matrix": lambda T: T.linalg.norm(T.tensor([[3.0, 4], [1, 1]]), INF, dim=(1, 0)),
    "matrix_norm keepdim": lambda T: T.linalg.matrix_norm(T.ones(2, 3, 4), -1, (0, 2), True),
    "cond singular": lambda T: T.linalg.cond(T.ones(2, 2, dtype=T.float64), 1),
    "cond -2": lambda T: T.linalg.cond(T.tensor([[2.0, 0], [0, 4]]), -2),
    "cross ints": lambda T: T.linalg.cross(T.tensor([[1, 2, 3]]), T.tensor([[4, 5, 6], [7, 8, 9]])),
    "multi_dot pair": lambda T: T.linalg.multi_dot([T.ones(2), T.ones(2)]),
    "matrix_power 1": lambda T: T.linalg.matrix_power(T.ones(2, 2), 1),
    "eigh UPLO": lambda T: T.linalg.eigvalsh(T.tensor([[1.0, 5], [2, 3]]), "u"),
    "nuclear": lambda T: T.nuclear_norm(T.tensor([[3.0, 4], [1, 1]])),
    "frobenius": lambda T: T.frobenius_norm(T.tensor([[3.0, 4], [1, 1]]), dim=1),
    "qr r": lambda T: T.linalg.qr(T.ones(1, 1), mode="r")[0],
    "pinverse": lambda T: T.tensor([[2.0, 1], [1, 3]]).pinverse(),
    "inverse": lambda T: T.tensor([[2.0, 1], [1, 3]]).inverse(),
}


def flat(made: Any) -> list[Any]:
    return [x for part in made for x in flat(part)] if isinstance(made, (tuple, list)) else [made]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    wanted, got = (flat(VALUES[name](T)) for T in (torch, rgrad))
    for w, g in zip(wanted, got, strict=True):
        assert str(w.dtype).rpartition(".")[2] == str(g.dtype).rpartition(".")[2]
        assert tuple(w.shape) == tuple(g.shape)
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=2e-5, atol=1e-6)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "inv": (lambda T: T.linalg.inv(T.zeros(2, 2)), "singular"),
    "inv batch": (lambda T: T.linalg.inv(T.zeros(2, 2, 2)), "singular"),
    "inv shape": (lambda T: T.linalg.inv(T.ones(2, 3)), "batches of square matrices"),
    "inv vector": (lambda T: T.linalg.inv(T.ones(2)), "at least 2 dimensions"),
    "inv ints": (lambda T: T.linalg.inv(T.ones(2, 2).long()), "Long"),
    "inv half": (lambda T: T.linalg.inv(T.ones(2, 2).half()), "Low precision"),
    "solve": (lambda T: T.linalg.solve(T.zeros(2, 2), T.ones(2)), "singular"),
    "solve dtype": (lambda T: T.linalg.solve(T.eye(2), T.ones(2).double()), "same dtype"),
    "solve shape": (lambda T: T.linalg.solve(T.eye(2), T.ones(3, 1)), "Incompatible shapes"),
    "solve left": (lambda T: T.linalg.solve(T.eye(2), T.ones(2), left=False), "Incompatible shapes"),
    "triangular": (lambda T: T.linalg.solve_triangular(T.eye(2), T.ones(2), upper=True), "at least 2 dimensions"),
    "cholesky": (lambda T: T.linalg.cholesky(-T.eye(2)), "leading minor of order 1"),
    "cholesky batch": (lambda T: T.linalg.cholesky(T.stack([T.eye(2), -T.eye(2)])), "Batch element 1"),
    "lu_factor": (lambda T: T.linalg.lu_factor(T.zeros(2, 2)), "zero"),
    "qr mode": (lambda T: T.linalg.qr(T.ones(2, 2), "full"), "unrecognized mode"),
    "qr complete": (
        lambda T: T.linalg.qr(T.ones(3, 2, requires_grad=True), "complete")[0].sum().backward(),
        "complete",
    ),
    "eigh": (lambda T: T.linalg.eigh(T.ones(2, 3)), "square"),
    "eigh UPLO": (lambda T: T.linalg.eigh(T.ones(2, 2), "X"), "UPLO"),
    "lstsq driver": (lambda T: T.linalg.lstsq(T.ones(2, 2), T.ones(2, 2), driver="x"), "driver"),
    "lstsq dims": (lambda T: T.linalg.lstsq(T.ones(2, 2), T.tensor(1.0)), "dim"),
    "matrix_norm ord": (lambda T: T.linalg.matrix_norm(T.ones(2, 2), 3), "3"),
    "matrix_norm dims": (lambda T: T.linalg.matrix_norm(T.ones(2, 2), dim=(0, 0)), "different"),
    "matrix_norm vector": (lambda T: T.linalg.matrix_norm(T.ones(2)), "at least 2 dimensions"),
    "norm dims": (lambda T: T.linalg.norm(T.ones(2, 2, 2), 2), "1D or 2D"),
    "norm ints": (lambda T: T.linalg.norm(T.ones(2).long()), "floating point"),
    "vector_norm empty": (lambda T: T.linalg.vector_norm(T.ones(0), INF), "empty"),
    "multi_dot": (lambda T: T.linalg.multi_dot([T.ones(2)]), "at least 2"),
    "multi_dot sizes": (lambda T: T.linalg.multi_dot([T.ones(2, 2), T.ones(3, 2)]), "cannot be multiplied"),
    "cross": (lambda T: T.linalg.cross(T.ones(2), T.ones(2)), "length 3"),
    "matrix_power": (lambda T: T.linalg.matrix_power(T.ones(2, 3), 2), "square"),
    "tensorinv": (lambda T: T.linalg.tensorinv(T.ones(2, 3), 1), "prod"),
    "householder": (lambda T: T.linalg.householder_product(T.ones(2, 3), T.ones(2)), "greater than or equal"),
    "no tensor": (lambda T: T.linalg.inv([[1.0]]), "must be Tensor"),
    "out": (lambda T: T.linalg.inv(T.eye(2), out=T.ones(2, 2).double()), "dtype"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as theirs:
        call(torch)
    assert words in str(theirs.value)
    kind = next(k for k in (IndexError, TypeError, ValueError, RuntimeError) if isinstance(theirs.value, k))
    with pytest.raises(kind) as ours:
        call(rgrad)
    assert words in str(ours.value)
    assert isinstance(ours.value, rgrad.linalg.LinAlgError) == isinstance(theirs.value, torch.linalg.LinAlgError)
