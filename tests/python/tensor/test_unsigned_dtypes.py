"""uint16, uint32 and uint64: storage, conversions, equality, products, bits, and functions of floats, as in PyTorch."""

import numpy as np
import pytest

import rgrad

DTYPES = [rgrad.uint16, rgrad.uint32, rgrad.uint64]
NUMPY = {rgrad.uint16: np.uint16, rgrad.uint32: np.uint32, rgrad.uint64: np.uint64}
OTHERS = [
    rgrad.bool,
    rgrad.uint8,
    rgrad.int8,
    rgrad.int16,
    rgrad.int32,
    rgrad.int64,
    rgrad.float16,
    rgrad.float32,
    rgrad.float64,
]


def largest(dtype):
    return 2 ** (8 * dtype.itemsize) - 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_numbers_are_stored_and_come_back(dtype):
    values = [0, 1, largest(dtype) // 2, largest(dtype) // 2 + 1, largest(dtype)]
    x = rgrad.tensor(values, dtype=dtype)
    assert x.tolist() == values
    assert x[-1].item() == largest(dtype)
    assert x.numpy().dtype == NUMPY[dtype]
    assert x.numpy().tolist() == values
    back = rgrad.from_numpy(np.array(values, NUMPY[dtype]))
    assert back.dtype == dtype
    assert rgrad.equal(back, x)
    assert rgrad.iinfo(dtype).max == largest(dtype)
    assert rgrad.iinfo(dtype).min == 0
    assert not dtype.is_signed
    assert not dtype.is_floating_point


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", [*OTHERS, *DTYPES], ids=str)
def test_conversions_are_those_of_numpy(dtype, other):
    values = np.array([0, 1, 2, 100, 127], NUMPY[dtype])
    x = rgrad.from_numpy(values.copy())
    names = {rgrad.bool: np.bool_, rgrad.uint8: np.uint8, **NUMPY}
    kind = names.get(other) or getattr(np, str(other).removeprefix("rgrad."))
    assert np.array_equal(x.to(other).numpy(), values.astype(kind))
    assert np.array_equal(x.to(other).to(dtype).numpy(), values.astype(kind).astype(NUMPY[dtype]))
    # Over strides too.
    wide = rgrad.from_numpy(np.stack([values, values], 1))
    assert np.array_equal(wide[:, 1].to(other).numpy(), values.astype(kind))


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_numbers_become_the_floats_that_are_near(dtype):
    x = rgrad.tensor([largest(dtype)], dtype=dtype)
    assert x.double().item() == float(largest(dtype))
    assert x.float().item() == float(np.float32(largest(dtype)))
    near = float(largest(dtype)) if dtype != rgrad.uint64 else 2.0**64 - 2.0**12
    assert rgrad.tensor([near], dtype=rgrad.float64).to(dtype).item() == int(near)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_equality_and_bits(dtype):
    a = np.array([3, 5, largest(dtype), 7], NUMPY[dtype])
    b = np.array([3, 9, 2, 7], NUMPY[dtype])
    x, y = rgrad.from_numpy(a.copy()), rgrad.from_numpy(b.copy())
    for mine, numpys in [
        (x * y, a * b),
        (x & y, a & b),
        (x | y, a | b),
        (x ^ y, a ^ b),
        (x == y, a == b),
        (x != y, a != b),
    ]:
        assert np.array_equal(mine.numpy(), numpys)
    assert (x * 2).dtype == dtype
    assert (x / y).dtype == rgrad.float32
    assert x.sum().dtype == rgrad.int64
    assert y.sum().item() == 21
    assert x.any().item() is True
    assert x.all().item() is True
    assert rgrad.where(x == y, x, y).tolist() == np.where(a == b, a, b).tolist()
    assert rgrad.cat([x, y]).tolist() == [*a.tolist(), *b.tolist()]
    assert x[rgrad.tensor([3, 0])].tolist() == [7, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_knows_no_sign(dtype):
    values = [5, largest(dtype), 0, largest(dtype) // 2 + 1, 1]
    found, places = rgrad.tensor(values, dtype=dtype).sort()
    assert found.dtype == dtype
    assert found.tolist() == sorted(values)
    assert places.tolist() == [2, 4, 0, 3, 1]
    found, _ = rgrad.tensor(values, dtype=dtype).sort(descending=True)
    assert found.tolist() == sorted(values, reverse=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_choosing_knows_no_sign(dtype):
    values = [5, largest(dtype), 0, largest(dtype) // 2 + 1, 1]
    x = rgrad.tensor(values, dtype=dtype)
    assert x.argmax().item() == 1
    assert x.argmin().item() == 2
    assert x.max(0).values.item() == largest(dtype)
    assert x.min(0).values.item() == 0
    assert x.topk(2).values.tolist() == [largest(dtype), largest(dtype) // 2 + 1]
    assert x.cummax(0).values.tolist() == [5, *[largest(dtype)] * 4]
    assert x.mode().values.item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_pytorch_refuses(dtype):
    x = rgrad.tensor([1, 2], dtype=dtype)
    name = {rgrad.uint16: "UInt16", rgrad.uint32: "UInt32", rgrad.uint64: "UInt64"}[dtype]
    for refused in [
        lambda: x + x,
        lambda: x - x,
        lambda: x < x,
        lambda: x // x,
        lambda: -x,
        lambda: x.abs(),
        lambda: x.sign(),
    ]:
        with pytest.raises(NotImplementedError, match=f"not implemented for '{name}'"):
            refused()
    for other in [rgrad.uint8, rgrad.int32, rgrad.int64]:
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
            x * rgrad.tensor([1, 2], dtype=other)
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
            rgrad.promote_types(dtype, other)
    assert rgrad.promote_types(dtype, rgrad.float16) == rgrad.float16
    assert rgrad.result_type(x, 1) == dtype
    with pytest.raises(ValueError, match="Overflow when unpacking"):
        rgrad.tensor([2**64], dtype=dtype)


LARGE = [2**63, 2**63 + 5, 2**64 - 1]


@pytest.mark.parametrize("number", LARGE)
def test_numbers_that_uint64_alone_holds(number):
    x = rgrad.tensor([1, 2, 3], dtype=rgrad.uint64)
    for made in (
        rgrad.full((3,), number, dtype=rgrad.uint64),
        rgrad.full_like(x, number),
        x.new_full((3,), number),
        x.clone().fill_(number),
        rgrad.scalar_tensor(number, dtype=rgrad.uint64).expand(3),
    ):
        assert made.dtype == rgrad.uint64
        assert made.tolist() == [number] * 3
    assert (x | number).tolist() == [n | number for n in (1, 2, 3)]
    assert (number ^ x).tolist() == [n ^ number for n in (1, 2, 3)]
    assert (x * number).tolist() == [n * number % 2**64 for n in (1, 2, 3)]
    assert rgrad.where(rgrad.tensor([True, False, True]), x, number).tolist() == [1, number, 3]
    assert (rgrad.full_like(x, number) == number).all()
    x[0] = number
    assert x.tolist() == [number, 2, 3]


@pytest.mark.parametrize("number", LARGE)
def test_large_numbers_beside_other_dtypes(number):
    """Operands wrap around in integers, as those beyond smaller ranges do. Values must fit."""
    assert (rgrad.tensor([1]) + number).tolist() == [1 + number - 2**64]
    assert (rgrad.tensor([1], dtype=rgrad.uint8) + number).tolist() == [(1 + number) % 256]
    assert (rgrad.tensor([1.0], dtype=rgrad.float64) + number).tolist() == [1.0 + float(number)]
    for call in (
        lambda: rgrad.full((2,), number),
        lambda: rgrad.full((2,), number, dtype=rgrad.int64),
        lambda: rgrad.tensor([1]).fill_(number),
    ):
        with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
            call()
    assert rgrad.full((), number, dtype=rgrad.float64).item() == float(number)


def test_numbers_that_no_dtype_holds():
    x = rgrad.tensor([1], dtype=rgrad.uint64)
    with pytest.raises(OverflowError, match="int too big to convert"):
        x * 2**64
    with pytest.raises(OverflowError, match="negative int"):
        rgrad.tensor([1.0]) + (-(2**63) - 1)
