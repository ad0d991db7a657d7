"""Attention with dropout by blocks of queries: memory grows with the weights of one block, not with all."""

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable
from ...autograd import grad as gradients
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad

# So many weights may be kept for backward; more are computed again, block by block.
_MOST_WEIGHTS = 1 << 20


def _weights(query: Tensor, key: Tensor) -> int:
    lead = math.prod(_core.broadcast_shapes(query.shape[:-3], key.shape[:-3]))
    heads = query.shape[-3] if query.dim() > 2 else 1
    return lead * heads * query.shape[-2] * key.shape[-2]


def _is_large(query: Any, key: Any, dropout_p: float) -> bool:
    """Whether weights are dropped and too many to be kept; what is refused is left to the native function."""
    if not 0 < dropout_p < 1 or query.dim() < 2 or key.dim() < 2 or query.shape[-1] != key.shape[-1]:
        return False
    if _core._level_of(query) or _core._level_of(key):
        return False
    try:
        return _weights(query, key) > _MOST_WEIGHTS
    except RuntimeError:
        return False


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal_from: int | None,
    dropout_p: float,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Attention of a block, whose first query is the one of number ``causal_from`` if later keys are masked."""
    if causal_from is not None:
        shape = query.shape[-2], key.shape[-2]
        mask = _core.ones(shape, dtype=_core.bool, device=query.device).tril(causal_from)
    return _core.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, False, scale=scale, enable_gqa=enable_gqa
    )


class _Block(Function):
    """A block whose weights are computed again in backward, with the same random numbers."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        ctx.state, ctx.options = _core.get_rng_state(), arguments[4:]
        ctx.save_for_backward(*arguments[:4])
        return _attend(*arguments)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        query, key, value, mask = ctx.saved_tensors
        records, now = _core.is_grad_enabled(), _core.get_rng_state()
        # Views of their own, since the graph of the block ends there, and one tensor may be given twice.
        inputs = [None if x is None else x.view_as(x) if records else x.detach() for x in (query, key, value, mask)]
        wanted = [x for x, needs in zip(inputs, ctx.needs_input_grad, strict=False) if x is not None and needs]
        with enable_grad():
            if not records:
                for x in wanted:
                    x.requires_grad_()
            _core.set_rng_state(ctx.state)
            try:
                made = _attend(*inputs, *ctx.options)  # type: ignore[arg-type]
            finally:
                _core.set_rng_state(now)
        found = iter(gradients(made, wanted, grad, create_graph=records))
        needs = ctx.needs_input_grad
        return (
            *(next(found) if needs[i] and inputs[i] is not None else None for i in range(4)),
            None,
            None,
            None,
            None,
        )


def _by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    length = query.shape[-2]
    rows = max(1, _MOST_WEIGHTS * length // _weights(query, key))
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")

    made = []
    for first in range(0, length, rows):
        count = min(rows, length - first)
        mask = attn_mask
        if mask is not None and mask.dim() >= 2 and mask.shape[-2] != 1:
            mask = mask.narrow(-2, first, count)
        part = query.narrow(-2, first, count)
        made.append(_Block.apply(part, key, value, mask, first if is_causal else None, dropout_p, scale, enable_gqa))
    return _core.cat(made, -2)


@overridable("query", "key", "value", native=_core.scaled_dot_product_attention, takes=("query", "key", "value"))
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Weigh values by the softmax of the products of queries and keys (Vaswani et al. 2017).

    It is ``softmax(query @ key.mT * scale + attn_mask) @ value``. The matrix of weights is never in memory, forward or
    backward (Dao et al. 2022), unless there is a gradient of the mask, a graph of the gradient or a tangent. With
    dropout it is there for a block of queries at a time, and is computed again in backward.

    Args:
        query: Queries, of shape ``(..., L, E)`` and a float dtype.
        key: Keys, of shape ``(..., S, E)``.
        value: Values, of shape ``(..., S, V)``.
        attn_mask: A mask that broadcasts to ``(..., L, S)``: bool, where True allows attention, or numbers that are
            added to the scores.
        dropout_p: The probability that a weight is set to 0; the others are multiplied by ``1 / (1 - p)``.
        is_causal: Whether query i attends to keys 0 to i alone.
        scale: The factor of the products; by default ``1 / sqrt(E)``.
        enable_gqa: Whether key and value may have fewer heads (dimension -3), which divide the heads of the queries.

    Returns:
        A tensor of shape ``(..., L, V)``. A query whose keys are all masked gives zeros.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> q = k = v = rgrad.ones(1, 2, 3, 4)
        >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
        rgrad.Size([1, 2, 3, 4])
    """
    if dropout_p and type(query) is Tensor and type(key) is Tensor and _is_large(query, key, dropout_p):
        return _by_blocks(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return _core.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
