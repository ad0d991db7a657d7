"""Functions that are made without end do not stay in memory because operations were called in them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rgrad
from rgrad import Tensor

SOURCE = "def made(x):\n    a = x * {}\n    return a.exp()\n"


def make(i: int) -> Any:
    space: dict[str, Any] = {}
    exec(compile(SOURCE.format(i), f"made_{i % 3}.py", "exec"), space)
    return space["made"]


def test_code_is_let_go() -> None:
    x = rgrad.ones(1, requires_grad=True)
    known = []
    for i in range(10_000):
        made = make(i)
        made(x)
        if i % 1000 == 0:
            known.append(weakref.ref(made.__code__))
    del made
    gc.collect()
    # Some of the newest may be there.
    assert sum(k() is not None for k in known) <= 6


class Fails(rgrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        raise ValueError("in backward")


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("stacks", [False, True])
def test_lines_stay_known(stacks: bool) -> None:
    source = "\n\ndef apply(f, x):\n    return f(x)\n"
    space: dict[str, Any] = {}
    exec(compile(source, "let_go.py", "exec"), space)
    x = rgrad.ones(1, requires_grad=True)
    with rgrad.autograd.set_detect_anomaly(stacks):
        y = space["apply"](Fails.apply, x)
        code = weakref.ref(space["apply"].__code__)
        space.clear()
        for i in range(10_000):
            make(i)(x)
    gc.collect()
    assert code() is None
    with pytest.raises(ValueError, match="in backward") as caught:
        y.backward()
    assert "let_go.py:4" in "\n".join(caught.value.__notes__)
