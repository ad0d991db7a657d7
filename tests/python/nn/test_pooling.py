"""Pooling and changes of size: huge sizes, special values, positions that are wrong, threads, devices, meta tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad.nn import functional as F

HUGE = 10**12
MOST = 2**63 - 1

TOO_LARGE: dict[str, Callable[[Any, Any], Any]] = {
    "interpolate": lambda x, v: F.interpolate(x, size=HUGE),
    "interpolate most": lambda x, v: F.interpolate(v, size=MOST),
    "antialias": lambda x, v: F.interpolate(x, size=(HUGE, 2), mode="bilinear", antialias=True),
    "adaptive": lambda x, v: F.adaptive_avg_pool1d(v, HUGE),
    "adaptive most": lambda x, v: F.adaptive_max_pool1d(v, MOST),
    "adaptive of both": lambda x, v: F.adaptive_avg_pool2d(x, (HUGE, HUGE)),
    "kernel": lambda x, v: F.max_pool2d(x, MOST),
    "dilation": lambda x, v: F.max_pool2d(x, 2, 1, 1, MOST),
    "stride": lambda x, v: F.max_pool2d(x, 2, MOST),
    "columns": lambda x, v: F.unfold(x, MOST),
    "columns of padding": lambda x, v: F.unfold(x, 2, padding=HUGE),
    "columns far apart": lambda x, v: F.unfold(x, 2, padding=2**62, stride=2**62),
    "fold": lambda x, v: F.fold(rgrad.ones(4, 9), HUGE, 2),
    "fold of one": lambda x, v: F.fold(rgrad.ones(1, 1), (2**40, 2**40), 1, stride=2**40),
    "unpool": lambda x, v: F.max_unpool2d(x, x.long(), HUGE),
    "fractional": lambda x, v: F.fractional_max_pool2d(x, MOST, 2),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_huge_sizes_are_errors(what: str) -> None:
    x, v = rgrad.ones(1, 2, 6, 6), rgrad.ones(1, 2, 5)
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        TOO_LARGE[what](x, v)
    assert not isinstance(caught.value, rgrad.InternalError | rgrad.ShapeError)


def test_large_windows_of_small_inputs() -> None:
    v = rgrad.arange(5.0).reshape(1, 1, 5)
    assert F.avg_pool1d(v, HUGE, HUGE, HUGE // 2).shape == (1, 1, 1)
    assert F.max_pool2d(rgrad.rand(1, 6, 6), 10**15, 1, 10**15 // 2).shape == (1, 7, 7)
    assert F.max_pool1d(v, 10**7, 1, 5 * 10**6).tolist() == [[[4.0] * 6]]
    # A small input whose result is not small.
    y = F.interpolate(v, size=3_000_000)
    assert y[0, 0, [0, -1]].tolist() == [0.0, 4.0]
    assert F.adaptive_avg_pool1d(v.requires_grad_(), 2_000_000).sum().item() == pytest.approx(4_000_000.0)


def test_the_first_of_equals_and_nan(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    for rows, value, at in (
        ([[1.0, 5.0, 5.0], [5.0, 2.0, 1.0]], 5.0, 1),
        ([[-inf, -inf, -inf], [-inf, -inf, -inf]], -inf, 0),
        ([[1.0, nan, 5.0], [nan, 2.0, inf]], nan, 3),
        ([[-0.0, 0.0, -0.0], [-1.0, 0.0, 0.0]], -0.0, 0),
    ):
        x = rgrad.tensor([rows], device=device)
        values, positions = F.max_pool2d(x, (2, 3), return_indices=True)
        assert positions.item() == at
        np.testing.assert_equal(values.item(), value)
        # Padding is smaller than all elements.
        padded, places = F.max_pool2d(x, (2, 3), 1, 1, return_indices=True)
        assert padded.shape == (1, 3, 3)
        assert 0 <= places.min().item() <= places.max().item() < 6


def test_positions_that_are_wrong() -> None:
    x = rgrad.ones(1, 1, 2, 2)
    for bad in (4 * 4 * 4, -1):
        with pytest.raises(RuntimeError, match="Found an invalid max index"):
            F.max_unpool2d(x, rgrad.full((1, 1, 2, 2), bad, dtype=rgrad.int64), 2)

    def elsewhere(t: rgrad.Tensor) -> rgrad.Tensor:
        return t + 1000 if t.dtype == rgrad.int64 else t

    x = rgrad.rand(1, 1, 4, 4, requires_grad=True)
    with rgrad.autograd.graph.saved_tensors_hooks(elsewhere, lambda t: t):
        y = F.max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match="Found an invalid max index"):
        y.sum().backward()


def test_the_same_bits_for_any_number_of_threads() -> None:
    x = rgrad.rand(3, 5, 70, 90, requires_grad=True)
    grid = rgrad.rand(3, 40, 50, 2) * 2.2 - 1.1
    before = rgrad.get_num_threads()

    def results() -> list[Any]:
        made = []
        for call in (
            lambda t: F.max_pool2d(t, 3, 2, 1),
            lambda t: F.avg_pool2d(t, 3, 2, 1),
            lambda t: F.adaptive_avg_pool2d(t, 7),
            lambda t: F.fold(F.unfold(t, 3), (70, 90), 3),
            lambda t: F.interpolate(t, size=(33, 201), mode="bicubic"),
            lambda t: F.grid_sample(t, grid, align_corners=False),
        ):
            y = call(x)
            made += [y.detach().numpy(), rgrad.autograd.grad((y * y).sum(), x)[0].numpy()]
        return made

    try:
        rgrad.set_num_threads(1)
        one = results()
        rgrad.set_num_threads(4)
        four = results()
    finally:
        rgrad.set_num_threads(before)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)


def test_positions_are_made_only_where_they_are_needed() -> None:
    x = rgrad.rand(2, 3, 9, 11)
    values, _ = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert rgrad.equal(F.max_pool2d(x, 3, 2, 1), values)
    x.requires_grad_()
    assert rgrad.equal(F.max_pool2d(x, 3, 2, 1).detach(), values)


def test_meta_tensors_have_shapes() -> None:
    x = rgrad.ones(2, 3, 8, 8, device="meta", requires_grad=True)
    grid = rgrad.ones(2, 4, 5, 2, device="meta")
    for y, shape in (
        (F.max_pool2d(x, 2), (2, 3, 4, 4)),
        (F.avg_pool2d(x, 3, 1), (2, 3, 6, 6)),
        (F.adaptive_max_pool2d(x, 3), (2, 3, 3, 3)),
        (F.interpolate(x, scale_factor=1.5, mode="bilinear"), (2, 3, 12, 12)),
        (F.grid_sample(x, grid, align_corners=True), (2, 3, 4, 5)),
        (F.unfold(x, 2), (2, 12, 49)),
    ):
        assert isinstance(y, rgrad.Tensor)
        assert tuple(y.shape) == shape
        y.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape


def test_vmap_joins_the_batch() -> None:
    x = rgrad.rand(4, 2, 3, 6, 7)
    for call in (
        lambda t: F.max_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 2, 1),
        lambda t: F.interpolate(t, size=(4, 9), mode="bilinear"),
        lambda t: F.unfold(t, (2, 3)),
        lambda t: F.grid_sample(t, rgrad.zeros(2, 3, 3, 2), align_corners=False),
    ):
        assert rgrad.allclose(rgrad.func.vmap(call)(x), rgrad.stack([call(t) for t in x]))
