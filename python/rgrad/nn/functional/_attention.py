"""Attention with several heads: projections, masks and heads around :func:`scaled_dot_product_attention`."""

import math
import warnings
from typing import Any, Literal, overload

from ... import _core
from ..._core import Tensor, dtype
from ..._operation.overridable import overridable
from ._attention_blocks import scaled_dot_product_attention
from ._dropout import dropout
from ._padding import pad


def _none_or_dtype(input: Tensor | None) -> dtype | None:
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: dtype | None,
    other_name: str,
    target_type: dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add: where a bool mask is true, minus infinity."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != _core.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if is_float:
        return mask
    return _core.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _mha_shape_check(
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


class _Projections:
    """Linear maps of sequences ``(L, N, E)``, which lie in memory as such or, ``batch_first``, as ``(N, L, E)``."""

    def __init__(self, batch_first: bool) -> None:
        self.batch_first = batch_first

    def linear(self, x: Tensor, weight: Any, bias: Any) -> Tensor:
        if self.batch_first:
            return _core.linear(x.transpose(0, 1), weight, bias).transpose(0, 1)
        return _core.linear(x, weight, bias)

    def together(
        self, query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The three projections, whose weights lie in one; equal inputs take one product."""
        size = query.shape[-1]
        if key is value:
            if query is key:
                q, k, v = self.linear(query, weight, bias).chunk(3, -1)
                return q, k, v
            w_q, w_kv = weight.split([size, 2 * size])
            b_q, b_kv = (None, None) if bias is None else bias.split([size, 2 * size])
            k, v = self.linear(key, w_kv, b_kv).chunk(2, -1)
            return self.linear(query, w_q, b_q), k, v
        return self._three((query, key, value), weight.chunk(3), _chunks(bias))

    def apart(
        self, inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Any, Any, Any], biases: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The three projections with weights of their own."""
        size = inputs[0].shape[-1]
        for name, w, t in zip(("q", "k", "v"), weights, inputs, strict=True):
            if w is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
            if tuple(w.shape) != (size, t.shape[-1]):
                wanted = (size, t.shape[-1])
                raise AssertionError(f"expecting {name} weights shape of {wanted}, but got {w.shape}")
        return self._three(inputs, weights, biases)

    def _three(self, inputs: tuple[Tensor, Tensor, Tensor], weights: Any, biases: Any) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (self.linear(t, w, b) for t, w, b in zip(inputs, weights, biases, strict=True))
        return q, k, v

    def last(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The projection of joined heads, from ``(N, heads, L, E / heads)``."""
        batch, heads, length, head = x.shape
        if self.batch_first:
            rows = x.transpose(1, 2).contiguous().view(batch * length, heads * head)
            return _core.linear(rows, weight, bias).view(batch, length, -1).transpose(0, 1)
        rows = x.permute(2, 0, 1, 3).contiguous().view(length * batch, heads * head)
        return _core.linear(rows, weight, bias).view(length, batch, -1)


BATCH_FIRST = _Projections(batch_first=True)
_SEQUENCE_FIRST = _Projections(batch_first=False)


def _chunks(bias: Tensor | None) -> Any:
    return (None, None, None) if bias is None else bias.chunk(3)


# Private names of PyTorch, which programs with attention of their own call.


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    return _SEQUENCE_FIRST.together(q, k, v, w, b)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    return _SEQUENCE_FIRST.apart((q, k, v), (w_q, w_k, w_v), (b_q, b_k, b_v))


def _heads(x: Tensor, batch: int, heads: int, size: int) -> Tensor:
    """``(L, N, E)`` as ``(N, heads, L, E / heads)``."""
    return x.view(x.shape[0], batch, heads, size).permute(1, 2, 0, 3)


def _static(given: Tensor, name: str, batch: int, heads: int, size: int) -> Tensor:
    if given.shape[0] != batch * heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * heads}, but got {given.shape[0]}")
    if given.shape[2] != size:
        raise AssertionError(f"expecting {name}.size(2) of {size}, but got {given.shape[2]}")
    return given.view(batch, heads, given.shape[1], size)


def attended(
    projections: _Projections,
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
    training: bool,
    key_padding_mask: Tensor | None,
    need_weights: bool,
    attn_mask: Tensor | None,
    use_separate_proj_weight: bool,
    q_proj_weight: Tensor | None,
    k_proj_weight: Tensor | None,
    v_proj_weight: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    average_attn_weights: bool,
    is_causal: bool,
) -> tuple[Tensor, Tensor | None]:
    """Attend as :func:`multi_head_attention_forward`, without asking handlers of ``__torch_function__``.

    The projections know in which order sequences lie in memory.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
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
    padding = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
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
        q, k, v = projections.apart((query, key, value), weights, _chunks(in_proj_bias))
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = projections.together(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        wanted = (length, keys) if attn_mask.dim() == 2 else (batch * num_heads, length, keys)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {wanted}."
            )
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.view(batch, num_heads, length, keys)

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
    q = _heads(q, batch, num_heads, head)
    k = _heads(k, batch, num_heads, head) if static_k is None else _static(static_k, "static_k", batch, num_heads, head)
    v = _heads(v, batch, num_heads, head) if static_v is None else _static(static_v, "static_v", batch, num_heads, head)
    if add_zero_attn:
        zeros = _core.zeros((batch, num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = _core.cat([k, zeros], 2), _core.cat([v, zeros], 2)
        one_more()
    keys = k.shape[2]
    if padding is not None:
        if tuple(padding.shape) != (batch, keys):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, keys)}, but got {padding.shape}")
        padding = padding.view(batch, 1, 1, keys)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    p = dropout_p if training else 0.0
    shares = None
    if need_weights:
        scores = _core.matmul(q * math.sqrt(1.0 / float(head)), k.transpose(-2, -1))
        if attn_mask is not None:
            scores = scores + attn_mask
        shares = _core.softmax(scores, -1)
        if p > 0.0:
            shares = dropout(shares, p)
        out = _core.matmul(shares, v)
        if average_attn_weights:
            shares = shares.mean(1)
    else:
        out = scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal)
    out = projections.last(out, out_proj_weight, out_proj_bias)
    if batched:
        return out, shares
    return out.squeeze(1), None if shares is None else shares.squeeze(0)


@overload
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
    need_weights: Literal[True] = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
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
    *,
    need_weights: Literal[False],
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, None]: ...
@overload
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
) -> tuple[Tensor, Tensor | None]: ...
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
    return attended(_SEQUENCE_FIRST, **locals())
