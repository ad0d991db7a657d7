"""PyTorch's ``flex_attention``: attention whose scores and mask are functions of positions, as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from ...func import vmap

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` gives beside the result.

    Attributes:
        lse: Whether to give the logarithms of the sums.
        max_scores: Whether to give the largest scores.

    Example:
        >>> from rgrad.nn.attention.flex_attention import AuxRequest
        >>> AuxRequest(lse=True).max_scores
        False
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by :class:`AuxRequest`; the rest is None.

    Attributes:
        lse: Shape (B, H, L).
        max_scores: Shape (B, H, L).

    Example:
        >>> from rgrad.nn.attention.flex_attention import AuxRequest, flex_attention
        >>> x = rgrad.ones(1, 1, 2, 4)
        >>> flex_attention(x, x, x, return_aux=AuxRequest(max_scores=True))[1].max_scores
        tensor([[[2., 2.]]])
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that leaves everything in.

    Args:
        batch: The number of the batch.
        head: The number of the head.
        token_q: The position of the query.
        token_kv: The position of the key.

    Returns:
        True.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_mask, noop_mask
        >>> create_mask(noop_mask, None, None, 1, 2)
        tensor([[[[True, True]]]])
    """
    return batch.new_ones((), dtype=_core.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what all masks leave in.

    Args:
        *mask_mods: Functions of batch, head, and the positions of query and key.

    Returns:
        A function like them.

    Raises:
        RuntimeError: One of them cannot be called.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_mask, and_masks
        >>> both = and_masks(lambda b, h, q, kv: q <= kv, lambda b, h, q, kv: kv > 1)
        >>> create_mask(both, None, None, 1, 3)[0, 0, 0].tolist()
        [False, False, True]
    """
    _check_masks("and_masks", mask_mods)

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_ones((), dtype=_core.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what one of the masks leaves in.

    Args:
        *mask_mods: Functions of batch, head, and the positions of query and key.

    Returns:
        A function like them.

    Raises:
        RuntimeError: One of them cannot be called.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_mask, or_masks
        >>> both = or_masks(lambda b, h, q, kv: q <= kv, lambda b, h, q, kv: kv > 1)
        >>> create_mask(both, None, None, 1, 3)[0, 0, 0].tolist()
        [True, True, True]
    """
    _check_masks("or_masks", mask_mods)

    def one(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=_core.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q, kv)
        return result

    return one


def _check_masks(name: str, masks: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"{name}: All inputs should be callable mask_mods: {masks}")


def _over_positions(function: Callable[..., Tensor], with_score: bool) -> Callable[..., Tensor]:
    """A function of single positions, for all of them: of batches, heads, queries and keys, in this order."""
    score = (0,) if with_score else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, in_dims=(*score, *dims))
    return function


