"""Attention with several heads: projections, masks and heads around :func:`scaled_dot_product_attention`."""

import math
import warnings
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._overridable import overridable
from ._attention_blocks import scaled_dot_product_attention
from ._dropout import dropout
from ._padding import pad


def _as_numbers(
    mask: Tensor | None, name: str, dtype: Any, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """A mask as numbers to add: where a bool mask is true, minus infinity."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != _core.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if is_float:
        return mask
    return _core.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _check_ranks(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether the inputs are batches."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                "tensor instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if rank == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {tuple(attn_mask.shape)}")
    return rank == 3


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections, whose weights lie in one; equal inputs take one product."""
    size = query.shape[-1]
    if key is value:
        if query is key:
            made = _core.linear(query, weight, bias).unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2)
            made = made.contiguous()
            return made[0], made[1], made[2]
        w_q, w_kv = weight.split([size, 2 * size])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, 2 * size])
        both = _core.linear(key, w_kv, b_kv).unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        both = both.contiguous()
        return _core.linear(query, w_q, b_q), both[0], both[1]
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return _core.linear(query, w_q, b_q), _core.linear(key, w_k, b_k), _core.linear(value, w_v, b_v)


def _projected_apart(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Any, Any, Any], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = inputs
    for name, w in zip(("q", "k", "v"), weights, strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    w_q, w_k, w_v = weights
    size = query.shape[-1]
    for name, w, t in (("query", w_q, query), ("key", w_k, key), ("value", w_v, value)):
        wanted = (size, t.shape[-1])
        if tuple(w.shape) != wanted:
            raise AssertionError(f"expecting {name} weights shape of {wanted}, but got {w.shape}")
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return _core.linear(query, w_q, b_q), _core.linear(key, w_k, b_k), _core.linear(value, w_v, b_v)


def _static(given: Tensor, name: str, batch_heads: int, size: int) -> Tensor:
    if given.shape[0] != batch_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch_heads}, but got {given.shape[0]}")
    if given.shape[2] != size:
        raise AssertionError(f"expecting {name}.size(2) of {size}, but got {given.shape[2]}")
    return given


