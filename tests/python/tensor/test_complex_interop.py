"""Complex tensors and NumPy, pickle, files, copies, comparisons and other parts of the package."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import rgrad

COMPLEX = [rgrad.complex32, rgrad.complex64, rgrad.complex128]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_numpy_shares_memory_both_ways(kind: str) -> None:
    array = np.array([[1 + 2j, 3], [4j, 5]], kind)
    z = rgrad.from_numpy(array)
    assert str(z.dtype) == f"rgrad.{kind}"
    array[0, 0] = 7j
    assert z[0, 0].item() == 7j
    back = z.t().numpy()
    back[1, 1] = -1
    assert z[1, 1].item() == -1
    assert back.dtype == array.dtype
    assert np.asarray(z).ctypes.data == array.ctypes.data
    assert np.array(z, dtype=np.complex128).dtype == np.complex128
    assert rgrad.from_numpy(array[::2, 1:]).tolist() == array[::2, 1:].tolist()


def test_an_array_that_is_aligned_to_its_parts_is_shared() -> None:
    array = np.arange(9.0)[1:].view(np.complex128)
    assert rgrad.from_numpy(array).tolist() == array.tolist()


def test_numpy_scalars_and_operators() -> None:
    assert rgrad.tensor(np.complex64(1 + 2j)).dtype == rgrad.complex64
    z = rgrad.tensor([1 + 2j])
    for product in (z * np.complex64(1j), np.complex64(1j) * z, z * 1j, 1j * z):
        assert product.dtype == rgrad.complex64
        assert product.tolist() == [-2 + 1j]
    assert (z * np.array([1j])).dtype == rgrad.complex128


def test_numpy_has_no_complex32_and_no_longer_ones() -> None:
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        rgrad.zeros(1, dtype=rgrad.complex32).numpy()
    with pytest.raises(
        TypeError,
        match=r"can't convert np.ndarray of type numpy.\w+. The only supported types are: .*complex128, complex64, f",
    ):
        rgrad.from_numpy(np.zeros(1, np.clongdouble))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_pickles_files_and_copies(dtype: Any) -> None:
    z = rgrad.tensor([[1 + 2j, -3.5], [0, 4j]], dtype=dtype)
    file = io.BytesIO()
    rgrad.save({"z": z, "part": z[:, 1], "dtype": dtype, "number": 1 - 2j}, file)
    file.seek(0)
    loaded = rgrad.load(file)
    assert (loaded["dtype"], loaded["number"]) == (dtype, 1 - 2j)
    for made in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), copy.copy(z), loaded["z"], z.clone()):
        assert made.dtype == dtype
        assert made.tolist() == z.tolist()
    turned = pickle.loads(pickle.dumps(z.t()))
    assert turned.tolist() == z.t().tolist()
    assert turned.stride() == z.t().stride()
    assert loaded["part"].tolist() == [-3.5, 4j]
    assert loaded["part"].untyped_storage().data_ptr() == loaded["z"].untyped_storage().data_ptr()
    leaf = copy.deepcopy(z.clone().requires_grad_())
    assert leaf.requires_grad


def test_modules_keep_complex_parameters() -> None:
    class Scale(rgrad.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = rgrad.nn.Parameter(rgrad.tensor([1 + 2j]))
            self.register_buffer("shift", rgrad.tensor([3j]))

    module = Scale()
    state = module.state_dict()
    assert {name: value.dtype for name, value in state.items()} == {"factor": rgrad.complex64, "shift": rgrad.complex64}
    # Casts to real dtypes leave complex parameters alone.
    assert module.double().factor.dtype == rgrad.complex64
    other = Scale()
    other.load_state_dict({name: value * 2 for name, value in state.items()})
    assert other.factor.tolist() == [2 + 4j]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_assert_close(dtype: Any) -> None:
    z = rgrad.tensor([1 + 2j, 3], dtype=dtype)
    rgrad.testing.assert_close(z, z.clone())
    with pytest.raises(
        AssertionError,
        match=r"are not close!\n\nMismatched elements: 1 / 2 \(50.0%\)\nGreatest absolute difference: 0\.\d+ at index",
    ):
        rgrad.testing.assert_close(z, rgrad.tensor([1 + 2.25j, 3], dtype=dtype))
    nan = rgrad.tensor([complex("nan+1j")], dtype=dtype)
    rgrad.testing.assert_close(nan, nan, equal_nan=True)
    with pytest.raises(AssertionError, match="nan"):
        rgrad.testing.assert_close(nan, nan)
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        rgrad.testing.assert_close(z, z.to(rgrad.complex64 if dtype != rgrad.complex64 else rgrad.complex128))


def test_make_tensor() -> None:
    z = rgrad.testing.make_tensor(40, dtype=rgrad.complex64, low=1, high=2, requires_grad=True)
    assert z.dtype == rgrad.complex64
    assert z.requires_grad
    for part in (z.detach().real, z.detach().imag):
        assert part.min().item() >= 1
        assert part.max().item() <= 2


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_moves(dtype: Any) -> None:
    z = rgrad.tensor([[1 + 2j, 3], [4j, 5 - 1j]], dtype=dtype)
    want = z.to(rgrad.complex128).numpy()
    at = rgrad.tensor([1, 0])
    cases = [
        (rgrad.cat([z, z]), np.concatenate([want, want])),
        (rgrad.stack([z, z], 1), np.stack([want, want], 1)),
        (z[at], want[[1, 0]]),
        (z[z == 3], want[want == 3]),
        (z.index_select(1, at), want[:, [1, 0]]),
        (z.gather(1, at.expand(2, 2)), want[:, [1, 0]]),
        (z.flip(0), want[::-1]),
        (z.roll(1), np.roll(want, 1)),
        (z.repeat(1, 2), np.tile(want, (1, 2))),
        (z.masked_fill(z == 3, 2j), np.where(want == 3, 2j, want)),
        (rgrad.where(z == 3, z, z * 2), np.where(want == 3, want, want * 2)),
        (z.t().contiguous(), want.T),
        (rgrad.view_as_real(z), want.view(np.float64).reshape(2, 2, 2)),
    ]
    for made, expected in cases:
        assert np.array_equal(np.array(made.tolist()), expected)
    assert rgrad.nonzero(z - 3).shape == (3, 2)
