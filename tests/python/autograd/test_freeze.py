"""freeze_(): nothing writes to a frozen tensor's memory, and who tries is told where it was frozen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from devices import real
from rgrad import nn, optim

pytestmark = pytest.mark.usefixtures("device")

WRITES: dict[str, Callable[[Any], object]] = {
    "add_": lambda x: x.add_(1),
    "mul_": lambda x: x.__imul__(2),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(rgrad.zeros(4, dtype=x.dtype)),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "clamp_": lambda x: x.clamp_(0, 1),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 1.0),
    "index_fill_": lambda x: x.index_fill_(0, rgrad.tensor([0]), 3.0),
    "scatter_": lambda x: x.scatter_(0, rgrad.tensor([0]), 3.0),
    "an item": lambda x: x.__setitem__(0, 5.0),
    "a mask": lambda x: x.__setitem__(x > 0, 5.0),
    "out=": lambda x: rgrad.add(rgrad.ones(4, dtype=x.dtype), 1, out=x),
    "sum out=": lambda x: rgrad.sum(rgrad.ones(4, 4, dtype=x.dtype), 0, out=x),
    ".data": lambda x: x.data.add_(1),
    ".data =": lambda x: setattr(x, "data", rgrad.zeros(4, dtype=x.dtype)),
    "set_": lambda x: x.set_(rgrad.zeros(4, dtype=x.dtype)),
    "a view": lambda x: x[1:].mul_(2),
    "a view of a view": lambda x: x.view(2, 2)[0].mul_(2),
    "detach": lambda x: x.detach().mul_(2),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "transpose_": lambda x: x.view(2, 2).transpose_(0, 1),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_frozen_memory(write: str) -> None:
    x = rgrad.tensor([1.0, 2.0, 3.0, 4.0], dtype=real())
    before = x._version
    assert x.freeze_() is x
    at = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match=rf"was frozen by freeze_\(\) at .*test_freeze\.py:{at} in test_writes"):
        WRITES[write](x)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x.shape == (4,)
    assert x._version == before


def test_views_made_before_are_frozen_too() -> None:
    x = rgrad.zeros(4, dtype=real())
    view, detached, alias = x[1:], x.detach(), x.data
    assert not view.is_frozen()
    x.freeze_()
    for t in (x, view, detached, alias):
        assert t.is_frozen()
        with pytest.raises(RuntimeError, match="frozen"):
            t.add_(1)
    assert not x.clone().is_frozen()
    assert not (x + 1).is_frozen()


def test_freezing_through_a_view_freezes_its_base() -> None:
    x = rgrad.zeros(4, dtype=real())
    x[1:].freeze_()
    assert x.is_frozen()
    with pytest.raises(RuntimeError, match="frozen"):
        x.add_(1)


def test_unfreeze() -> None:
    x = rgrad.zeros(2, dtype=real()).freeze_().freeze_()
    assert x.unfreeze_() is x
    assert not x.is_frozen()
    x.add_(1)
    assert x.tolist() == [1.0, 1.0]


def test_reading_and_differentiating_go_on() -> None:
    p = nn.Parameter(rgrad.ones(2, dtype=real())).freeze_()
    for _ in range(2):
        (p * p).sum().backward()
    assert p.grad.tolist() == [4.0, 4.0]
    x = (p * 1).freeze_()
    assert (x * 2).tolist() == [2.0, 2.0]


def test_a_frozen_gradient_is_added_to_out_of_place() -> None:
    p = rgrad.ones(2, dtype=real(), requires_grad=True)
    p.sum().backward()
    held = p.grad.freeze_()
    p.sum().backward()
    assert held.tolist() == [1.0, 1.0]
    assert p.grad.tolist() == [2.0, 2.0]
    assert not p.grad.is_frozen()


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW])
def test_optimizers_say_what_they_may_not_write(make: Any) -> None:
    p = nn.Parameter(rgrad.ones(2, dtype=real())).freeze_()
    o = make([p], lr=0.1)
    (p * 2).sum().backward()
    with pytest.raises(RuntimeError, match="frozen"):
        o.step()
    assert p.tolist() == [1.0, 1.0]


@pytest.mark.cpu_only
def test_numpy_arrays_of_frozen_memory_are_read_only() -> None:
    x = rgrad.zeros(2).freeze_()
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1
    assert np.asarray(x).tolist() == [0.0, 0.0]


@pytest.mark.cpu_only
def test_memory_lent_by_numpy_can_be_frozen() -> None:
    a = np.zeros(2, dtype=np.float32)
    x = rgrad.from_numpy(a).freeze_()
    with pytest.raises(RuntimeError, match="frozen"):
        x.add_(1)
    a[0] = 5
    assert x.tolist() == [5.0, 0.0]
