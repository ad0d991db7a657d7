"""Tensors without dimensions where functions of the Python layer take numbers or dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import linalg

# Of a matrix and a number from 1 to 3.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "norm": lambda x, n: linalg.norm(x, n),
    "norm along": lambda x, n: linalg.norm(x, 2, dim=n - 1),
    "norm of columns": lambda x, n: linalg.norm(x, n, dim=0),
    "matrix_norm": lambda x, n: linalg.matrix_norm(x, n),
    "vector_norm along": lambda x, n: linalg.vector_norm(x, 2, dim=n - 1),
    "cond": lambda x, n: linalg.cond(x, n),
    "gradient": lambda x, n: rgrad.gradient(x, spacing=n)[0],
    "fill_diagonal_": lambda x, n: x.clone().fill_diagonal_(n),
    "pinverse": lambda x, n: rgrad.pinverse(x, n / 100),
    "histc": lambda x, n: rgrad.histc(x, 2, 0, n),
    "matrix_power": lambda x, n: linalg.matrix_power(x, n),
    "mvlgamma": lambda x, n: rgrad.mvlgamma(x + 3, n),
}
INTEGERS = {"norm along", "vector_norm along", "matrix_power", "mvlgamma"}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_stands_for_its_number(name: str, device: str) -> None:
    x = rgrad.tensor([[1.0, 2.0], [3.0, 5.0]], device=device)
    wanted = CALLS[name](x, 1)
    assert CALLS[name](x, rgrad.tensor(1, device=device)).equal(wanted)
    if name in INTEGERS:
        with pytest.raises(TypeError):
            CALLS[name](x, rgrad.tensor(1.5, device=device))
    else:
        assert CALLS[name](x, rgrad.tensor(1.0, device=device)).equal(wanted)


@pytest.mark.parametrize("name", ["norm", "cond", "fill_diagonal_", "gradient"])
@pytest.mark.parametrize("number", [rgrad.tensor([1.0]), rgrad.tensor([1.0, 2.0])], ids=["one element", "two"])
def test_a_tensor_with_dimensions_does_not(name: str, number: Any) -> None:
    with pytest.raises(TypeError, match="argument"):
        CALLS[name](rgrad.eye(2), number)


@pytest.mark.parametrize("name", ["norm", "cond", "fill_diagonal_"])
def test_a_gradient_is_not_lost(name: str) -> None:
    with pytest.raises(TypeError, match="not Tensor"):
        CALLS[name](rgrad.eye(2), rgrad.tensor(1.0, requires_grad=True))


@pytest.mark.parametrize("function", [linalg.norm, linalg.vector_norm, linalg.matrix_norm])
@pytest.mark.parametrize("dim", [1.0, "0", rgrad.tensor([0, 1])], ids=["float", "str", "tensor"])
def test_other_dimensions_are_refused(function: Any, dim: Any) -> None:
    with pytest.raises(TypeError, match=r"argument 'dim' must be (int or )?tuple of (two )?ints, not"):
        function(rgrad.ones(2, 2), dim=dim, ord=2)
