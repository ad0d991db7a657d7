"""Einstein summation with lists of subscripts in place of an equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4) - 5
C = np.arange(24.0).reshape(2, 4, 3) / 7
ROW = np.arange(3.0).reshape(1, 3) + 1

CALLS: dict[str, tuple[Any, ...]] = {
    "product": (A, [0, 1], B, [1, 2], [0, 2]),
    "product without a result": (A, [0, 1], B, [1, 2]),
    "result in another order": (A, [0, 1], B, [1, 2], [2, 0]),
    "no order of integers": (A, [7, 1], B, [1, 2]),
    "capital letters come first": (A, [30, 20]),
    "tuples": (A, (0, 1), B, (1, 2), (0, 2)),
    "a range": (A, range(2), B, range(1, 3)),
    "transposed": (A, [0, 1], [1, 0]),
    "all summed": (A, [0, 1], []),
    "a diagonal": (C[:, :2, 0], [3, 3], [3]),
    "a trace": (C[:, :2, 0], [3, 3]),
    "the last letters": (A, [51, 50], B, [50, 25]),
    "three operands": (A, [0, 1], B, [1, 2], C, [0, 2, 3], [3]),
    "other dimensions": (C, [..., 1], B, [1, 2], [..., 2]),
    "other dimensions without a result": (C, [..., 1], B, [1, 2]),
    "other dimensions last": (C, [0, ...], A, [0, 5], [5, ...]),
    "other dimensions of both": (C, [..., 1], ROW, [..., 1], [..., 1]),
    "other dimensions alone": (C, [...], ROW, [...], [...]),
    "a size of 1": (ROW, [0, 1], A, [0, 1], [0, 1]),
    "a size of 1 that is summed": (ROW, [0, 1], A, [0, 1], [1]),
    "a size of 1 in the product": (ROW.T, [0, 1], C[:, :, 0], [1, 2], [0, 2]),
    "numbers": (np.array(2.0), [], np.array(3.0), []),
}


def tensors(args: tuple[Any, ...], device: str, **options: Any) -> list[Any]:
    return [rgrad.tensor(x, device=device, **options) if isinstance(x, np.ndarray) else x for x in args]


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str, device: str) -> None:
    made = rgrad.einsum(*tensors(CALLS[name], device, dtype=rgrad.float32))
    wanted = np.einsum(*CALLS[name])
    assert made.device.type == rgrad.device(device).type
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_derivatives(name: str) -> None:
    given = tensors(CALLS[name], "cpu", requires_grad=True)
    leaves = [x for x in given if isinstance(x, rgrad.Tensor)]

    def function(*now: Any) -> Any:
        operands = iter(now)
        return rgrad.einsum(*(next(operands) if isinstance(x, rgrad.Tensor) else x for x in given)) ** 2

    assert rgrad.autograd.gradcheck(function, leaves, check_forward_ad=True)
    assert rgrad.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize(
    ("error", "match", "args"),
    [
        (ValueError, "must specify the equation string and at least one operand", ()),
        (ValueError, "must specify the equation string and at least one operand", (A,)),
        (ValueError, "must specify the equation string and at least one operand", ("ij",)),
        (ValueError, r"not within the valid range \[0, 52\): got 52 for operand 0", (A, [0, 52])),
        (ValueError, r"not within the valid range \[0, 52\): got -1 for the output", (A, [0, 1], [-1])),
        (TypeError, "a subscript of operand 1 must be an integer or Ellipsis, not float", (A, [0, 1], B, [1, 2.0])),
        (TypeError, "the subscripts of operand 0 must be a list of integers and Ellipsis, not str", (A, "ij")),
        (TypeError, "take turns", (A, 3)),
        (TypeError, "argument 'operands' must be Tensor, not int", (A, [0, 1], 3, [1, 2])),
        (TypeError, "argument 'equation'", (3, A)),
        (RuntimeError, "does not match the number of dimensions", (A, [0])),
        (RuntimeError, "does not broadcast", (A, [0, 1], A, [1, 2])),
        (RuntimeError, "output subscript A appears more than once", (A, [0, 1], [0, 0])),
        (RuntimeError, "output subscript C does not appear", (A, [0, 1], [2])),
        (RuntimeError, "an ellipsis was already found", (A, [..., ...])),
    ],
)
def test_errors(error: type[Exception], match: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(error, match=rf"einsum\(\).*{match}"):
        rgrad.einsum(*tensors(args, "cpu"))


class Asked(rgrad.Tensor):
    """Answers with what it is asked about."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, args, kwargs


def test_a_handler_gets_an_equation() -> None:
    x, y = rgrad.tensor(A).as_subclass(Asked), rgrad.tensor(B)
    func, (equation, *operands), _ = rgrad.einsum(x, [0, 1], y, [1, ...], [..., 0])  # type: ignore[misc]
    assert func is rgrad.einsum
    assert equation == "AB,B...->...A"
    assert operands[0] is x
    assert operands[1] is y


def test_operands_as_one_list() -> None:
    x, y = tensors((A, B), "cpu")
    assert rgrad.einsum("ij,jk->ik", [x, y]).equal(x @ y)
    assert rgrad.einsum("ij,jk->ik", (x, y)).equal(x @ y)
