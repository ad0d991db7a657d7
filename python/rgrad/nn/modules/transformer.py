"""The layers of a transformer (Vaswani et al. 2017), stacks of them, and the whole model."""

import copy
import math
from collections.abc import Callable
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional, init
from ._attention import MultiheadAttention
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

_Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(activation: _Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return functional.relu
    if activation == "gelu":
        return functional.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _relu_or_gelu(activation: Any) -> int:
    """1 for ReLU, 2 for GELU, as functions and as modules; 0 for all else."""
    if activation is functional.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is functional.gelu or isinstance(activation, GELU) else 0


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Minus infinity above the diagonal."""
    return _core.triu(_core.full((sz, sz), -math.inf, device=device, dtype=dtype), diagonal=1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """What was said, or else whether the mask is that of :func:`_generate_square_subsequent_mask`."""
    if is_causal is not None or mask is None:
        return is_causal is True
    wanted = _generate_square_subsequent_mask(
        mask.shape[-2] if size is None else size, device=mask.device, dtype=mask.dtype
    )
    return tuple(mask.shape) == tuple(wanted.shape) and bool((mask == wanted).all())


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The number of steps."""
    return src.shape[1 if batch_first and src.dim() != 2 else 0]


class _Layer(Module):
    """What layers of both kinds have in common: attention to themselves and the feed-forward part."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: _Activation,
        norms: int,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **place}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if norms > 2:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        for k in range(norms):
            setattr(self, f"norm{k + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for k in range(norms):
            setattr(self, f"dropout{k + 1}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        made = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        out: Tensor = self.dropout1(made[0])
        return out

    def _feed(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return out


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself and a feed-forward network, each with a residual connection and layer norm.

    Args:
        d_model: Features of an element.
        nhead: How many heads there are.
        dim_feedforward: Features inside of the feed-forward network.
        dropout: The probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function, between the two linear layers.
        layer_norm_eps: Added to variances.
        batch_first: Whether inputs and results are ``(N, L, d_model)`` instead of ``(L, N, d_model)``.
        norm_first: Whether layer norm comes before attention and network instead of behind them.
        bias: Whether linear layers and layer norms have biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input and output: ``(L, N, d_model)`` or ``(L, d_model)``.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=4, nhead=2, batch_first=True)
        >>> layer(rgrad.ones(3, 5, 4)).shape
        rgrad.Size([3, 5, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest = (layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, 2, *rest)
        # PyTorch's class reads it from a pickle of this one.
        self.activation_relu_or_gelu = _relu_or_gelu(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Apply the layer.

        Args:
            src: The sequence.
            src_mask: A mask of attention, of shape ``(L, L)`` or ``(N heads, L, L)``.
            src_key_padding_mask: Of shape ``(N, L)`` or ``(L)``; True hides an element.
            is_causal: A promise that ``src_mask`` lets element i attend to 0 to i.

        Returns:
            A sequence of the same shape.
        """
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        out: Tensor = self.norm2(x + self._ff_block(x))
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout2(self._feed(x))
        return out


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, to another one, and a feed-forward network.

    Args:
        d_model: Features of an element.
        nhead: How many heads there are.
        dim_feedforward: Features inside of the feed-forward network.
        dropout: The probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function, between the two linear layers.
        layer_norm_eps: Added to variances.
        batch_first: Whether inputs and results are ``(N, L, d_model)`` instead of ``(L, N, d_model)``.
        norm_first: Whether layer norms come before the parts instead of behind them.
        bias: Whether linear layers and layer norms have biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input and output: ``(L, N, d_model)`` or ``(L, d_model)``; the other sequence: ``(S, N, d_model)`` or
        ``(S, d_model)``.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=4, nhead=2)
        >>> layer(rgrad.ones(5, 3, 4), rgrad.ones(6, 3, 4)).shape
        rgrad.Size([5, 3, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        rest = (layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, 3, *rest)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Apply the layer.

        Args:
            tgt: The sequence.
            memory: The other sequence, which an encoder made.
            tgt_mask: A mask of attention to ``tgt``.
            memory_mask: A mask of attention to ``memory``.
            tgt_key_padding_mask: True hides an element of ``tgt``.
            memory_key_padding_mask: True hides an element of ``memory``.
            tgt_is_causal: A promise that ``tgt_mask`` lets element i attend to 0 to i.
            memory_is_causal: The same of ``memory_mask``.

        Returns:
            A sequence of the shape of ``tgt``.
        """
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        out: Tensor = self.norm3(x + self._ff_block(x))
        return out

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        made = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        out: Tensor = self.dropout2(made[0])
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout3(self._feed(x))
        return out


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: The layer, which is copied.
        num_layers: How many copies there are.
        norm: A module behind the last layer, or None.
        enable_nested_tensor: Accepted; there are no nested tensors.
        mask_check: Accepted, too.

    Shape:
        Input and output: those of the layer.

    Example:
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), num_layers=2)
        >>> encoder(rgrad.ones(5, 3, 4)).shape
        rgrad.Size([5, 3, 4])
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Apply all layers.

        Args:
            src: The sequence.
            mask: A mask of attention, of shape ``(L, L)`` or ``(N heads, L, L)``.
            src_key_padding_mask: Of shape ``(N, L)`` or ``(L)``; True hides an element.
            is_causal: Whether ``mask`` lets element i attend to 0 to i; None finds out.

        Returns:
            A sequence of the same shape.
        """
        first = self.layers[0] if len(self.layers) else None
        batch_first = bool(first is not None and first.self_attn.batch_first)
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return out if self.norm is None else self.norm(out)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: The layer, which is copied.
        num_layers: How many copies there are.
        norm: A module behind the last layer, or None.

    Shape:
        Input and output: those of the layer.

    Example:
        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), num_layers=2)
        >>> decoder(rgrad.ones(5, 3, 4), rgrad.ones(6, 3, 4)).shape
        rgrad.Size([5, 3, 4])
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Apply all layers.

        Args:
            tgt: The sequence.
            memory: The other sequence, which an encoder made.
            tgt_mask: A mask of attention to ``tgt``.
            memory_mask: A mask of attention to ``memory``.
            tgt_key_padding_mask: True hides an element of ``tgt``.
            memory_key_padding_mask: True hides an element of ``memory``.
            tgt_is_causal: Whether ``tgt_mask`` lets element i attend to 0 to i; None finds out.
            memory_is_causal: A promise that ``memory_mask`` does.

        Returns:
            A sequence of the shape of ``tgt``.
        """
        first = self.layers[0] if len(self.layers) else None
        batch_first = bool(first is not None and first.self_attn.batch_first)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        out = tgt
        for layer in self.layers:
            out = layer(
                out,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model: Features of an element.
        nhead: How many heads there are.
        num_encoder_layers: How many layers the encoder has.
        num_decoder_layers: How many layers the decoder has.
        dim_feedforward: Features inside of the feed-forward networks.
        dropout: The probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function, between the two linear layers of a network.
        custom_encoder: An encoder instead of the usual one.
        custom_decoder: A decoder instead of the usual one.
        layer_norm_eps: Added to variances.
        batch_first: Whether inputs and results are ``(N, L, d_model)`` instead of ``(L, N, d_model)``.
        norm_first: Whether layer norms come before the parts of layers instead of behind them.
        bias: Whether linear layers and layer norms have biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Sequences: ``(S, N, d_model)`` and ``(T, N, d_model)``; output: ``(T, N, d_model)``.

    Example:
        >>> model = nn.Transformer(d_model=4, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
        >>> model(rgrad.ones(5, 3, 4), rgrad.ones(6, 3, 4)).shape
        rgrad.Size([6, 3, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = functional.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        rest = (batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*sizes, *rest), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*sizes, *rest), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode ``src`` and decode ``tgt`` beside it.

        Args:
            src: The sequence of the encoder.
            tgt: The sequence of the decoder.
            src_mask: A mask of attention to ``src``.
            tgt_mask: A mask of attention to ``tgt``.
            memory_mask: A mask of the decoder's attention to what the encoder made.
            src_key_padding_mask: True hides an element of ``src``.
            tgt_key_padding_mask: True hides an element of ``tgt``.
            memory_key_padding_mask: True hides an element of what the encoder made.
            src_is_causal: Whether ``src_mask`` lets element i attend to 0 to i; None finds out.
            tgt_is_causal: The same of ``tgt_mask``.
            memory_is_causal: A promise that ``memory_mask`` does.

        Returns:
            A sequence of the shape of ``tgt``.

        Raises:
            RuntimeError: Batches or features differ.
        """
        batched = src.dim() == 3
        at = 0 if self.batch_first else 1
        if batched and src.shape[at] != tgt.shape[at]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        out: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return out

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Make a mask that lets element i attend to 0 to i: minus infinity above the diagonal, else zeros.

        Args:
            sz: How many elements there are.
            device: The device of the mask.
            dtype: Its dtype.

        Returns:
            The mask, of shape ``(sz, sz)``.

        Example:
            >>> nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        """Draw the weights anew."""
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
