"""Gradients that are much larger than what they are computed from: they are right, and no lock is held meanwhile.

In builds with debug assertions a large buffer that is allocated under a guard is an InternalError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.nn import functional as F

N = 1_200_000
AT = rgrad.tensor([1, 7])
WIDE = (300, 4000)

# A function of a tensor of these sizes, and how many elements of the tensor it depends on.
CASES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], int]] = {
    "embedding": ((N // 4, 4), lambda x: F.embedding(AT, x), 8),
    "embedding_bag": ((N // 4, 4), lambda x: F.embedding_bag(AT[None], x), 8),
    "index_select": ((N,), lambda x: x.index_select(0, AT), 2),
    "gather": ((N,), lambda x: x.gather(0, AT), 2),
    "take": ((N,), lambda x: x.take(AT), 2),
    "index": ((N,), lambda x: x[AT], 2),
    "masked_select": ((N,), lambda x: x.masked_select(rgrad.arange(N) < 3), 3),
    "select": ((N,), lambda x: x[5], 1),
    "slice": ((N,), lambda x: x[2:6], 4),
    "unfold": ((N,), lambda x: x.unfold(0, 2, N - 2), 4),
    "as_strided": ((N,), lambda x: x.as_strided((3,), (1,), 4), 3),
    "diagonal": (WIDE, lambda x: x.diagonal(), 300),
    "trace": ((1100, 1100), lambda x: x.trace(), 1100),
    "kthvalue": ((N,), lambda x: x.kthvalue(2)[0], 1),
    "topk": ((N,), lambda x: x.topk(2)[0], 2),
    "nll_loss": (WIDE, lambda x: F.nll_loss(x, rgrad.arange(300)), 300),
    "nll_loss weight": (WIDE, lambda x: F.nll_loss(x, rgrad.arange(300), rgrad.ones(4000)), 300),
    "nll_loss 2d": ((2, 60, 100, 100), lambda x: F.nll_loss(x, rgrad.zeros(2, 100, 100, dtype=rgrad.int64)), 20000),
    "cross_entropy": (WIDE, lambda x: F.cross_entropy(x, rgrad.arange(300)), N),
    "conv_transpose2d": ((1, 1, 2, 2), lambda x: F.conv_transpose2d(x, rgrad.ones(1, 1, 2, 2), stride=1100), 4),
    "conv2d": ((1, 1, 1100, 1100), lambda x: F.conv2d(x, rgrad.ones(1, 1, 2, 2), stride=1098), 16),
    "max_pool2d": ((1, 1, 1100, 1100), lambda x: F.max_pool2d(x, 1100), 1),
    "interpolate": ((1, 1, 1100, 1100), lambda x: F.interpolate(x, size=(2, 2)), 4),
    "grid_sample": ((1, 1, 1100, 1100), lambda x: F.grid_sample(x, rgrad.zeros(1, 1, 1, 2), align_corners=False), 4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pending", [False, True])
def test_gradients_are_much_larger_than_results(name: str, pending: bool) -> None:
    shape, f, count = CASES[name]
    rgrad.manual_seed(0)
    x = rgrad.randn(shape, requires_grad=True)
    f(x * 2 if pending else x).sum().backward()
    assert x.grad.shape == x.shape
    assert int((x.grad != 0).sum()) == count


def test_under_vmap() -> None:
    x = rgrad.randn(3, N // 2)
    g = rgrad.func.vmap(rgrad.func.grad(lambda v: v[AT].sum() + v[5]))(x)
    assert int((g != 0).sum()) == 9
