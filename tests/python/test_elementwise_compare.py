"""Comparisons with NumPy's arrays and complex numbers, element by element; bool tensors over foreign bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad

ARRAYS = [
    np.array([1.0, 5.0, 3.0]),
    np.array([1, 5, 3], dtype=np.uint16),
    np.array([1, 5, 3], dtype=np.float16),
    np.array([1, 5, 3j]),
    np.array([True, False, True]),
    np.array(2.0),
    np.ones((2, 1)),
    np.array([[1], [2]], dtype=np.uint64),
]


def marked(array: np.ndarray) -> Any:
    """An array as a parameter; those of float64 are compared in it."""
    wide = pytest.mark.needs("float64") if array.dtype == np.float64 else ()
    return pytest.param(array, id=f"{array.dtype}{array.shape}", marks=wide)


@pytest.mark.parametrize("array", [marked(array) for array in ARRAYS])
def test_arrays(array: Any, device: Any) -> None:
    x = rgrad.tensor([1.0, 2.0, 3.0], device=device)
    want = np.array([1.0, 2.0, 3.0]) == array
    for equal, other in ((x == array, x != array), (array == x, array != x)):
        assert isinstance(equal, rgrad.Tensor)
        assert (equal.device, equal.dtype) == (x.device, rgrad.bool)
        assert equal.tolist() == want.tolist()
        assert other.tolist() == (~want).tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.uint16])
def test_shapes_must_fit(dtype: Any) -> None:
    with pytest.raises(RuntimeError, match="must match the size of tensor"):
        _ = rgrad.ones(3) == np.ones(4, dtype=dtype)


@pytest.mark.parametrize("number", [2 + 0j, 2 + 1j, complex("nan"), np.complex128(2), np.complex64(2j)])
def test_complex_numbers(number: Any, device: Any) -> None:
    for dtype in (rgrad.float32, rgrad.int64, rgrad.bool):
        x = rgrad.tensor([0, 1, 2], device=device).to(dtype)
        want = [complex(v) == complex(number) for v in x.tolist()]
        for equal in (x == number, number == x, rgrad.eq(x, complex(number)), x.eq(complex(number))):
            assert equal.tolist() == want
        for other in (x != number, number != x, rgrad.ne(x, complex(number)), x.ne(complex(number))):
            assert other.tolist() == [not w for w in want]
    with pytest.raises(NotImplementedError, match='"lt_cpu" not implemented for'):
        _ = x < 2j


def test_complex_numbers_are_seen_in_the_precision_of_the_tensor() -> None:
    x = rgrad.tensor([0.1])
    assert (x == complex(0.1)).tolist() == (x == 0.1).tolist()
    assert (x == complex(0.1, 1e-60)).tolist() == [True]
    assert (x.double() == complex(float(x[0]), 1e-60)).tolist() == [False]


def test_other_objects_are_asked_by_python() -> None:
    class Asked:
        __hash__ = None

        def __eq__(self, other: object) -> Any:
            return "asked"

    x: Any = rgrad.ones(2)
    assert (x == Asked()) == "asked"
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711 - the operator is what is tested


def foreign(n: int = 8) -> Any:
    """A bool tensor over bytes other than 0 and 1."""
    data = np.array([0, 1, 2, 255, 7, 0, 128, 1] * (n // 8), dtype=np.uint8)
    return rgrad.from_numpy(data.view(bool)), data != 0


FUNCTIONS: dict[str, Any] = {
    "sum": lambda m, x: x.sum(),
    "sum of a dimension": lambda m, x: x.reshape(2, -1).sum(1),
    "sum of columns": lambda m, x: x.reshape(2, -1).sum(0),
    "prod": lambda m, x: x[1:5].prod(),
    "any": lambda m, x: x.any(),
    "all": lambda m, x: x[1:5].all(),
    "max": lambda m, x: x.max(),
    "cumsum": lambda m, x: x.cumsum(0),
    "cumprod": lambda m, x: x[1:5].cumprod(0),
}


@pytest.mark.parametrize("n", [8, 80_000])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_foreign_bytes_of_bool(name: str, n: int) -> None:
    x, want = foreign(n)
    assert np.array_equal(FUNCTIONS[name](rgrad, x).numpy(), FUNCTIONS[name](np, want))
    assert np.array_equal(FUNCTIONS[name](rgrad, x.clone()).numpy(), FUNCTIONS[name](np, want))


def test_order_of_foreign_bytes_of_bool() -> None:
    x, want = foreign()
    values, positions = x.sort(stable=True)
    assert values.tolist() == sorted(want.tolist())
    assert positions.tolist() == np.argsort(want, kind="stable").tolist()
    assert x.reshape(2, 4).max(1).indices.tolist() == [1, 0]
    assert x.mode().values.item() is True
    assert x.cummax(0).indices.tolist() == [0, 1, 2, 3, 4, 4, 6, 7]
