"""Attention with several heads as a module."""

from typing import Any

from ... import _core
from ..._core import Tensor
from ..._core import _has_torch_function_variadic as has_torch_function_variadic
from .. import functional, init
from ..functional._attention import BATCH_FIRST, attended
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Attention with several heads (Vaswani et al. 2017).

    The parameters are ``in_proj_weight`` (or ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``, if keys or
    values have another size), ``in_proj_bias``, ``out_proj``, and with ``add_bias_kv`` ``bias_k`` and ``bias_v``.

    Args:
        embed_dim: The size ``E`` of queries and results.
        num_heads: How many heads there are; they divide ``E``.
        dropout: The probability of dropout of weights.
        bias: Whether projections have biases.
        add_bias_kv: Whether a learned key and value are added to all.
        add_zero_attn: Whether a key and a value of zeros are added.
        kdim: The size of keys, by default ``E``.
        vdim: The size of values, by default ``E``.
        batch_first: Whether inputs and the result are ``(N, L, *)`` instead of ``(L, N, *)``.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Queries: ``(L, N, E)`` or ``(L, E)``; keys and values: ``(S, N, *)`` or ``(S, *)``; result: as the queries.

    Raises:
        ValueError: A size is not positive.
        AssertionError: The heads do not divide ``embed_dim``.

    Example:
        >>> layer = nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = rgrad.ones(3, 5, 4)
        >>> out, weights = layer(x, x, x)
        >>> out.shape, weights.shape
        (rgrad.Size([3, 5, 4]), rgrad.Size([3, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def made(*shape: int) -> Parameter:
            return Parameter(_core.empty(shape, device=device, dtype=dtype))

        apart = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = made(3 * embed_dim, embed_dim)
            for name in apart:
                self.register_parameter(name, None)
        else:
            for name, size in zip(apart, (embed_dim, self.kdim, self.vdim), strict=True):
                self.register_parameter(name, made(embed_dim, size))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", made(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, made(1, 1, embed_dim) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            query: Queries.
            key: Keys.
            value: Values.
            key_padding_mask: Of shape ``(N, S)`` or ``(S)``: True hides a key, numbers are added to the scores.
            need_weights: Whether the weights are returned, which takes a matrix of them.
            attn_mask: Of shape ``(L, S)`` or ``(N heads, L, S)``: True hides a key, numbers are added to the scores.
            average_attn_weights: Whether the returned weights are the mean over the heads.
            is_causal: A promise that ``attn_mask`` lets query i attend to keys 0 to i.

        Returns:
            The result, and the weights or None.

        Raises:
            AssertionError: Ranks or sizes do not fit.
            RuntimeError: A mask has another shape.
        """
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            # Equal inputs stay equal, so that they take one product.
            same_query, same = query is key, key is value
            query = query.transpose(1, 0)
            key = query if same_query else key.transpose(1, 0)
            value = key if same else value.transpose(1, 0)
        given: list[Any] = [
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            None,
            None,
            average_attn_weights,
            is_causal,
        ]
        if swapped and not has_torch_function_variadic(*given):
            # Without copies into the other order.
            out, weights = attended(BATCH_FIRST, *given)
        else:
            out, weights = functional.multi_head_attention_forward(*given)
        return (out.transpose(1, 0), weights) if swapped else (out, weights)
