"""The cross entropy of a linear layer's scores, computed by parts: the same as at once, with less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import nn
from rgrad.autograd import gradcheck, gradgradcheck
from rgrad.nn import functional as F

F64 = rgrad.float64


def tensors(batch: int, features: int, classes: int, dtype: Any = F64) -> list[Any]:
    random = np.random.default_rng(1)
    shapes = [(batch, features), (classes, features), (classes,)]
    return [rgrad.tensor(random.standard_normal(s), dtype=dtype, requires_grad=True) for s in shapes]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rows", [1, 2, 5, 7, None])
def test_parts_give_what_the_whole_gives(reduction: str, rows: int | None) -> None:
    x, w, b = tensors(7, 3, 6)
    target = rgrad.tensor([0, 5, 2, 1, 1, 3, 4])
    weight = rgrad.linspace(0.5, 2.0, 6, dtype=F64)
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
    found = []
    for chosen in (None, options):
        loss = F.linear_cross_entropy(
            x, w, target, linear_bias=b, weight=weight, reduction=reduction, ignore_index=1, options=chosen
        )
        found.append((loss, *rgrad.autograd.grad(loss.sum(), (x, w, b))))
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_allclose(parts.detach().numpy(), whole.detach().numpy(), rtol=1e-12, atol=1e-14)
    scores = x @ w.T + b
    np.testing.assert_allclose(
        found[1][0].detach().numpy(),
        F.cross_entropy(scores, target, weight, ignore_index=1, reduction=reduction).detach().numpy(),
        rtol=1e-12,
    )


def test_derivatives_of_parts_are_right() -> None:
    x, w, b = tensors(4, 2, 3)
    target = rgrad.tensor([0, 2, 1, 1])
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=3)

    def loss(x: Any, w: Any, b: Any) -> Any:
        return F.linear_cross_entropy(x, w, target, linear_bias=b, options=options)

    assert gradcheck(loss, (x, w, b))
    assert gradgradcheck(loss, (x, w, b))
    # As often as wanted, and of a part of the inputs.
    made = loss(x.detach(), w, b.detach())
    first = rgrad.autograd.grad(made, w, retain_graph=True)[0]
    assert rgrad.equal(first, rgrad.autograd.grad(made, w)[0])


def test_parts_need_less_memory() -> None:
    x, w, _ = tensors(512, 8, 2000, rgrad.float32)
    target = rgrad.arange(512)

    def peak(options: Any) -> int:
        before = rgrad.memory_allocated()
        rgrad.reset_peak_memory_stats()
        F.linear_cross_entropy(x, w, target, options=options).backward()
        x.grad = w.grad = None
        return rgrad.max_memory_allocated() - before

    scores = 512 * 2000 * 4
    assert peak(None) > scores
    assert peak(nn.LinearCrossEntropyOptions()) < scores / 4


def test_the_parts_that_methods_give() -> None:
    options = nn.LinearCrossEntropyOptions
    assert options()._rows(512, 8, 2000, rgrad.float32) == 2
    assert options()._rows(4096, 512, 2048, rgrad.float32) == 512
    assert options()._rows(4096, 512, 2048, rgrad.bfloat16) == 1024
    assert options(batch_chunk_size=9)._rows(4096, 512, 2048, rgrad.float32) == 9
    assert options(batch_chunk_size=9)._rows(4, 512, 2048, rgrad.float32) == 4
    assert options(chunking_method=None)._rows(40, 2, 3, rgrad.float32) == 40
    with pytest.raises(ValueError, match="pass only one"):
        options(batch_chunk_size=9, chunking_method="aspect_ratio")._rows(4096, 512, 2048, rgrad.float32)


def test_what_has_no_parts_is_told() -> None:
    x, w, _ = tensors(4, 2, 3)
    with pytest.warns(UserWarning, match="options`` ignored"):
        F.linear_cross_entropy(
            x, w, rgrad.tensor([0, 2, 1, 1]), label_smoothing=0.5, options=nn.LinearCrossEntropyOptions()
        )
