"""Padding in all modes."""

import operator
from collections.abc import Sequence

from ... import _core
from ..._core import Tensor
from ..._operation.overridable import overridable

_SUPPORTED = """\
Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def _format_of(input: Tensor) -> _core.memory_format:
    """Channels last where those of the input are, else row-major."""
    format = {4: _core.channels_last, 5: _core.channels_last_3d}.get(input.dim())
    if format is None or input.is_contiguous() or not input.is_contiguous(memory_format=format):
        return _core.contiguous_format
    return format


def _laid_out_as(input: Tensor, result: Tensor) -> Tensor:
    """The result in the order of the input's memory."""
    return result.contiguous(memory_format=_format_of(input))


def _constant(input: Tensor, pad: Sequence[int], value: float | complex) -> Tensor:
    ndim = input.dim()
    sides = {ndim - 1 - i: (pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)}
    result = input
    for d, (before, after) in sides.items():
        if input.size(d) + before + after < 0:
            raise RuntimeError(
                f"pad: the length must be non-negative, but size {input.size(d)} of dimension {d} with paddings "
                f"{before} and {after} gives {input.size(d) + before + after}"
            )
    # One copy pads all dimensions. Inside of a transform the result, which is not the transform's, cannot be written.
    if min(pad, default=0) >= 0 and max(pad, default=0) > 0 and _core._level_of(input) == 0:
        sizes = [size + sum(sides.get(d, (0, 0))) for d, size in enumerate(input.shape)]
        result = _laid_out_as(input, _core.full(sizes, value, dtype=input.dtype, device=input.device))
        inside = result
        for d, (before, _) in sides.items():
            inside = inside.narrow(d, before, input.size(d))
        inside.copy_(input)
        return result
    for d, (before, after) in sides.items():
        size = result.size(d)
        # Negative padding takes elements away; it may take some of the other side's padding, too.
        if min(before, after) < 0:
            if max(before, after) > 0 and size + min(before, after) < 0:
                shape = [*result.shape[:d], size + before + after, *result.shape[d + 1 :]]
                result = _core.full(shape, value, dtype=input.dtype, device=input.device) + (
                    result.sum() * 0 if result.requires_grad else 0
                )
                continue
            start = max(-before, 0)
            result = result.narrow(d, start, size - start - max(-after, 0))
        parts = [result]
        for n, at in ((before, 0), (after, len(parts) + 1)):
            if n > 0:
                shape = [*result.shape[:d], n, *result.shape[d + 1 :]]
                part = _core.full(shape, value, dtype=input.dtype, device=input.device)
                parts.insert(at, _laid_out_as(input, part))
        if len(parts) > 1:
            result = _core.cat(parts, d)
    # What only takes away keeps the order of the input's memory.
    return _laid_out_as(input, result) if max(pad, default=0) > 0 else result.clone()


def _side(mode: str, x: Tensor, d: int, count: int, at_end: bool) -> Tensor:
    """What reflection or replication puts at one end of a dimension."""
    size = x.size(d)
    if mode == "reflect":
        return x.narrow(d, size - 1 - count if at_end else 1, count).flip(d)
    return x.narrow(d, size - 1 if at_end else 0, 1).expand(*x.shape[:d], count, *x.shape[d + 1 :])


def _pieces(mode: str, x: Tensor, d: int, before: int, after: int) -> list[Tensor]:
    """What the padded tensor is made of along one dimension."""
    size = x.size(d)
    low, high = max(-before, 0), size - max(-after, 0)
    if mode == "circular":
        # What is repeated is taken from what is left of the tensor.
        parts = [x.narrow(d, low, high - low)]
        if before > 0:
            parts.insert(0, x.narrow(d, high - before, before))
        if after > 0:
            parts.append(x.narrow(d, low, after))
        return parts
    parts = [x.narrow(d, low, high - low)] if low < high else []
    # What one side takes away beyond the tensor is taken from the padding of the other.
    if before > 0:
        left = _side(mode, x, d, before, False)
        parts.insert(0, left if high >= 0 else left.narrow(d, 0, before + high))
    if after > 0:
        right = _side(mode, x, d, after, True)
        parts.append(right if low <= size else right.narrow(d, low - size, after + size - low))
    return parts or [x.narrow(d, 0, 0)]


def _without_graph(mode: str, input: Tensor, sides: Sequence[tuple[int, int, int]]) -> Tensor:
    """The padded tensor by one copy of the input and a small one for each side; each would be a node of a graph."""
    sizes = list(input.shape)
    for d, before, after in sides:
        sizes[d] += before + after
    format = _core.contiguous_format if mode == "circular" else _format_of(input)
    result = _core.empty(sizes, dtype=input.dtype, device=input.device, memory_format=format)
    inside = result
    for d, before, _ in sides:
        inside = inside.narrow(d, before, input.size(d))
    inside.copy_(input)
    for i, (d, before, after) in enumerate(sides):
        size = input.size(d)
        # The dimensions before this one are padded already, those after it are not.
        whole = result
        for later, start, _ in sides[i + 1 :]:
            whole = whole.narrow(later, start, input.size(later))
        for n, at, reflected, edge, other in (
            (before, 0, before + 1, before, size),
            (after, before + size, before + size - 1 - after, before + size - 1, before),
        ):
            if n == 0:
                continue
            if mode == "reflect":
                part = whole.narrow(d, reflected, n).flip(d)
            elif mode == "replicate":
                part = whole.narrow(d, edge, 1)
            else:
                part = whole.narrow(d, other, n)
            whole.narrow(d, at, n).copy_(part)
    return result


