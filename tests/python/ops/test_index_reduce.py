"""`index_reduce` in all kinds, with and without the elements that were there: values, derivatives, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad

KINDS: dict[str, Callable[[list[float]], float]] = {
    "prod": lambda given: float(np.prod(given)),
    "mean": lambda given: float(np.mean(given)),
    "amax": max,
    "amin": min,
}
INDEX = [2, 0, 2, 1, 2]
X = np.array([[1.5, -2.0, 0.5], [3.0, 1.0, -1.5], [2.5, 2.0, 4.0], [7.0, 8.0, 9.0]])
SOURCE = np.array([[0.5, 3.0, 1.0], [-1.0, 2.5, 2.0], [1.25, -3.5, 6.0], [0.75, 5.0, -0.5], [2.0, 1.75, -7.0]])


def expected(kind: str, include: bool) -> np.ndarray:
    made = X.copy()
    for row in set(INDEX):
        for column in range(X.shape[1]):
            given = [SOURCE[k, column] for k, at in enumerate(INDEX) if at == row]
            made[row, column] = KINDS[kind]([X[row, column], *given] if include else given)
    return made


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind: str, include: bool, device: str) -> None:
    wanted = expected(kind, include)
    index = rgrad.tensor(INDEX, device=device)
    x, source = (rgrad.tensor(a, dtype=rgrad.float32, device=device) for a in (X, SOURCE))
    for at in (index, index.to(rgrad.int32)):
        made = x.index_reduce(0, at, source, kind, include_self=include)
        np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-6)
        columns = x.T.index_reduce(-1, at, source.T, kind, include_self=include)
        np.testing.assert_allclose(columns.T.cpu().numpy(), wanted, rtol=1e-6)
        assert rgrad.index_reduce(x, 0, at, source, kind, include_self=include).equal(made)
    assert x.index_reduce_(0, index, source, kind, include_self=include) is x
    np.testing.assert_allclose(x.cpu().numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind: str, include: bool) -> None:
    leaves = tuple(rgrad.tensor(a, requires_grad=True) for a in (X, SOURCE))

    def function(x: Any, source: Any) -> Any:
        return x.index_reduce(0, rgrad.tensor(INDEX), source, kind, include_self=include)

    assert rgrad.autograd.gradcheck(function, leaves, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers(kind: str, include: bool) -> None:
    """A tensor without dimensions has one position, 0."""
    wanted = KINDS[kind]([2.0, 3.0] if include else [3.0])
    for index in (rgrad.tensor(0), rgrad.tensor([0])):
        x, source = rgrad.tensor(2.0, requires_grad=True), rgrad.tensor(3.0, requires_grad=True)
        made = x.index_reduce(0, index, source, kind, include_self=include)
        assert made.shape == ()
        assert made.item() == wanted
        made.backward()
        assert source.grad is not None
    assert rgrad.ones(3).index_reduce(0, rgrad.tensor(1), rgrad.zeros(1), "amin").tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="shape must match"):
        rgrad.ones(()).index_reduce(0, rgrad.tensor([0]), rgrad.ones(1), kind, include_self=include)
    nothing = rgrad.empty(0, dtype=rgrad.int64)
    assert rgrad.ones(3).index_reduce(0, nothing, rgrad.empty(0), kind, include_self=include).tolist() == [1.0] * 3


@pytest.mark.parametrize("include", [True, False])
def test_equal_extremes_share_the_gradient(include: bool) -> None:
    x, source = (rgrad.ones(2, requires_grad=True) for _ in range(2))
    x.index_reduce(0, rgrad.tensor([0, 0]), source, "amax", include_self=include).sum().backward()
    share = 1 / 3 if include else 1 / 2
    assert x.grad is not None
    assert source.grad is not None
    assert x.grad.tolist() == pytest.approx([share if include else 0.0, 1.0])
    assert source.grad.tolist() == pytest.approx([share, share])


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (
            RuntimeError,
            "Expected reduce to be one of prod, mean, amax or amin but got sum",
            lambda x, i, s: (x, 0, i, s, "sum"),
        ),
        (IndexError, "Dimension out of range", lambda x, i, s: (x, 2, i, s, "mean")),
        (IndexError, "out of range in self", lambda x, i, s: (x[:2], 0, i, s, "mean")),
        (RuntimeError, "Number of indices", lambda x, i, s: (x, 0, i[:2], s, "mean")),
        (IndexError, "vector", lambda x, i, s: (x, 0, i[None], s, "mean")),
        (RuntimeError, "shape must match", lambda x, i, s: (x, 0, i, s[:, :2], "mean")),
        (RuntimeError, "dtype", lambda x, i, s: (x, 0, i, s.double(), "mean")),
        (RuntimeError, "dtype int32/int64", lambda x, i, s: (x, 0, i.float(), s, "mean")),
        (TypeError, "argument 'source'", lambda x, i, s: (x, 0, i, 1.0, "mean")),
    ],
)
def test_errors(error: type[Exception], match: str, call: Any) -> None:
    x, source = (rgrad.tensor(a, dtype=rgrad.float32) for a in (X, SOURCE))
    before = x.tolist()
    input, *rest = call(x, rgrad.tensor(INDEX), source)
    for function in (rgrad.index_reduce, rgrad.Tensor.index_reduce_):
        with pytest.raises(error, match=match):
            function(input, *rest)
    assert x.tolist() == before


def test_truth_values() -> None:
    x, source, index = rgrad.tensor([True, False]), rgrad.tensor([False, False]), rgrad.tensor([0, 0])
    assert x.index_reduce(0, index, source, "amin").tolist() == [False, False]
    with pytest.raises(NotImplementedError, match="Bool"):
        x.index_reduce(0, index, source, "mean")
    with pytest.raises(NotImplementedError, match="Bool"):
        x.index_reduce(0, index, source, "amax", include_self=False)
