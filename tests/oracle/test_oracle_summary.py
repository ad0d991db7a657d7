"""Multiply-adds of a summary beside torch's FLOP counter, which counts each as two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

Case = tuple[Callable[[Any], Any], list[tuple[int, ...]]]

CASES: dict[str, Case] = {
    "linear": (lambda T: T.nn.Linear(5, 7), [(3, 4, 5)]),
    "linear of a vector": (lambda T: T.nn.Linear(5, 7, bias=False), [(5,)]),
    "mlp": (lambda T: T.nn.Sequential(T.nn.Linear(5, 7), T.nn.ReLU(), T.nn.Linear(7, 2)), [(9, 5)]),
    "conv1d": (lambda T: T.nn.Conv1d(4, 6, 3, stride=2, dilation=2), [(2, 4, 31)]),
    "conv2d": (lambda T: T.nn.Conv2d(4, 6, 3, padding=1, groups=2), [(2, 4, 9, 9)]),
    "conv2d without batch": (lambda T: T.nn.Conv2d(4, 6, (1, 5)), [(4, 9, 9)]),
    "conv2d same": (lambda T: T.nn.Conv2d(4, 6, 5, padding="same"), [(2, 4, 9, 9)]),
    "conv3d": (lambda T: T.nn.Conv3d(2, 3, 2), [(2, 2, 4, 5, 6)]),
    "conv_transpose1d": (lambda T: T.nn.ConvTranspose1d(4, 6, 3, stride=2), [(2, 4, 9)]),
    "conv_transpose2d": (lambda T: T.nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), [(2, 4, 5, 5)]),
    "attention": (
        lambda T: T.nn.MultiheadAttention(8, 2, batch_first=True),
        [(2, 5, 8), (2, 5, 8), (2, 5, 8)],
    ),
    "encoder": (
        lambda T: T.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
        [(2, 5, 8)],
    ),
    "transformer": (
        lambda T: T.nn.Transformer(8, 2, 1, 2, 16, batch_first=True),
        [(2, 5, 8), (2, 3, 8)],
    ),
    "lstm cell": (lambda T: T.nn.LSTMCell(4, 6), [(3, 4)]),
    "norms": (lambda T: T.nn.Sequential(T.nn.LayerNorm(4), T.nn.BatchNorm1d(4), T.nn.Softmax(1)), [(3, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_multiply_adds(name: str) -> None:
    make, sizes = CASES[name]
    theirs = make(torch).train()
    # Its fast path in evaluation is an operation that its counter does not know.
    inputs = [torch.rand(size) for size in sizes]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        theirs(*inputs)
    mine = rgrad.summary(make(rgrad), input_size=sizes, training=True)
    assert 2 * mine.multiply_adds == counter.get_total_flops()
    assert mine.total_parameters == sum(p.numel() for p in theirs.parameters())


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda T: T.ones(2, 3, 4) @ T.ones(4, 5),
    "mm": lambda T: T.mm(T.ones(3, 4), T.ones(4, 5)),
    "bmm": lambda T: T.bmm(T.ones(2, 3, 4), T.ones(2, 4, 5)),
    "addmm": lambda T: T.addmm(T.ones(5), T.ones(3, 4), T.ones(4, 5)),
    "baddbmm": lambda T: T.baddbmm(T.ones(5), T.ones(2, 3, 4), T.ones(2, 4, 5)),
    "einsum": lambda T: T.einsum("bij,bkj->bik", T.ones(2, 3, 4), T.ones(2, 5, 4)),
    "einsum of three": lambda T: T.einsum("ij,jk,kl->il", T.ones(3, 4), T.ones(4, 5), T.ones(5, 6)),
    "tensordot": lambda T: T.tensordot(T.ones(3, 4, 5), T.ones(4, 5, 6), dims=2),
    "inner": lambda T: T.inner(T.ones(3, 4), T.ones(5, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    with FlopCounterMode(display=False) as counter:
        FUNCTIONS[name](torch)

    class Model(rgrad.nn.Module):
        def forward(self, _: Any) -> Any:
            return FUNCTIONS[name](rgrad)

    assert 2 * rgrad.summary(Model(), 0).multiply_adds == counter.get_total_flops()
