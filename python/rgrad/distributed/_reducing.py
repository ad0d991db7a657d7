"""Collectives that combine tensors."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._buffers import Lent
from ._calls import Seen, checked, checked_list, joined, one_dtype, one_shape, place_in, run
from ._group import ProcessGroup
from ._mpi import Link
from ._reductions import Premultiplied, ReduceOp, Reduction
from ._work import Work

AnyOp = ReduceOp | Premultiplied


def _all(link: Link, reduction: Reduction, lent: Sequence[Lent]) -> Generator[Any, None, None]:
    for one in lent:
        yield from reduction.all(link, one.flat)
        one.written()


def all_reduce(
    tensor: Tensor, op: AnyOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor of all processes, in place.

    Args:
        tensor: The same shape and dtype in all processes.
        op: How.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.

    Raises:
        TypeError: ``tensor`` is not a tensor.
        ValueError: There is no group, or complex numbers cannot be combined so.
        RuntimeError: Elements of this dtype cannot be combined so; or another process fails, leaves or does not come.

    Example:
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> x = rgrad.ones(2)
        >>> rgrad.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> rgrad.distributed.destroy_process_group()
    """
    checked("all_reduce", tensor)
    if (members := joined(group, "all_reduce")) is None:
        return None
    program = _all(members.link, Reduction("all_reduce", op, tensor), [Lent(tensor)])
    return run(members, "all_reduce", program, [Seen(tensor), op], [tensor], async_op)


def all_reduce_coalesced(
    tensors: Any, op: AnyOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """As :func:`all_reduce`, of several tensors of one dtype.

    Args:
        tensors: A tensor, or a list of them.
        op: How.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    checked_list("all_reduce_coalesced", given, "tensors", len(given))
    if (members := joined(group, "all_reduce_coalesced")) is None or not given:
        return None
    program = _all(members.link, Reduction("all_reduce_coalesced", op, given[0]), [Lent(tensor) for tensor in given])
    return run(members, "all_reduce_coalesced", program, [*map(Seen, given), op], given, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: AnyOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As :func:`all_reduce`, for one process; the others' tensors are as before.

    Args:
        tensor: The same shape and dtype in all processes.
        dst: Who gets the result, by its place among all processes.
        op: How.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
        group_dst: Who gets the result, by its place in the group.
    """
    checked("reduce", tensor)
    if (members := joined(group, "reduce")) is None:
        return None
    root = place_in(members, "reduce", "dst", dst, group_dst)
    reduction = Reduction("reduce", op, tensor)

    def program(lent: Lent) -> Generator[Any, None, None]:
        yield from reduction.one(members.link, lent.flat, root)
        if members.link.rank == root:
            lent.written()

    return run(members, "reduce", program(Lent(tensor)), [Seen(tensor), op, f"dst={root}"], [tensor], async_op)


def _parts(link: Link, reduction: Reduction, given: Tensor, lent: Lent) -> Generator[Any, None, None]:
    yield from reduction.parts(link, given, lent.flat)
    lent.written()


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: AnyOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors; each process gets one of the results.

    Args:
        output: The output.
        input_list: One for each process, of the output's shape.
        op: How.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    checked("reduce_scatter", output, "output")
    if (members := joined(group, "reduce_scatter")) is None:
        return None
    inputs = checked_list("reduce_scatter", input_list, "input_list", members.size())
    one_dtype(output, *inputs)
    one_shape("reduce_scatter", inputs, output)
    reduction = Reduction("reduce_scatter", op, output)
    given = _core.cat([Lent(one).flat for one in inputs])
    program = _parts(members.link, reduction, given, Lent(output))
    return run(members, "reduce_scatter", program, [Seen(output), op], [output], async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: AnyOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine tensors; each process gets a part of the result.

    Args:
        output: As many elements as the input divided by the number of processes.
        input: The same shape and dtype in all processes.
        op: How.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    checked("reduce_scatter_tensor", output, "output")
    checked("reduce_scatter_tensor", input, "input")
    if (members := joined(group, "reduce_scatter_tensor")) is None:
        return None
    one_dtype(output, input)
    if output.numel() * members.size() != input.numel():
        raise RuntimeError(
            "reduce_scatter_tensor: input tensor must be the same size as output size times world size: got output "
            f"{tuple(output.shape)}, input {tuple(input.shape)} and {members.size()} processes"
        )
    reduction = Reduction("reduce_scatter_tensor", op, output)
    program = _parts(members.link, reduction, Lent(input).flat, Lent(output))
    return run(members, "reduce_scatter_tensor", program, [Seen(output), op], [output], async_op)


# PyTorch's newer name.
reduce_scatter_single = reduce_scatter_tensor
