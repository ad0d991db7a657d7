"""Tensors have at most 64 dimensions, wherever one can be made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor

MOST = 64
LONG = [1] * (MOST + 1)


def nested(depth: int) -> Any:
    data: Any = 1.0
    for _ in range(depth):
        data = [data]
    return data


def widest() -> Tensor:
    return rgrad.ones([1] * MOST)


def subclass(x: Tensor) -> Tensor:
    class Own(Tensor):
        pass

    return x.as_subclass(Own)


MADE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: rgrad.zeros(LONG),
    "empty": lambda: rgrad.empty(*LONG),
    "full": lambda: rgrad.full(LONG, 1.0),
    "rand": lambda: rgrad.rand(LONG),
    "empty_strided": lambda: rgrad.empty_strided(LONG, LONG),
    "meta": lambda: rgrad.empty(LONG, device="meta"),
    "no elements": lambda: rgrad.empty([0, *LONG]),
    "new_zeros": lambda: rgrad.ones(1).new_zeros(LONG),
    "view": lambda: rgrad.ones(1).view(LONG),
    "reshape": lambda: rgrad.ones(1).reshape(LONG),
    "unflatten": lambda: rgrad.ones(1).unflatten(0, LONG),
    "expand": lambda: rgrad.ones(1).expand(LONG),
    "expand more": lambda: widest().expand([2, *widest().shape]),
    "unsqueeze": lambda: widest().unsqueeze(0),
    "unsqueeze in place": lambda: widest().unsqueeze_(-1),
    "index": lambda: widest()[None],
    "index of one": lambda: rgrad.ones(1)[(None,) * MOST],
    "index by matrices": lambda: rgrad.ones([1] * 40)[rgrad.zeros([1] * 40, dtype=rgrad.int64)],
    "as_strided": lambda: rgrad.ones(1).as_strided(LONG, LONG),
    "resize": lambda: rgrad.ones(1).resize_(LONG),
    "stack": lambda: rgrad.stack([widest(), widest()]),
    "broadcast_to": lambda: rgrad.broadcast_to(rgrad.ones(1), LONG),
    "unfold": lambda: widest().unfold(0, 1, 1),
    "diag_embed": lambda: rgrad.diag_embed(widest()),
    "atleast": lambda: rgrad.tensordot(rgrad.ones([1] * 40), rgrad.ones([1] * 40), 0),
    "repeat": lambda: rgrad.ones(1).repeat(LONG),
    "in a subclass": lambda: subclass(widest()).unsqueeze(0),
    "with history": lambda: rgrad.ones(1, requires_grad=True).view(LONG),
    "requested by data": lambda: setattr(rgrad.ones(1), "data", rgrad.ones(1).view(LONG)),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_more_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"only tensors with up to 64 dims are supported, got \d+"):
        MADE[name]()


@pytest.mark.wgpu
@pytest.mark.parametrize("name", ["zeros", "view", "unsqueeze", "index"])
def test_more_are_refused_on_wgpu(name: str) -> None:
    with rgrad.device("wgpu"), pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        MADE[name]()


def test_so_many_work() -> None:
    x = rgrad.tensor(nested(MOST), requires_grad=True)
    assert x.dim() == MOST
    assert x.tolist() == nested(MOST)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
    assert rgrad.from_numpy(np.ones([1] * MOST)).sum().item() == 1
    assert repr(widest()).startswith("tensor([[[[")
    with pytest.raises(ValueError, match="too many dimensions"):
        rgrad.tensor(nested(MOST + 1))


def test_lists_of_the_deepest_on_a_small_stack() -> None:
    found: list[Any] = []
    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(widest().tolist()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [nested(MOST)]
