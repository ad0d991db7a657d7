"""`view(dtype)`: the same bytes as elements of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad

DTYPES = [rgrad.uint8, rgrad.int8, rgrad.int16, rgrad.int32, rgrad.int64, rgrad.float16, rgrad.float32, rgrad.float64]
DTYPES += [rgrad.complex64, rgrad.complex128]


def name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


@pytest.mark.parametrize("to", DTYPES, ids=name)
@pytest.mark.parametrize("of", DTYPES, ids=name)
def test_the_bytes_are_those_of_numpy(of: Any, to: Any) -> None:
    bytes_of = np.arange(2 * 3 * 32, dtype=np.uint8).reshape(2, 3, 32) % 61
    x = rgrad.from_numpy(bytes_of.view(name(of)))
    want = bytes_of.view(name(to))
    made = x.view(to)
    assert made.dtype == to
    assert np.array_equal(made.numpy(), want)
    # Rows that are further apart than they are long.
    part, want = x[:, 1:], bytes_of.view(name(of))[:, 1:].view(name(to))
    assert np.array_equal(part.view(to).numpy(), want)
    assert np.array_equal(part.view(dtype=to).numpy(), want)


def test_bfloat16_and_complex32() -> None:
    x = rgrad.tensor([1.0, -2.0])
    # A bfloat16 is the upper half of a float32.
    assert x.view(rgrad.bfloat16)[1::2].tolist() == [1.0, -2.0]
    pair = rgrad.tensor([1.0, 2.0], dtype=rgrad.float16)
    assert pair.view(rgrad.complex32).tolist() == [1 + 2j]
    assert pair.view(rgrad.complex32).view(rgrad.float16).tolist() == [1.0, 2.0]


def test_python_types_and_the_same_dtype() -> None:
    x = rgrad.zeros(4)
    assert x.view(float).dtype == rgrad.float64
    assert x.view(int).dtype == rgrad.int64
    assert x.view(bool).shape == (16,)
    assert x.view(rgrad.float32).shape == (4,)


def test_bytes_that_are_neither_0_nor_1_are_true() -> None:
    x = rgrad.tensor([1, 0, 2], dtype=rgrad.uint8).view(rgrad.bool)
    assert x.tolist() == [True, False, True]
    assert (~x).tolist() == [False, True, False]


def test_memory_and_version_are_shared_and_history_is_not() -> None:
    x = rgrad.zeros(2)
    bits = x.view(rgrad.int32)
    bits[0] = 0x3F800000
    assert x.tolist() == [1.0, 0.0]
    assert (x._version, bits._version) == (1, 1)
    x.add_(1)
    assert bits.view(rgrad.float32).tolist() == [2.0, 1.0]
    leaf = rgrad.ones(2, requires_grad=True)
    for made in (leaf.view(rgrad.float16), (leaf * 2).view(rgrad.int32), (leaf * 2).view(rgrad.float32)):
        assert made.grad_fn is None
        assert not made.requires_grad
        assert not made._is_view()
    saved = leaf * leaf
    saved.exp().sum().backward()
    written = (leaf * 2).exp()
    written.view(rgrad.int32).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written.sum().backward()


def test_pending_results_are_computed_first() -> None:
    x = rgrad.ones(1 << 16)
    for _ in range(3):
        x = x * 2 + 1
    assert (x.view(rgrad.int32) == int(np.float32(15.0).view(np.int32))).all().item()
    y = x + 1
    y.view(rgrad.int32).zero_()
    assert (y == 0).all().item()


REFUSED: list[tuple[Any, Any, str]] = [
    (
        lambda: rgrad.zeros(2, 3),
        rgrad.complex64,
        r"self.size\(-1\) must be divisible by 2 to view Float as ComplexFloat \(different",
    ),
    (
        lambda: rgrad.zeros(3, dtype=rgrad.uint8),
        rgrad.int16,
        r"self.size\(-1\) must be divisible by 2 to view Byte as Short",
    ),
    (
        lambda: rgrad.tensor(1.0),
        rgrad.float64,
        r"self.dim\(\) cannot be 0 to view Float as Double \(different element sizes\)",
    ),
    (lambda: rgrad.tensor(1.0), rgrad.uint8, r"self.dim\(\) cannot be 0 to view Float as Byte"),
    (
        lambda: rgrad.zeros(4, 4).t(),
        rgrad.float64,
        r"self.stride\(-1\) must be 1 to view Float as Double .*, but got 4",
    ),
    (lambda: rgrad.zeros(4, 4).t(), rgrad.uint8, r"self.stride\(-1\) must be 1 to view Float as Byte .*, but got 4"),
    (
        lambda: rgrad.zeros(4, 5)[:, :4],
        rgrad.float64,
        r"self.stride\(0\) must be divisible by 2 to view Float as Double .*, but got 5",
    ),
    (
        lambda: rgrad.zeros(5)[1:],
        rgrad.float64,
        r"self.storage_offset\(\) must be divisible by 2 to view Float as Double .*, but got 1",
    ),
]


@pytest.mark.parametrize(("make", "dtype", "words"), REFUSED)
def test_refused(make: Any, dtype: Any, words: str) -> None:
    x = make()
    with pytest.raises(RuntimeError, match=words):
        x.view(dtype)


def test_memory_that_is_not_aligned_is_refused() -> None:
    whole = np.zeros(17, np.uint8)
    x = rgrad.from_numpy(whole[1:])
    if x.data_ptr() % 8:
        with pytest.raises(RuntimeError, match="not aligned to elements of float64"):
            x.view(rgrad.float64)
    assert x.view(rgrad.int8).shape == (16,)
    assert x.clone().view(rgrad.float64).tolist() == [0.0, 0.0]


def test_other_arguments() -> None:
    x: Any = rgrad.zeros(4)
    for bad in ("a", str):
        with pytest.raises(TypeError):
            x.view(bad)
    with pytest.raises(TypeError):
        x.view(rgrad.int32, 2)
    with pytest.raises(TypeError):
        x.view(dtype=3)


def test_in_a_batch() -> None:
    x = rgrad.ones(2, 3)
    made = rgrad.vmap(lambda v: v.view(rgrad.int16))(x)
    assert made.tolist() == [[0, 16256] * 3] * 2
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
        rgrad.vmap(lambda v: v.view(rgrad.int16), in_dims=1)(x)


def test_on_meta() -> None:
    x = rgrad.empty(2, 4, device="meta")
    assert x.view(rgrad.complex64).shape == (2, 2)
    assert x.view(rgrad.int8).shape == (2, 16)