def _check_sides(mode: str, input: Tensor, sides: Sequence[tuple[int, int, int]]) -> None:
    for d, before, after in sides:
        size = input.size(d)
        if mode == "circular":
            _check_circular(d, size, before, after)
        elif size == 0:
            raise RuntimeError(
                f"Expected a tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                f"{list(input.shape)}"
            )
        elif mode == "reflect" and (before >= size or after >= size):
            raise RuntimeError(
                f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {after}) at dimension {d} of input {list(input.shape)}"
            )
    made = {d: input.size(d) + before + after for d, before, after in sides}
    # Of several dimensions some may become empty.
    if mode != "circular" and (min(made.values()) < 0 or max(made.values()) < 1):
        d, small = min(made.items(), key=lambda item: item[1])
        raise RuntimeError(f"input ({input.size(d)}) is too small. Calculated output size of dimension {d}: {small}")


def _check_circular(d: int, size: int, before: int, after: int) -> None:
    given = f"got paddings {before} and {after} at dimension {d} of size {size}"
    if size + before + after < 0:
        raise RuntimeError(f"Negative padding value is resulting in an empty dimension: {given}")
    # Beyond that PyTorch, too, raises, or reads memory that it has not written.
    left = max(size + min(before, 0) + min(after, 0), 0)
    if max(before, after, 0) > left:
        raise RuntimeError(
            f"Padding value causes wrapping around more than once.: {given}, of which {left} elements are left"
        )


@overridable("input")
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float | complex = 0) -> Tensor:
    """Pad a tensor with a number at both ends of its last dimensions.

    Args:
        input: A tensor of any shape.
        pad: How much at the start and the end of the last dimension, then of the one before it, and so on. Negative
            numbers take away.
        value: The number, which is complex for complex tensors alone.

    Returns:
        A new tensor with other sizes.

    Raises:
        RuntimeError: ``pad`` has an odd length, or does not fit the input; or the dtype has no such number.

    Example:
        >>> rgrad.constant_pad_nd(rgrad.tensor([1, 2]), (0, 2), 9)
        tensor([1, 2, 9, 9])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"constant_pad_nd(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    pad = [operator.index(n) for n in pad]
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {input.dim()} dimensions."
        )
    return _constant(input, pad, value)


@overridable("input")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad a tensor at both ends of its last dimensions.

    Args:
        input: A tensor of any shape; in the other modes than ``"constant"`` it has one or two dimensions more than are
            padded.
        pad: How much at the start and the end of the last dimension, then of the one before it, and so on. Negative
            numbers take away.
        mode: ``"constant"``; ``"reflect"``, the elements next to the edge in reverse order; ``"replicate"``, the edge;
            ``"circular"``, the elements at the other end.
        value: The constant, 0 if it is None.

    Returns:
        A tensor with other sizes.

    Raises:
        NotImplementedError: There is no such mode, or not for this number of dimensions.
        RuntimeError: ``pad`` has an odd length, or does not fit the input.

    Example:
        >>> F.pad(rgrad.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
        tensor([[3., 2., 1., 2., 3., 2.]])
        >>> F.pad(rgrad.tensor([1, 2]), (0, 2), value=9)
        tensor([1, 2, 9, 9])
    """
    # As in PyTorch, reflection around volumes is not listed.
    if _core._autocasts() and mode in ("reflect", "replicate") and not (mode == "reflect" and len(pad) == 6):
        (input,) = _core._autocast_widened(input)
    for i, n in enumerate(pad):
        if isinstance(n, float) or not hasattr(n, "__index__"):
            raise TypeError(
                f"pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{type(n).__name__} at pos {i}"
            )
    pad = [n.__index__() for n in pad]
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2: got {len(pad)}")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return _constant(input, pad, 0.0 if value is None else float(value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(pad) // 2
    if mode not in ("reflect", "replicate", "circular"):
        if (count, input.dim()) in _RANKS:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        count = 0
    if (count, input.dim()) not in _RANKS:
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n{_SUPPORTED}"
        )
    if mode != "circular" and input.dtype == _core.bool:
        raise NotImplementedError(f"pad: mode {mode} is not implemented for bool")
    sides = [(input.dim() - 1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(count)]
    _check_sides(mode, input, sides)
    is_plain = not (input.requires_grad and _core.is_grad_enabled()) and _core._level_of(input) == 0
    if is_plain and input.device.type == "cpu" and min(pad) >= 0 and max(pad) > 0:
        return _without_graph(mode, input, sides)
    result = input
    for d, before, after in sides:
        parts = _pieces(mode, result, d, before, after)
        result = _core.cat(parts, d) if len(parts) > 1 else parts[0]
    if result is input:
        return input.clone()
    if max(pad) <= 0:
        # Nothing was joined: it is a view of the input.
        result = result.clone()
    return result.contiguous() if mode == "circular" else _laid_out_as(input, result)


# How many dimensions are padded, of a tensor of how many.
_RANKS = {(1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5)}
