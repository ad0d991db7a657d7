"""Attention with dropout by blocks: the same distribution and gradients as in one piece, and memory of one block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
import rgrad.nn.functional as F
from rgrad.nn.functional import _attention_blocks as blocks


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_MOST_WEIGHTS", 64)


def operands(*lead: int, length: int = 13, keys: int = 11, heads: int = 2) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(*lead, heads, length, 4), (*lead, heads, keys, 4), (*lead, heads, keys, 3)]
    return [rgrad.tensor(rng.normal(size=s)).requires_grad_() for s in shapes]


def observed(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, p: float = 0.5) -> Any:
    """The dropped weights themselves: those of values that are an identity."""
    eye = rgrad.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return F.scaled_dot_product_attention(q, k, eye, mask, p, causal)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [None, "bool", "float", "row"])
def test_weights_are_kept_or_dropped(causal: bool, masked: str | None) -> None:
    if causal and masked:
        with pytest.raises(RuntimeError, match="is_causal"):
            observed(*operands(2), mask=rgrad.ones(13, 11), causal=True)
        return
    q, k, v = operands(2)
    rng = np.random.default_rng(1)
    mask = {
        None: None,
        "bool": rgrad.tensor(rng.uniform(size=(13, 11)) > 0.3),
        "float": rgrad.tensor(rng.normal(size=(2, 1, 13, 11))),
        "row": rgrad.tensor(rng.normal(size=(1, 11))),
    }[masked]
    rgrad.manual_seed(0)
    got = observed(q, k, v, mask, causal).detach()
    whole = observed(q, k, v, mask, causal, p=0.0).detach()
    kept = got != 0
    np.testing.assert_allclose(got[kept].numpy(), 2 * whole[kept].numpy(), rtol=1e-10)
    possible = int((whole != 0).sum())
    assert 0.4 * possible < int(kept.sum()) < 0.6 * possible


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal: bool) -> None:
    """Backward draws the same numbers again, so differences of the forward with one seed are its derivative."""

    def function(*tensors: Any) -> Any:
        rgrad.manual_seed(3)
        return F.scaled_dot_product_attention(*tensors, dropout_p=0.4, is_causal=causal)

    inputs = operands(length=9, keys=7)
    assert rgrad.autograd.gradcheck(function, inputs)
    assert rgrad.autograd.gradgradcheck(function, operands(length=5, keys=7))

    def of_itself(x: Any) -> Any:
        return function(x, x, x)

    assert rgrad.autograd.gradcheck(of_itself, operands(length=9)[0])
    assert rgrad.autograd.gradgradcheck(of_itself, operands(length=7)[0])


@pytest.mark.usefixtures("small_blocks")
def test_fewer_heads_of_keys() -> None:
    q, k, v = operands(2, heads=2)
    k, v = k[:, :1], v[:, :1]
    made = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, enable_gqa=True)
    assert made.shape == (2, 2, 13, 3)
    made.sum().backward()


def test_memory_is_that_of_a_block() -> None:
    q, k, v = (rgrad.rand(1, 4, 2048, 8).requires_grad_() for _ in range(3))
    rgrad.reset_peak_memory_stats()
    before = rgrad.memory_allocated()
    F.scaled_dot_product_attention(q, k, v, dropout_p=0.1).sum().backward()
    assert rgrad.max_memory_allocated() - before < 4 * 2048 * 2048 * 4 / 2  # half of the weights in one piece


@pytest.mark.usefixtures("small_blocks")
def test_transforms_and_refusals() -> None:
    q, k, v = (x.detach() for x in operands(2))
    made = rgrad.func.vmap(lambda *t: F.scaled_dot_product_attention(*t, dropout_p=0.5), randomness="different")(
        q, k, v
    )
    assert made.shape == (2, 2, 13, 3)
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(q, k, v[..., :5, :], dropout_p=0.5)
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(q, k, v, rgrad.ones(5, 11), dropout_p=0.5)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
@pytest.mark.parametrize("is_part", [False, True])
def test_the_result_lies_in_memory_as_the_queries_do(order: tuple[int, ...], is_part: bool) -> None:
    """So that heads are joined without a copy: heads in rows, batch first or rows first."""
    sizes = (3, 2, 5, 4)
    numbers = np.random.default_rng(2).normal(size=[sizes[d] for d in order])
    back = [order.index(d) for d in range(4)]
    q = rgrad.tensor(numbers).permute(back)
    if is_part:
        q = rgrad.stack([rgrad.tensor(numbers)] * 3, 2)[:, :, 1].permute(back)
    plain = q.contiguous()
    out = F.scaled_dot_product_attention(q, plain, plain)
    assert out.permute(order).is_contiguous()
    assert out.shape == sizes
    np.testing.assert_array_equal(out.numpy(), F.scaled_dot_product_attention(plain, plain, plain).numpy())


def test_the_gradient_of_a_split_lies_as_its_parts_do() -> None:
    """What comes before then needs no copy of it. Parts in different orders, or of which some have none, give rows."""
    wide = rgrad.randn(4, 3, 6, requires_grad=True)
    turned = wide.transpose(0, 1)
    seen: list[tuple[int, ...]] = []
    turned.register_hook(lambda g: seen.append(g.stride()))
    a, b = turned.chunk(2, -1)
    g = rgrad.randn(4, 3, 3).transpose(0, 1)
    rgrad.autograd.backward([a, b], [g, 2 * g], retain_graph=True)
    rgrad.autograd.backward([a, b], [g, g.contiguous()], retain_graph=True)
    rgrad.autograd.backward([a], [g.contiguous()])
    assert seen == [(6, 18, 1), (24, 6, 1), (24, 6, 1)]
    once, rows = g.transpose(0, 1), g.contiguous().transpose(0, 1)
    want = rgrad.cat([once, 2 * once], -1) + rgrad.cat([rows, rows], -1) + rgrad.cat([rows, 0 * rows], -1)
    assert wide.grad is not None
    assert wide.grad.is_contiguous()
    np.testing.assert_allclose(wide.grad.numpy(), want.numpy(), rtol=1e-6)
