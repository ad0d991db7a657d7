"""Sequences of several lengths: padded to one tensor, or packed step by step without padding."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

from ... import _core
from ..._core import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences step by step: the first elements of all, then the second ones of those that have one, and so on.

    Sequences stand in the order of their lengths, the longest first. Make one with :func:`pack_padded_sequence` or
    :func:`pack_sequence`.

    Attributes:
        data: The elements, of shape ``(n, *)``.
        batch_sizes: How many sequences have each step: integers on the CPU that never increase.
        sorted_indices: The places of the sequences before they were sorted; None if they were not.
        unsorted_indices: The inverse of it, computed if it is missing.

    Raises:
        ValueError: ``batch_sizes`` is not on the CPU.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([rgrad.tensor([1, 2, 3]), rgrad.tensor([4, 5])])
        >>> packed.data
        tensor([1, 4, 2, 5, 3])
        >>> packed.batch_sizes
        tensor([2, 2, 1])
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("PackedSequence takes data and batch_sizes")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://docs.pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> Self:
        """The same sequences with other elements, on their device."""
        if data is self.data:
            return self
        places = (i if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *places)

    def pin_memory(self) -> Self:
        """Give back the sequences themselves: there is no pinned memory."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert the elements as :meth:`Tensor.to` does.

        Args:
            args: For :meth:`Tensor.to`.
            kwargs: For :meth:`Tensor.to`.

        Returns:
            The sequences with other elements, or these themselves.
        """
        return self._with(self.data.to(*args, **kwargs))

    def cpu(self) -> Self:
        """Move the sequences to the CPU."""
        return self.to("cpu")

    def double(self) -> Self:
        """Convert the elements to float64."""
        return self.to(_core.float64)

    def float(self) -> Self:
        """Convert the elements to float32."""
        return self.to(_core.float32)

    def half(self) -> Self:
        """Convert the elements to float16."""
        return self.to(_core.float16)

    def long(self) -> Self:
        """Convert the elements to int64."""
        return self.to(_core.int64)

    def int(self) -> Self:
        """Convert the elements to int32."""
        return self.to(_core.int32)

    def short(self) -> Self:
        """Convert the elements to int16."""
        return self.to(_core.int16)

    def char(self) -> Self:
        """Convert the elements to int8."""
        return self.to(_core.int8)

    def byte(self) -> Self:
        """Convert the elements to uint8."""
        return self.to(_core.uint8)

    @property
    def is_cuda(self) -> bool:
        """False: there is no such device."""
        return False

    def is_pinned(self) -> bool:
        """Whether the elements are in pinned memory, which there is not."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Compute the inverse of a permutation; of None it is None.

    Args:
        permutation: The integers below ``n`` in some order.

    Returns:
        The place of each of them.

    Example:
        >>> nn.utils.rnn.invert_permutation(rgrad.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = _core.arange(0, permutation.numel(), device=permutation.device)
    return _core.empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack sequences that are padded to one length.

    Args:
        input: The sequences, of shape ``(L, N, *)``, or ``(N, L, *)`` if ``batch_first``.
        lengths: How long each sequence is, on the CPU.
        batch_first: Which dimension comes first.
        enforce_sorted: Whether the lengths must decrease; otherwise the sequences are sorted.

    Returns:
        The packed sequences.

    Raises:
        RuntimeError: A length is not positive, the lengths do not decrease, or there are not as many as sequences.

    Example:
        >>> padded = rgrad.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data, packed.sorted_indices
        (tensor([4, 1, 3, 5, 2, 6]), tensor([2, 0, 1]))
    """
    sizes = _core.as_tensor(lengths, dtype=_core.int64, device="cpu")
    if enforce_sorted:
        order = None
    else:
        sizes, order = _core.sort(sizes, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    counts: list[int] = sizes.tolist()
    if len(counts) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={input.shape[1]})"
        )
    if any(n <= 0 for n in counts):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if counts[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {input.shape[0]}, the number of steps of the input, but got {counts[0]}"
        )
    batches: list[int] = []
    alive = len(counts)
    for step in range(counts[0]):
        while counts[alive - 1] <= step:
            alive -= 1
        batches.append(alive)
    data = _core.cat([input[step, :n] for step, n in enumerate(batches)])
    return PackedSequence(data, _core.tensor(batches), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences to one length: the inverse of :func:`pack_padded_sequence`.

    Args:
        sequence: The packed sequences.
        batch_first: Whether the result is ``(N, L, *)`` instead of ``(L, N, *)``.
        padding_value: What stands behind the ends.
        total_length: The length of the result; by default that of the longest sequence.

    Returns:
        The padded sequences, and their lengths.

    Raises:
        ValueError: ``total_length`` is less than the longest sequence.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([rgrad.tensor([1, 2, 3]), rgrad.tensor([4, 5])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    batches: list[int] = sequence.batch_sizes.tolist()
    longest = len(batches)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    data = sequence.data
    most = batches[0]
    counts = [sum(n > i for n in batches) for i in range(most)]
    if counts[-1] == longest:
        padded = data.reshape(longest, most, *data.shape[1:])
    else:
        shape = tuple(data.shape[1:])
        steps = []
        for part in data.split(batches):
            missing = most - len(part)
            if missing:
                part = _core.cat([part, part.new_full((missing, *shape), padding_value)])
            steps.append(part)
        steps.extend(data.new_full((most, *shape), padding_value) for _ in range(longest - len(batches)))
        padded = _core.stack(steps)
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = _core.tensor(counts)
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of several lengths along a new dimension, padded to the longest one.

    Args:
        sequences: Tensors of shape ``(L, *)``; the other sizes are equal.
        batch_first: Whether the result is ``(N, L, *)`` instead of ``(L, N, *)``.
        padding_value: What the sequences are padded with.
        padding_side: Where: ``"right"`` or ``"left"``.

    Returns:
        The padded sequences.

    Raises:
        RuntimeError: The other sizes differ, there is no sequence, or ``padding_side`` is something else.

    Example:
        >>> nn.utils.rnn.pad_sequence([rgrad.tensor([1, 2]), rgrad.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be either left or right, but got {padding_side}")
    all_ = tuple(sequences)
    if not all_:
        raise RuntimeError("received an empty list of sequences")
    if any(t.dim() == 0 for t in all_):
        raise RuntimeError("pad_sequence: Expected sequences of at least one dimension, but got a 0-d tensor")
    longest = max(t.shape[0] for t in all_)
    shape = tuple(all_[0].shape[1:])
    padded = []
    for t in all_:
        if tuple(t.shape[1:]) != shape:
            # As PyTorch: the copy into the result refuses another shape.
            t = t.expand(t.shape[0], *shape) if t.dim() <= len(shape) + 1 else t.reshape(-1)
        missing = longest - t.shape[0]
        if missing:
            filler = t.new_full((missing, *shape), padding_value)
            t = _core.cat([filler, t] if padding_side == "left" else [t, filler])
        padded.append(t)
    return _core.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Cut padded sequences apart: the inverse of :func:`pad_sequence`.

    Args:
        padded_sequences: Of shape ``(L, N, *)``, or ``(N, L, *)`` if ``batch_first``.
        lengths: How long each sequence is.
        batch_first: Which dimension comes first.

    Returns:
        The sequences.

    Example:
        >>> nn.utils.rnn.unpad_sequence(rgrad.tensor([[1, 2], [3, 0]]), rgrad.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [t[:n] for t, n in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths.

    Args:
        sequences: Tensors of shape ``(L, *)``.
        enforce_sorted: Whether the lengths must decrease; otherwise the sequences are sorted.

    Returns:
        The packed sequences.

    Raises:
        RuntimeError: The lengths do not decrease.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([rgrad.tensor([1]), rgrad.tensor([2, 3])], enforce_sorted=False)
        >>> packed.data
        tensor([2, 1, 3])
    """
    lengths = _core.tensor([t.shape[0] for t in sequences], dtype=_core.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Cut packed sequences apart: the inverse of :func:`pack_sequence`.

    Args:
        packed_sequences: The packed sequences.

    Returns:
        The sequences.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([rgrad.tensor([1, 2]), rgrad.tensor([3])])
        >>> nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
