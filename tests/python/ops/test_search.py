"""searchsorted, bucketize and isin beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad

DTYPES = ["float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"]


def rows(dtype: str, n: int, device: str) -> tuple[rgrad.Tensor, rgrad.Tensor]:
    rng = np.random.default_rng(n)
    sorted_rows = np.sort(rng.integers(0, 50, (3, n)), axis=-1)
    return (
        rgrad.tensor(sorted_rows).to(getattr(rgrad, dtype)).to(device),
        rgrad.tensor(rng.integers(-2 if dtype != "uint8" else 0, 53, (3, 21))).to(getattr(rgrad, dtype)).to(device),
    )


def places(sorted_rows: rgrad.Tensor, values: rgrad.Tensor, side: str) -> list[list[int]]:
    pairs = zip(sorted_rows.cpu().tolist(), values.cpu().tolist(), strict=True)
    return [np.searchsorted(row, wanted, side=side).tolist() for row, wanted in pairs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_places_are_numpys(dtype: str, n: int, device: str) -> None:
    sorted_rows, values = rows(dtype, n, device)
    for side in ("left", "right"):
        got = rgrad.searchsorted(sorted_rows, values, side=side)
        assert got.dtype == rgrad.int64
        assert got.device == values.device
        assert got.tolist() == places(sorted_rows, values, side)
        turned = rgrad.searchsorted(sorted_rows, values.t().contiguous().t(), side=side, out_int32=True)
        assert turned.dtype == rgrad.int32
        assert turned.tolist() == got.tolist()
    one = rgrad.searchsorted(sorted_rows[1], values)
    assert one.tolist() == [np.searchsorted(sorted_rows[1].tolist(), v).tolist() for v in values.tolist()]
    assert rgrad.bucketize(values, sorted_rows[1]).tolist() == one.tolist()


def test_what_cannot_be_compared_is_passed_by(device: str) -> None:
    nan = float("nan")
    sorted_rows = rgrad.tensor([1.0, 2.0, nan], device=device)
    values = rgrad.tensor([nan, 0.0, 2.0, 3.0, float("inf"), -0.0], device=device)
    assert rgrad.searchsorted(sorted_rows, values).tolist() == [3, 0, 1, 3, 3, 0]
    assert rgrad.searchsorted(sorted_rows[:2], values, right=True).tolist() == [2, 0, 2, 2, 2, 0]
    # Zeros of both signs are the same number.
    assert rgrad.searchsorted(rgrad.tensor([-0.0, 0.0], device=device), rgrad.tensor([0.0, -0.0])).tolist() == [0, 0]


def test_batches_and_sorters(device: str) -> None:
    sorted_rows, values = rows("float32", 9, device)
    apart = rgrad.func.vmap(rgrad.searchsorted)(sorted_rows, values)
    assert apart.tolist() == places(sorted_rows, values, "left")
    shared = rgrad.func.vmap(rgrad.searchsorted, (None, 1), 1)(sorted_rows[0], values)
    assert shared.tolist() == rgrad.searchsorted(sorted_rows[0], values).tolist()
    mixed = sorted_rows.flip(-1)
    assert rgrad.searchsorted(mixed, values, sorter=mixed.argsort()).tolist() == apart.tolist()


def test_places_have_no_gradient() -> None:
    found = rgrad.searchsorted(rgrad.tensor([1.0, 2.0], requires_grad=True), rgrad.tensor([1.5], requires_grad=True))
    assert not found.requires_grad


@pytest.mark.parametrize("count", [0, 1, 5, 300])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
def test_isin_is_numpys(count: int, dtype: str, device: str) -> None:
    rng = np.random.default_rng(count)
    elements = rgrad.tensor(rng.integers(0, 400, (6, 7))).to(getattr(rgrad, dtype)).to(device)
    among = rgrad.tensor(rng.integers(0, 400, count)).to(getattr(rgrad, dtype)).to(device)
    for invert in (False, True):
        want = np.isin(elements.cpu().numpy(), among.cpu().numpy(), invert=invert)
        assert rgrad.isin(elements, among, invert=invert).tolist() == want.tolist()


def test_nan_is_in_nothing(device: str) -> None:
    nan = rgrad.tensor([float("nan"), 1.0], device=device)
    assert rgrad.isin(nan, nan).tolist() == [False, True]
    assert rgrad.isin(nan, rgrad.cat([nan, rgrad.arange(100.0, device=device)])).tolist() == [False, True]
