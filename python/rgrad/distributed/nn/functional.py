"""Collectives that gradients go through: each gives new tensors, and its derivative goes the other way.

All processes call backward, and the gradient of an input is that of the sum of all processes' losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core, distributed
from ..._core import Tensor
from ...autograd.function import Function
from .._calls import place_in
from .._group import ProcessGroup, of
from .._reductions import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _sum_only(name: str, op: ReduceOp) -> None:
    if op is not ReduceOp.SUM:
        raise NotImplementedError(f"{name}: the derivative of {op} is not there; use ReduceOp.SUM")


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        distributed.broadcast(made, group=group, group_src=root)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Reduce.apply(gradient, ctx.root, ctx.group), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        distributed.reduce(made, group=group, group_dst=root)
        # What other processes have was used for nothing.
        return made if group.rank() == root else _core.zeros_like(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Broadcast.apply(gradient, ctx.root, ctx.group), None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        made = tensor.clone()
        distributed.all_reduce(made, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _AllReduce.apply(gradient, ctx.group), None


class _AllToAll(Function):
    """Parts of one tensor along the first dimension go to the members."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sent: list[int], received: list[int], group: ProcessGroup) -> Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        made = tensor.new_empty([sum(received), *tensor.shape[1:]])
        distributed.all_to_all_single(made, tensor, received, sent, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _AllToAll.apply(gradient, ctx.received, ctx.sent, ctx.group), None, None, None


def _exchanged(inputs: Sequence[Tensor], like: Sequence[Tensor], group: ProcessGroup) -> tuple[Tensor, ...]:
    """One tensor to each member, and one of each, with the shapes of ``like``."""
    flat = _core.cat([tensor.reshape(-1) for tensor in inputs])
    received = [tensor.numel() for tensor in like]
    got: Tensor = _AllToAll.apply(flat, [tensor.numel() for tensor in inputs], received, group)
    return tuple(part.reshape(tensor.shape) for part, tensor in zip(got.split(received), like, strict=True))


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """As :func:`rgrad.distributed.broadcast`, with a new tensor.

    Args:
        tensor: The same shape and dtype in all processes.
        src: Who has it, by its place among all processes.
        group: By default that of all processes.

    Returns:
        The tensor of ``src``.
    """
    members = of(group)
    made: Tensor = _Broadcast.apply(tensor, place_in(members, "broadcast", "src", src, None), members)
    return made


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """As :func:`rgrad.distributed.reduce`, with a new tensor.

    Args:
        tensor: The same shape and dtype in all processes.
        dst: Who gets the sum, by its place among all processes.
        op: ``ReduceOp.SUM``.
        group: By default that of all processes.

    Returns:
        The sum in ``dst``, and zeros elsewhere.
    """
    _sum_only("reduce", op)
    members = of(group)
    made: Tensor = _Reduce.apply(tensor, place_in(members, "reduce", "dst", dst, None), members)
    return made


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """As :func:`rgrad.distributed.all_reduce`, with a new tensor.

    Args:
        tensor: The same shape and dtype in all processes.
        op: ``ReduceOp.SUM``.
        group: By default that of all processes.

    Returns:
        The sum.
    """
    _sum_only("all_reduce", op)
    made: Tensor = _AllReduce.apply(tensor, of(group))
    return made


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """As :func:`rgrad.distributed.all_gather`, with new tensors.

    Args:
        tensor: The same shape and dtype in all processes.
        group: By default that of all processes.

    Returns:
        The tensors of all processes.
    """
    members = of(group)
    return _exchanged([tensor] * members.size(), [tensor] * members.size(), members)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """As :func:`rgrad.distributed.gather`, with new tensors.

    Args:
        tensor: The same shape and dtype in all processes.
        dst: Who gets them, by its place among all processes.
        group: By default that of all processes.

    Returns:
        The tensors of all processes in ``dst``, and zeros elsewhere.
    """
    members = of(group)
    root = place_in(members, "gather", "dst", dst, None)
    nothing = tensor.reshape(-1)[:0]
    sent = [tensor if place == root else nothing for place in range(members.size())]
    got = _exchanged(sent, [tensor if members.rank() == root else nothing] * members.size(), members)
    # Also where nothing arrives the result has a history, so that backward calls what the others call.
    return got if members.rank() == root else tuple(_core.zeros_like(tensor) + part.sum() for part in got)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """As :func:`rgrad.distributed.scatter`, with a new tensor.

    Args:
        tensors: One for each process, of one shape and dtype in all processes; those of ``src`` count.
        src: Who has them, by its place among all processes.
        group: By default that of all processes.

    Returns:
        That of this process.
    """
    members = of(group)
    root = place_in(members, "scatter", "src", src, None)
    if len(tensors) != members.size():
        raise RuntimeError(f"scatter: expected {members.size()} tensors, one for each process, got {len(tensors)}")
    like, here = tensors[members.rank()], members.rank() == root
    sent = [tensor if here else tensor.reshape(-1)[:0] for tensor in tensors]
    room = [like if place == root else like.reshape(-1)[:0] for place in range(members.size())]
    return _exchanged(sent, room, members)[root]


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """As :func:`rgrad.distributed.reduce_scatter`, with a new tensor.

    Args:
        output: Has the shape of the result; it is not written.
        input_list: One for each process.
        op: ``ReduceOp.SUM``.
        group: By default that of all processes.

    Returns:
        The sum of what all processes have for this one.
    """
    _sum_only("reduce_scatter", op)
    members = of(group)
    parts = _exchanged(input_list, [output.detach()] * members.size(), members)
    return _core.stack(list(parts)).sum(0)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None
) -> tuple[Tensor, ...]:
    """As :func:`rgrad.distributed.all_to_all`, with new tensors.

    Args:
        output_tensor_list: Have the shapes of the results; they are not written.
        input_tensor_list: One for each process.
        group: By default that of all processes.

    Returns:
        One of each process.
    """
    return _exchanged(input_tensor_list, [output.detach() for output in output_tensor_list], of(group))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """As :func:`rgrad.distributed.all_to_all_single`, with a new tensor.

    Args:
        output: Has the shape of the result; it is not written.
        input: What is given away.
        output_split_sizes: Its parts along the first dimension; by default equal ones.
        input_split_sizes: Likewise.
        group: By default that of all processes.

    Returns:
        What the others have given.
    """
    members = of(group)

    def sizes(tensor: Tensor, given: Sequence[int] | None) -> list[int]:
        return list(given) if given else [tensor.shape[0] // members.size()] * members.size()

    received = sizes(output, output_split_sizes)
    made: Tensor = _AllToAll.apply(input, sizes(input, input_split_sizes), received, members)
    return made
