"""NumPy's files, protocols and functions with tensors, as programs use them."""

from __future__ import annotations

import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rgrad


def test_files_of_numpy(tmp_path: Path) -> None:
    x, y = rgrad.arange(6.0).reshape(2, 3), rgrad.tensor([True, False])
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    assert rgrad.equal(rgrad.from_numpy(np.load(tmp_path / "x.npy")), x)
    with np.load(tmp_path / "both.npz") as loaded:
        assert rgrad.equal(rgrad.from_numpy(loaded["x"]), x)
        assert rgrad.equal(rgrad.tensor(loaded["y"]), y)
    # A map of the file is the tensor's memory: writes reach the file, and one that may not be written refuses them.
    mapped = rgrad.from_numpy(np.load(tmp_path / "x.npy", mmap_mode="r+"))
    mapped[0, 0] = 9
    assert np.load(tmp_path / "x.npy")[0, 0] == 9
    with pytest.warns(UserWarning, match="not writable"):
        fixed = rgrad.from_numpy(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert fixed.sum().item() == 24
    with pytest.raises(RuntimeError, match="read-only|written|writ"):
        fixed[0, 0] = 1


def test_array_copies_when_it_is_asked_to() -> None:
    x = rgrad.ones(2)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.shares_memory(x.__array__(copy=False), x.numpy())
    assert not np.shares_memory(x.__array__(copy=True), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    with pytest.raises(ValueError, match="avoid copy"):
        x.__array__(np.float64, copy=False)
    assert x.__array__("f2").dtype == np.float16
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(rgrad.ones(2, requires_grad=True))


def test_functions_of_numpy_give_tensors_where_pytorchs_do() -> None:
    x = rgrad.tensor([1.0, 4.0])
    assert x.__array_priority__ == 1000
    for made in (np.sqrt(x), np.add(x, np.ones(2)), np.float64(2) * x, np.add.reduce(x)):
        assert isinstance(made, rgrad.Tensor)
    assert np.sqrt(x).tolist() == [1, 2]
    assert isinstance(np.concatenate([x, x]), np.ndarray)
    assert np.arange(5)[rgrad.tensor([1, 2])].tolist() == [1, 2]
    assert not hasattr(x, "__array_interface__")


def test_objects_with_a_buffer_share_it() -> None:
    numbers = array.array("i", [1, 2])
    shared = rgrad.frombuffer(numbers, dtype=rgrad.int32)
    shared[0] = 7
    assert numbers.tolist() == [7, 2]
    assert rgrad.frombuffer(bytearray(b"\x01\x02"), dtype=rgrad.uint8).tolist() == [1, 2]
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(rgrad.ones(2))  # type: ignore[arg-type]
    assert bytes(rgrad.tensor([1, 2], dtype=rgrad.uint8).numpy()) == b"\x01\x02"


@pytest.mark.parametrize("given", [np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), np.zeros(2, "i4,f4")])
def test_arrays_of_other_things_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="can't convert"):
        rgrad.from_numpy(given)
