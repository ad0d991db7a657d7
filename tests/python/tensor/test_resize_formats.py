"""`resize_` and `resize_as_` with a memory format, and methods for devices that are not there."""

from __future__ import annotations

import pytest

import rgrad


def test_resize_takes_a_format() -> None:
    x = rgrad.arange(24.0)
    assert x.resize_(1, 2, 3, 4, memory_format=rgrad.channels_last).stride() == (24, 1, 8, 2)
    assert x[0, 1, 0, 0].item() == 1.0
    assert x.resize_((1, 2, 3, 4), memory_format=rgrad.contiguous_format).stride() == (24, 12, 4, 1)
    assert rgrad.empty(0).resize_(1, 2, 2, 3, 4, memory_format=rgrad.channels_last_3d).stride() == (48, 1, 24, 8, 2)
    assert x.resize_(2, 12).stride() == (12, 1)


def test_resize_as_takes_a_format() -> None:
    like = rgrad.ones(1, 2, 3, 4).to(memory_format=rgrad.channels_last)
    assert rgrad.empty(0).resize_as_(like).stride() == (24, 12, 4, 1)
    assert rgrad.empty(0).resize_as_(like, memory_format=rgrad.preserve_format).stride() == like.stride()


def test_other_formats_are_refused_before_anything_changes() -> None:
    x = rgrad.arange(4.0)
    for sizes, form in (((2, 2), rgrad.channels_last), ((1, 1, 2, 2), rgrad.preserve_format)):
        with pytest.raises(RuntimeError, match=r"rank|Unsupported memory format"):
            x.resize_(*sizes, memory_format=form)
    with pytest.raises(TypeError):
        x.resize_(2, 2, memory_format=3)
    assert x.shape == (4,)


def test_devices_that_are_not_there() -> None:
    layer = rgrad.nn.Linear(2, 2)
    for call in (rgrad.ones(2).cuda, layer.cuda, rgrad.ones(2).pin_memory):
        with pytest.raises(RuntimeError, match="no CUDA devices"):
            call()
    for call in (rgrad.ones(2).xpu, layer.xpu):
        with pytest.raises(AssertionError, match="XPU"):
            call()
    assert layer.weight.device.type == "cpu"
    assert not rgrad.ones(2).is_pinned()