@overridable(
    "query", "key", "value", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj_weight", "out_proj_bias"
)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend with several heads (Vaswani et al. 2017): project, attend in each head, join the heads, and project again.

    Args:
        query: Queries, of shape ``(L, N, E)`` or ``(L, E)``.
        key: Keys, of shape ``(S, N, K)`` or ``(S, K)``.
        value: Values, of shape ``(S, N, V)`` or ``(S, V)``.
        embed_dim_to_check: ``E``.
        num_heads: How many heads there are; they divide ``E``.
        in_proj_weight: Weights of the three projections, of shape ``(3 E, E)``.
        in_proj_bias: Their biases, of shape ``(3 E)``, or None.
        bias_k: A key that is added to all, of shape ``(1, 1, E)``, or None.
        bias_v: Its value, or None.
        add_zero_attn: Whether a key and a value of zeros are added.
        dropout_p: The probability of dropout of weights.
        out_proj_weight: Weights of the last projection, of shape ``(E, E)``.
        out_proj_bias: Its biases, of shape ``(E)``, or None.
        training: False makes dropout the identity.
        key_padding_mask: Of shape ``(N, S)`` or ``(S)``: True hides a key, numbers are added to the scores.
        need_weights: Whether the weights are returned, which takes a matrix of them.
        attn_mask: Of shape ``(L, S)`` or ``(N heads, L, S)``: True hides a key, numbers are added to the scores.
        use_separate_proj_weight: Whether the projections have weights of their own, the following three.
        q_proj_weight: Of shape ``(E, E)``.
        k_proj_weight: Of shape ``(E, K)``.
        v_proj_weight: Of shape ``(E, V)``.
        static_k: Keys instead of the projected ones, of shape ``(N heads, S, E / heads)``.
        static_v: Values instead of the projected ones.
        average_attn_weights: Whether the returned weights are the mean over the heads.
        is_causal: A promise that ``attn_mask`` lets query i attend to keys 0 to i.

    Returns:
        The result, of the shape of ``query``, and the weights, of shape ``(N, L, S)`` or ``(N, heads, L, S)``, or None.

    Raises:
        AssertionError: Ranks or sizes do not fit.
        RuntimeError: A mask has another shape, or there is none although ``is_causal``.

    Example:
        >>> x, w = rgrad.ones(3, 2, 4), rgrad.eye(4)
        >>> out, weights = F.multi_head_attention_forward(
        ...     x, x, x, 4, 2, rgrad.cat([w, w, w]), None, None, None, False, 0.0, w, None
        ... )
        >>> out.shape, weights.shape
        (rgrad.Size([3, 2, 4]), rgrad.Size([2, 3, 3]))
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # One unsqueezed tensor for equal inputs, so that they take one product.
        same_query, same = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same_query else key.unsqueeze(1)
        value = key if same else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    keys = key.shape[0]
    padding = _as_numbers(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _as_numbers(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and padding is None and not need_weights
    if size != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}")
    head = size // num_heads
    if head * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected_apart((query, key, value), weights, in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        wanted = (length, keys) if attn_mask.dim() == 2 else (batch * num_heads, length, keys)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {wanted}."
            )
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)

    def one_more() -> None:
        nonlocal attn_mask, padding
        attn_mask = None if attn_mask is None else pad(attn_mask, (0, 1))
        padding = None if padding is None else pad(padding, (0, 1))

    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must both be None, or both be tensors")
    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = _core.cat([k, bias_k.repeat(1, batch, 1)])
        v = _core.cat([v, bias_v.repeat(1, batch, 1)])
        one_more()
    q = q.view(length, batch * num_heads, head).transpose(0, 1)
    if static_k is None:
        k = k.view(k.shape[0], batch * num_heads, head).transpose(0, 1)
    else:
        k = _static(static_k, "static_k", batch * num_heads, head)
    if static_v is None:
        v = v.view(v.shape[0], batch * num_heads, head).transpose(0, 1)
    else:
        v = _static(static_v, "static_v", batch * num_heads, head)
    if add_zero_attn:
        zeros = _core.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = _core.cat([k, zeros], 1), _core.cat([v, zeros], 1)
        one_more()
    keys = k.shape[1]
    if padding is not None:
        if tuple(padding.shape) != (batch, keys):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, keys)}, but got {padding.shape}")
        padding = padding.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1)
        if attn_mask is None:
            attn_mask = padding.reshape(batch * num_heads, 1, keys)
        else:
            attn_mask = attn_mask + padding.reshape(batch * num_heads, 1, keys)
    p = dropout_p if training else 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / float(head))
        scores = _core.bmm(scaled, k.transpose(-2, -1))
        if attn_mask is not None:
            scores = scores + attn_mask
        shares = _core.softmax(scores, -1)
        if p > 0.0:
            shares = dropout(shares, p)
        out = _core.bmm(shares, v).transpose(0, 1).contiguous().view(length * batch, size)
        out = _core.linear(out, out_proj_weight, out_proj_bias).view(length, batch, -1)
        shares = shares.view(batch, num_heads, length, keys)
        if average_attn_weights:
            shares = shares.mean(1)
        return (out, shares) if batched else (out.squeeze(1), shares.squeeze(0))
    if attn_mask is not None:
        shared = attn_mask.shape[0] == 1
        attn_mask = attn_mask.unsqueeze(0) if shared else attn_mask.view(batch, num_heads, -1, keys)
    out = scaled_dot_product_attention(
        q.view(batch, num_heads, length, head),
        k.view(batch, num_heads, keys, head),
        v.view(batch, num_heads, keys, head),
        attn_mask,
        p,
        is_causal,
    )
    out = out.permute(2, 0, 1, 3).contiguous().view(batch * length, size)
    out = _core.linear(out, out_proj_weight, out_proj_bias).view(length, batch, -1)
    return (out, None) if batched else (out.squeeze(1), None)