def _positions(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    return [_core.arange(n, device=device) for n in sizes]


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """A mask as a tensor.

    Args:
        mod_fn: A function of batch, head, and the positions of query and key, which gives a truth value; or one that
            gives a score, of which the first argument is a score of 0.
        B: The number of batches; None stands for one.
        H: The number of heads; None stands for one.
        Q_LEN: The number of queries.
        KV_LEN: The number of keys.
        device: Where it is made.

    Returns:
        Shape (B, H, Q_LEN, KV_LEN): of truth values True for what is left in, of scores as they are.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)[0, 0]
        tensor([[ True, False],
                [ True,  True]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    at = _positions(sizes, device)
    takes = getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4)
    if takes == 5:
        return _over_positions(mod_fn, True)(_core.zeros(sizes, device=device), *at)
    return _over_positions(mod_fn, False)(*at)


class BlockMask:
    """A mask, and which blocks of it have anything in.

    Args:
        seq_lengths: The numbers of queries and of keys.
        dense: Shape (B, H, blocks of queries, blocks of keys): 0 for blocks that are left out, 1 for those in part, 2
            for whole ones.
        BLOCK_SIZE: Queries and keys of a block.
        mask_mod: The function that says it exactly.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
        BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)
    """

    def __init__(
        self, seq_lengths: tuple[int, int], dense: Tensor, BLOCK_SIZE: tuple[int, int], mask_mod: MaskMod
    ) -> None:
        self.seq_lengths = seq_lengths
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self._dense = dense
        self.kv_num_blocks, self.kv_indices = _ordered(dense == 1)
        self.full_kv_num_blocks, self.full_kv_indices = _ordered(dense == 2)
        self.q_num_blocks, self.q_indices = _ordered((dense == 1).mT)
        self.full_q_num_blocks, self.full_q_indices = _ordered((dense == 2).mT)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries and keys."""
        return (*self._dense.shape[:2], *self.seq_lengths)

    def numel(self) -> int:
        """How many pairs of queries and keys there are."""
        b, h, q, kv = self.shape
        return b * h * q * kv

    def to_dense(self) -> Tensor:
        """Which blocks have anything in: int32 of shape (B, H, blocks of queries, blocks of keys)."""
        return (self._dense > 0).int()

    def sparsity(self) -> float:
        """The percentage of pairs in blocks that are left out."""
        computed = int((self._dense > 0).sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The mask on a device.

        Args:
            device: The device.

        Returns:
            Another mask.
        """
        return BlockMask(self.seq_lengths, self._dense.to(device), self.BLOCK_SIZE, self.mask_mod)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are in, and the numbers of all blocks, those first."""
    return blocks.sum(-1).int(), blocks.int().argsort(dim=-1, descending=True, stable=True).int()


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """A mask from a function of positions.

    Args:
        mask_mod: A function of batch, head, and the positions of query and key, which gives a truth value.
        B: The number of batches; None stands for one mask for all.
        H: The number of heads; None stands for one mask for all.
        Q_LEN: The number of queries.
        KV_LEN: The number of keys.
        device: Where it is made.
        BLOCK_SIZE: Queries and keys of a block.
        _compile: Accepted; has no effect.
        separate_full_blocks: Whether whole blocks are told from those in part.
        compute_dq_write_order: Accepted; has no effect.
        dq_kv_order: Accepted; has no effect.

    Returns:
        The mask, with the numbers of its blocks.

    Example:
        >>> from rgrad.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
        >>> mask.to_dense()[0, 0].tolist()
        [[1, 0], [1, 1]]
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else (int(BLOCK_SIZE[0]), int(BLOCK_SIZE[1]))
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    whole = mask.new_zeros((*mask.shape[:2], rows * size[0], columns * size[1]))
    whole[..., :Q_LEN, :KV_LEN] = mask
    counts = whole.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    dense = (counts > 0).int()
    if separate_full_blocks:
        dense = dense + (counts == size[0] * size[1]).int()
    return BlockMask((Q_LEN, KV_LEN), dense, size, mask_mod)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with a function of scores and a mask.

    Args:
        query: Shape (B, H, L, E).
        key: Shape (B, H, S, E).
        value: Shape (B, H, S, E').
        score_mod: A function of a score, batch, head, and the positions of query and key, which gives a score.
        block_mask: What is left in; see :func:`create_block_mask`.
        scale: What the products are multiplied by; by default 1 over the root of E.
        enable_gqa: Whether the heads of queries share those of keys, in equal groups.
        return_lse: Whether to give the logarithms of the sums, too.
        kernel_options: Accepted; has no effect.
        return_aux: What to give beside the result.

    Returns:
        Shape (B, H, L, E'); with ``return_lse`` a pair with the logarithms, of shape (B, H, L); with ``return_aux`` a
        pair with an :class:`AuxOutput`. A query whose keys are all left out gives 0.

    Raises:
        ValueError: The tensors do not have four dimensions, or the heads do not fit.

    Example:
        >>> from rgrad.nn.attention.flex_attention import flex_attention
        >>> x = rgrad.ones(1, 2, 4, 8)
        >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - (q - kv).abs()).shape
        rgrad.Size([1, 2, 4, 8])
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError("flex_attention: query, key and value must be 4D tensors")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa or query.shape[1] % key.shape[1]:
            raise ValueError(
                f"flex_attention: Expect query and key/value to have the same number of heads but got Hq="
                f"{query.shape[1]} and Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
            )
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    sizes = tuple(scores.shape)
    at = _positions(sizes, query.device)
    if score_mod is not None:
        scores = _over_positions(score_mod, True)(scores, *at)
    if block_mask is not None:
        b, h, *_ = block_mask.shape
        mask = _over_positions(block_mask.mask_mod, False)(at[0][:b], at[1][:h], at[2], at[3])
        scores = scores.masked_fill(~mask, float("-inf"))
    lse = scores.logsumexp(-1)
    # Of a query without keys all scores are minus infinity.
    weights = (scores - lse.masked_fill(lse == float("-inf"), 0.0)[..., None]).exp()
    out = weights.to(value.dtype) @ value
    if return_aux is not None:
        highest = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, highest)
    return (out, lse) if return_lse else out
