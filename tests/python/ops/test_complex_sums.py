"""Reductions and scans of complex numbers: values beside NumPy's, derivatives of both orders, tangents, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from complex_pairs import conjugate_gradient, derivatives_hold, numbers

Function = Callable[[Any], Any]


def log_cumulative(a: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.log(np.cumsum(np.exp(a), axis)))


def spread(a: np.ndarray, axis: Any = None, ddof: int = 1) -> np.ndarray:
    return np.asarray(a.real.var(axis, ddof=ddof) + a.imag.var(axis, ddof=ddof))


CASES: dict[str, tuple[Function, Function]] = {
    "sum": (lambda x: x.sum(), lambda a: a.sum()),
    "sum along": (lambda x: x.sum(1, keepdim=True), lambda a: a.sum(1, keepdims=True)),
    "sum of first": (lambda x: x.sum((0, 2)), lambda a: a.sum((0, 2))),
    "mean": (lambda x: x.mean(-1), lambda a: a.mean(-1)),
    "prod": (lambda x: x.prod(), lambda a: a.prod()),
    "prod along": (lambda x: x.prod(1), lambda a: a.prod(1)),
    "cumsum": (lambda x: x.cumsum(1), lambda a: a.cumsum(1)),
    "cumsum of rows": (lambda x: x.cumsum(-1), lambda a: a.cumsum(-1)),
    "cumprod": (lambda x: x.cumprod(1), lambda a: a.cumprod(1)),
    "logsumexp": (lambda x: x.logsumexp((1, 2)), lambda a: np.log(np.exp(a).sum((1, 2)))),
    "logsumexp kept": (lambda x: x.logsumexp(0, keepdim=True), lambda a: np.log(np.exp(a).sum(0, keepdims=True))),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), lambda a: log_cumulative(a, 1)),
    "var": (lambda x: x.var(1), lambda a: spread(a, 1)),
    "var of all": (lambda x: x.var(correction=0), lambda a: spread(a, ddof=0)),
    "std": (lambda x: x.std((0, 1)), lambda a: np.sqrt(spread(a, (0, 1)))),
    "norm": (lambda x: x.norm(), lambda a: np.sqrt((np.abs(a) ** 2).sum())),
    "norm kept": (
        lambda x: x.norm(2, (0, 2), keepdim=True),
        lambda a: np.sqrt((np.abs(a) ** 2).sum((0, 2), keepdims=True)),
    ),
    "norm of order 1": (lambda x: x.norm(1, -1), lambda a: np.abs(a).sum(-1)),
    "norm of order 3": (lambda x: x.norm(3, 1), lambda a: (np.abs(a) ** 3).sum(1) ** (1 / 3)),
    "norm of order half": (lambda x: x.norm(0.5, 1), lambda a: (np.abs(a) ** 0.5).sum(1) ** 2),
    "largest": (lambda x: x.norm(np.inf, 1), lambda a: np.abs(a).max(1)),
    "matrix norm": (lambda x: rgrad.linalg.matrix_norm(x, 1), lambda a: np.abs(a).sum(1).max(1)),
    "dist": (lambda x: rgrad.dist(x[0], x[1]), lambda a: np.sqrt((np.abs(a[0] - a[1]) ** 2).sum())),
    "trace": (lambda x: x[:, 0, :2].trace(), lambda a: np.trace(a[:, 0, :2])),
    "nansum of parts": (lambda x: rgrad.view_as_real(x).nansum(), lambda a: a.real.sum() + a.imag.sum()),
}
GIVEN = numbers(2, 4, 3)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    ours, theirs = CASES[name]
    for kind, tolerance in (("complex128", 1e-12), ("complex64", 1e-5)):
        a = GIVEN.astype(kind)
        wanted = np.asarray(theirs(a))
        for x in (
            rgrad.tensor(a),
            rgrad.tensor(a.transpose(2, 0, 1).copy()).permute(1, 2, 0),
            rgrad.tensor(a.repeat(2, 2))[..., ::2],
        ):
            made = ours(x)
            assert tuple(made.shape) == wanted.shape
            assert str(made.dtype) == f"rgrad.{wanted.dtype}"
            np.testing.assert_allclose(made.numpy(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    function = CASES[name][0]
    derivatives_hold(function, [GIVEN])
    conjugate_gradient(function, [GIVEN])


def test_products_with_zeros() -> None:
    a = numbers(3, 3)
    a[0, 1] = a[1, 0] = a[1, 2] = 0
    for function in (lambda x: x.prod(1), lambda x: x.cumprod(1), lambda x: x.prod()):
        conjugate = [rgrad.tensor(a, requires_grad=True)]
        made = function(conjugate[0])
        (grad,) = rgrad.autograd.grad(made.sum().real, conjugate)
        assert np.isfinite(grad.numpy()).all()
        derivatives_hold(function, [a])


@pytest.mark.parametrize("shape", [(100_003,), (3, 50_001), (50_001, 3), (300, 7, 40)])
def test_many_elements(shape: tuple[int, ...]) -> None:
    a = numbers(*shape)
    for kind, tolerance in (("complex128", 1e-11), ("complex64", 1e-4)):
        b = a.astype(kind)
        x = rgrad.tensor(b)
        for dim in range(len(shape)):
            np.testing.assert_allclose(x.sum(dim).numpy(), a.sum(dim), rtol=tolerance, atol=10 * tolerance)
            np.testing.assert_allclose(x.cumsum(dim).numpy(), a.cumsum(dim), rtol=tolerance, atol=10 * tolerance)
            np.testing.assert_allclose(x.norm(2, dim).numpy(), np.linalg.norm(a, axis=dim), rtol=tolerance)
        np.testing.assert_allclose((x / x.abs()).prod().abs().item(), 1, rtol=1e-2)


def test_truth() -> None:
    x = rgrad.tensor([[0j, 1j], [-0.0 + 0j, 2]])
    assert x.any(1).tolist() == [True, True]
    assert x.all(0).tolist() == [False, True]
    assert x.count_nonzero().item() == 2
    assert x.nonzero().tolist() == [[0, 1], [1, 1]]
    assert (x * -1).count_nonzero(0).tolist() == [0, 2]


def test_infinities_of_logarithms() -> None:
    low = complex(-np.inf, 0)
    x = rgrad.tensor([low, low, 1 + 1j, low, complex(np.nan, 0), 1j])
    made = x.logcumsumexp(0).numpy()
    assert np.isneginf(made[:2].real).all()
    np.testing.assert_allclose(made[2:4], 1 + 1j, rtol=1e-6)
    assert np.isnan(made[4:]).all()
    assert rgrad.tensor([low, low]).logsumexp(0).real.item() == -np.inf


def test_dtypes() -> None:
    x = rgrad.tensor([1.0, 2.0])
    for made in (x.sum(dtype=rgrad.complex64), x.mean(dtype=rgrad.complex64), x.prod(dtype=rgrad.complex64)):
        assert made.dtype == rgrad.complex64
    assert rgrad.var_mean(rgrad.tensor([1j, 2.0]))[1].dtype == rgrad.complex64
    assert rgrad.var_mean(rgrad.tensor([1j, 2.0]))[0].dtype == rgrad.float32


REFUSED: dict[str, tuple[Function, type[Exception], str]] = {
    "max": (lambda x: x.max(), NotImplementedError, '"max_all" not implemented for .ComplexDouble'),
    "max along": (lambda x: x.max(0), RuntimeError, "does not support complex input"),
    "amin": (lambda x: x.amin(0), NotImplementedError, '"min_values_cpu" not implemented'),
    "aminmax": (lambda x: x.aminmax(), NotImplementedError, '"aminmax_cpu" not implemented'),
    "argmax": (lambda x: x.argmax(), RuntimeError, "does not support complex input"),
    "sort": (lambda x: x.sort(), RuntimeError, "Sort does not support complex dtypes"),
    "argsort": (lambda x: x.argsort(), RuntimeError, "Sort does not support complex dtypes"),
    "topk": (lambda x: x.topk(1), RuntimeError, "topk does not support complex dtypes"),
    "median": (lambda x: x.median(), NotImplementedError, '"median_cpu" not implemented'),
    "median along": (lambda x: x.median(0), NotImplementedError, '"median_out" not implemented'),
    "mode": (lambda x: x.mode(), NotImplementedError, '"mode_cpu" not implemented'),
    "kthvalue": (lambda x: x.kthvalue(1), NotImplementedError, '"kthvalue_cpu" not implemented'),
    "cummax": (lambda x: x.cummax(0), NotImplementedError, '"cummax_cpu" not implemented'),
    "unique": (lambda x: x.unique(), NotImplementedError, '"unique" not implemented'),
    "unique along": (lambda x: x.unique(dim=0), NotImplementedError, '"unique_dim" not implemented'),
    "nansum": (lambda x: x.nansum(), RuntimeError, "does not support complex inputs"),
    "quantile": (lambda x: x.quantile(0.5), RuntimeError, "must be either float or double dtype"),
    "norm of real dtype": (
        lambda x: rgrad.linalg.vector_norm(x, dtype=rgrad.float64),
        RuntimeError,
        "should be complex for complex inputs",
    ),
    "least at positions": (
        lambda x: x.scatter_reduce(0, rgrad.tensor([[0]]), x, "amin"),
        NotImplementedError,
        "reduce_amin",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        function(rgrad.tensor(numbers(2, 2)))
