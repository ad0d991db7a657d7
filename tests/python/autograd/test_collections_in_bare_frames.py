"""The garbage collector may run in a frame without builtins, such as a named tuple's ``__new__``."""

import gc
from typing import Any

import pytest

import rgrad


@pytest.mark.filterwarnings("error")
def test_a_collection_in_a_frame_without_import() -> None:
    class Keeps(rgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.note = [x]
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    y = Keeps.apply(rgrad.ones(2, requires_grad=True))
    for _ in range(3):
        exec("collect()", {"__builtins__": {}, "collect": gc.collect})
    y.sum().backward()
