"""Attention with functions of positions, beside the same written out, and its gradients."""

from typing import Any

import pytest

import rgrad
from rgrad.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def near(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q - kv).abs() < 5


def given(*sizes: int, heads: int = 2) -> list[rgrad.Tensor]:
    rgrad.manual_seed(0)
    return [rgrad.randn(2, h, n, 4, dtype=rgrad.float64) for h, n in zip((2, heads, heads), sizes, strict=True)]


def test_without_functions_it_is_attention() -> None:
    q, k, v = given(7, 9, 9)
    want = rgrad.nn.functional.scaled_dot_product_attention(q, k, v)
    assert rgrad.allclose(flex_attention(q, k, v), want)
    assert rgrad.allclose(flex_attention(q, k, v, lambda s, *at: s * 2), flex_attention(q, k, v, scale=1.0))


@pytest.mark.parametrize("mask", [causal, near, and_masks(causal, near), or_masks(causal, near), noop_mask])
def test_masks_are_those_of_attention(mask: Any) -> None:
    q, k, v = given(9, 9, 9)
    dense = create_mask(mask, None, None, 9, 9)
    assert dense.shape == (1, 1, 9, 9)
    want = rgrad.nn.functional.scaled_dot_product_attention(q, k, v, dense)
    found = flex_attention(q, k, v, block_mask=create_block_mask(mask, None, None, 9, 9, BLOCK_SIZE=4))
    assert rgrad.allclose(found, want)


def test_scores_by_position() -> None:
    q, k, v = given(5, 6, 6)
    at = rgrad.arange(5)[:, None] - rgrad.arange(6)
    heads = rgrad.arange(2).reshape(2, 1, 1)
    scores = q @ k.mT / 2 - at.abs() * (heads + 1) * 0.1
    found, lse = flex_attention(q, k, v, lambda s, b, h, i, j: s - (i - j).abs() * (h + 1) * 0.1, return_lse=True)
    assert rgrad.allclose(found, scores.softmax(-1) @ v)
    assert rgrad.allclose(lse, scores.logsumexp(-1))
    _, beside = flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))
    assert beside.lse is None
    assert rgrad.allclose(beside.max_scores, (q @ k.mT / 2).amax(-1))


def test_a_query_without_keys_gives_zero() -> None:
    q, k, v = given(4, 4, 4)
    mask = create_block_mask(lambda b, h, q, kv: q > kv, None, None, 4, 4)
    found = flex_attention(q.requires_grad_(), k, v, block_mask=mask)
    assert found[:, :, 0].abs().sum() == 0
    found.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()


def test_heads_are_shared() -> None:
    q, k, v = given(4, 4, 4, heads=1)
    assert rgrad.allclose(
        flex_attention(q, k, v, enable_gqa=True), flex_attention(q, k.expand(q.shape), v.expand(q.shape))
    )
    with pytest.raises(ValueError, match="Hq=2 and Hkv=1. Try setting enable_gqa=True"):
        flex_attention(q, k, v)
    with pytest.raises(ValueError, match="4D tensors"):
        flex_attention(q[0], k, v)


def test_gradients() -> None:
    inputs = tuple(x.requires_grad_() for x in given(4, 5, 5))
    mask = create_block_mask(lambda b, h, q, kv: q + 1 >= kv, None, None, 4, 5, BLOCK_SIZE=2)

    def function(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: (s - (i - j) * 0.1).tanh(), mask)

    assert rgrad.autograd.gradcheck(function, inputs)
    assert rgrad.autograd.gradgradcheck(function, inputs)


def test_blocks_of_a_mask() -> None:
    mask = create_block_mask(causal, 1, 1, 300, 300)
    assert mask.shape == (1, 1, 300, 300)
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.kv_indices[0, 0].tolist() == [[0, 1, 2], [1, 0, 2], [0, 1, 2]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.sparsity() == pytest.approx(-9.226666666666672)
    assert mask.to("cpu").numel() == 90000
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        and_masks(causal, 3)  # type: ignore[arg-type]
