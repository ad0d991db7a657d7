"""Random tensors for tests."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from rgrad.testing import make_tensor


def test_zeros_can_be_excluded() -> None:
    assert bool(make_tensor(200, dtype=rgrad.bool, exclude_zero=True).all())
    assert bool((make_tensor(200, dtype=rgrad.int64, low=-1, high=2, exclude_zero=True) != 0).all())
    smallest = make_tensor(3, dtype=rgrad.float32, low=0.0, high=0.0, exclude_zero=True)
    assert smallest.tolist() == [rgrad.finfo(rgrad.float32).tiny] * 3


def test_the_order_in_memory_can_be_chosen() -> None:
    made = make_tensor((2, 3, 4, 5), dtype=rgrad.float64, memory_format=rgrad.channels_last, requires_grad=True)
    assert made.is_contiguous(memory_format=rgrad.channels_last)
    assert made.is_leaf
    assert made.requires_grad
    assert not make_tensor(4, 2, dtype=rgrad.float64, noncontiguous=True).is_contiguous()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"noncontiguous": True, "memory_format": rgrad.contiguous_format}, "mutually exclusive"),
        ({"low": float("nan")}, "cannot be NaN"),
        ({"low": 2, "high": 1}, "`low` must be less than `high`"),
        ({"dtype": rgrad.int64, "requires_grad": True}, "not supported for boolean and integral"),
    ],
)
def test_what_cannot_be_made_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_tensor(3, **{"dtype": rgrad.float32, **options})
