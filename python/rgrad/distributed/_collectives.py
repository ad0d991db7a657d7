"""Collectives that move tensors from processes to processes."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from ._buffers import Lent, bytes_of, put, room_for
from ._calls import Seen, checked, checked_list, joined, one_dtype, one_shape, place_in, run
from ._engine import Task, engine
from ._errors import DistBackendError
from ._group import ProcessGroup, report, watch
from ._mpi import Link
from ._work import Work

Steps = Generator[Any, None, None]


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give all processes a tensor of one of them, in place.

    Args:
        tensor: The same shape and dtype in all processes.
        src: Who has it, by its place among all processes.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
        group_src: Who has it, by its place in the group.
    """
    checked("broadcast", tensor)
    if (members := joined(group, "broadcast")) is None:
        return None
    root = place_in(members, "broadcast", "src", src, group_src)

    def program(lent: Lent) -> Steps:
        yield members.link.broadcast(lent.bytes, root)
        if members.link.rank != root:
            lent.written()

    return run(members, "broadcast", program(Lent(tensor)), [Seen(tensor), f"src={root}"], [tensor], async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Collect the tensors of all processes.

    Args:
        tensor_list: One output for each process.
        tensor: This process's, of the same shape and dtype in all processes.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.

    Raises:
        TypeError: An argument is not a tensor, or a list of them.
        RuntimeError: There are more or fewer outputs than processes, or one is of another shape.
        ValueError: Dtypes differ.
    """
    checked("all_gather", tensor)
    if (members := joined(group, "all_gather")) is None:
        return None
    outputs = checked_list("all_gather", tensor_list, "tensor_list", members.size())
    one_dtype(*outputs, tensor)
    one_shape("all_gather", outputs, tensor)

    def program(given: Tensor) -> Steps:
        room = room_for(given.numel() * members.size(), given.dtype)
        yield members.link.all_gather(bytes_of(given), bytes_of(room))
        for output, part in zip(outputs, room.chunk(members.size()), strict=True) if room.numel() else ():
            put(output, part)

    return run(members, "all_gather", program(Lent(tensor).flat), [Seen(tensor)], outputs, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Collect the tensors of all processes in one.

    Args:
        output_tensor: As many elements as all processes' tensors have.
        input_tensor: This process's, of the same shape and dtype in all processes.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    name = "all_gather_into_tensor"
    checked(name, output_tensor, "output_tensor")
    checked(name, input_tensor, "input_tensor")
    if (members := joined(group, name)) is None:
        return None
    one_dtype(output_tensor, input_tensor)
    if output_tensor.numel() != input_tensor.numel() * members.size():
        raise RuntimeError(
            f"{name}: output tensor size must be equal to world_size times input tensor size: got output "
            f"{tuple(output_tensor.shape)}, input {tuple(input_tensor.shape)} and {members.size()} processes"
        )

    def program(given: Tensor, lent: Lent) -> Steps:
        if lent.shared and input_tensor.numel() and _overlap(given, lent.flat):
            given = given.clone()
        yield members.link.all_gather(bytes_of(given), lent.bytes)
        lent.written()

    steps = program(Lent(input_tensor).flat, Lent(output_tensor))
    return run(members, name, steps, [Seen(input_tensor)], [output_tensor], async_op)


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether memory that is read is written, too."""
    start, other = a.data_ptr(), b.data_ptr()
    return start < other + b.nbytes and other < start + a.nbytes


# PyTorch's newer name.
all_gather_single = all_gather_into_tensor


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Collect the tensors of all processes in one of them.

    Args:
        tensor: This process's, of the same shape and dtype in all processes.
        gather_list: One output for each process, where they are collected; None elsewhere.
        dst: Who gets them, by its place among all processes; by default the first.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
        group_dst: Who gets them, by its place in the group.
    """
    checked("gather", tensor)
    if (members := joined(group, "gather")) is None:
        return None
    if dst is None and group_dst is None:
        dst = 0
    root = place_in(members, "gather", "dst", dst, group_dst)
    here = members.rank() == root
    if here and gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    outputs = checked_list("gather", gather_list, "gather_list", members.size()) if here else []
    one_dtype(*outputs, tensor)
    one_shape("gather", outputs, tensor)

    def program(given: Tensor) -> Steps:
        room = room_for(given.numel() * members.size(), given.dtype) if here else None
        yield members.link.gather(bytes_of(given), None if room is None else bytes_of(room), root)
        if room is not None and room.numel():
            for output, part in zip(outputs, room.chunk(members.size()), strict=True):
                put(output, part)

    return run(members, "gather", program(Lent(tensor).flat), [Seen(tensor), f"dst={root}"], outputs, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each process one of a list of tensors.

    Args:
        tensor: The output, of the same shape and dtype in all processes.
        scatter_list: One for each process, where they are; None elsewhere.
        src: Who has the list, by its place among all processes; by default the first.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
        group_src: Who has the list, by its place in the group.
    """
    checked("scatter", tensor)
    if (members := joined(group, "scatter")) is None:
        return None
    if src is None and group_src is None:
        src = 0
    root = place_in(members, "scatter", "src", src, group_src)
    here = members.rank() == root
    if here and scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if not here and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    inputs = checked_list("scatter", scatter_list, "scatter_list", members.size()) if here else []
    one_dtype(*inputs, tensor)
    one_shape("scatter", inputs, tensor)
    given = _core.cat([Lent(one).flat for one in inputs]) if here else None

    def program(lent: Lent) -> Steps:
        yield members.link.scatter(None if given is None else bytes_of(given), lent.bytes, root)
        lent.written()

    return run(members, "scatter", program(Lent(tensor)), [Seen(tensor), f"src={root}"], [tensor], async_op)


def _exchange(link: Link, given: Tensor, sent: list[int], got: Tensor, received: list[int]) -> Steps:
    """Parts of so many elements to and from each member."""
    width = given.element_size()
    yield link.all_to_all(bytes_of(given), [n * width for n in sent], bytes_of(got), [n * width for n in received])


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give each process one tensor of this process's list, and get one of each.

    Args:
        output_tensor_list: One for each process.
        input_tensor_list: One for each process. Sizes may differ where those of the outputs do.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    if (members := joined(group, "all_to_all")) is None:
        return None
    outputs = checked_list("all_to_all", output_tensor_list, "output_tensor_list", members.size())
    inputs = checked_list("all_to_all", input_tensor_list, "input_tensor_list", members.size())
    one_dtype(*outputs, *inputs)
    given = _core.cat([Lent(one).flat for one in inputs])

    def program() -> Steps:
        received = [one.numel() for one in outputs]
        room = room_for(sum(received), given.dtype)
        yield from _exchange(members.link, given, [one.numel() for one in inputs], room, received)
        for output, part in zip(outputs, room.split(received), strict=True):
            put(output, part)

    return run(members, "all_to_all", program(), [inputs[0].dtype], outputs, async_op)


def _sizes(name: str, what: str, tensor: Tensor, sizes: Sequence[int] | None, count: int) -> list[int]:
    """The elements of each member's part along the first dimension."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % count:
            raise RuntimeError(
                f"{name}: Tensor's dim 0 does not divide equally across group size: `{what}` has {rows} rows, and "
                f"there "
                f"are {count} processes"
            )
        sizes = [rows // count] * count
    if len(sizes) != count:
        raise RuntimeError(f"{name}: Number of tensor splits not equal to group size: got {list(sizes)} for `{what}`")
    if sum(sizes) != rows or min(sizes) < 0:
        raise RuntimeError(
            f"{name}: Split sizes doesn't match total dim 0 size: got {list(sizes)} for {rows} rows of `{what}`"
        )
    width = tensor.numel() // rows if rows else 0
    return [size * width for size in sizes]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """As :func:`all_to_all`, of the parts of one tensor.

    Args:
        output: The output.
        input: What is given away.
        output_split_sizes: Its parts along the first dimension; by default equal ones.
        input_split_sizes: Likewise.
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
    """
    name = "all_to_all_single"
    checked(name, output, "output")
    checked(name, input, "input")
    if (members := joined(group, name)) is None:
        return None
    one_dtype(output, input)
    received = _sizes(name, "output", output, output_split_sizes, members.size())
    sent = _sizes(name, "input", input, input_split_sizes, members.size())

    def program(given: Tensor, lent: Lent) -> Steps:
        yield from _exchange(members.link, given, sent, lent.flat, received)
        lent.written()

    steps = program(Lent(input).flat, Lent(output))
    return run(members, name, steps, [input.dtype], [output], async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait for all processes.

    Args:
        group: By default that of all processes.
        async_op: Whether to return a :class:`Work`.
        device_ids: Accepted; has no effect.
        timeout: How long; by default as long as the group says.
    """
    if (members := joined(group, "barrier")) is None:
        return None

    def program() -> Steps:
        yield members.link.barrier()

    if timeout is None or async_op:
        return run(members, "barrier", program(), [], [], async_op)
    work = run(members, "barrier", program(), [], [], True)
    assert work is not None
    work.wait(timeout)
    return None


# Tags of the link for messages that users cannot take: theirs are below.
_HERE, _GO = 32001, 32002


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait for all processes; the first one says who does not come.

    Args:
        group: By default that of all processes.
        timeout: How long; by default as long as the group says.
        wait_all_ranks: Whether to name all that are missing, instead of the first.

    Raises:
        RuntimeError: A process does not come in time.
    """
    if (members := joined(group, "monitored_barrier")) is None or members.size() == 1:
        return
    seconds = members.timeout if timeout is None else timeout.total_seconds()
    link, byte = members.messages, np.zeros(1, np.uint8)

    def ask(rank: int) -> Steps:
        yield link.receive(np.zeros(1, np.uint8), rank, _HERE)

    def both() -> Steps:
        yield link.send(byte, 0, _HERE)
        yield link.receive(np.zeros(1, np.uint8), 0, _GO)

    def release() -> Steps:
        yield [link.send(byte, rank, _GO) for rank in range(1, link.size)]

    news = watch()
    if link.rank != 0:
        task = Task(both(), "monitored_barrier")
        if news is not None:
            task.peers = lambda: news.gone([members.ranks[0]], None, 0)
        engine.start(task)
        # The first process is to be the one that speaks.
        engine.wait(task, seconds + 2.0, report)
        return
    tasks = {rank: Task(ask(rank), "monitored_barrier") for rank in range(1, link.size)}
    for task in tasks.values():
        engine.start(task)
    limit = time.monotonic() + seconds
    missing = []
    for rank, task in tasks.items():
        try:
            engine.wait(task, max(limit - time.monotonic(), 0.001), lambda task: "")
        except DistBackendError:
            missing.append(members.ranks[rank])
            if not wait_all_ranks:
                break
    if missing:
        ranks = ", ".join(map(str, missing))
        raise DistBackendError(
            f"[Rank {members.ranks[0]}]: {'Ranks' if len(missing) > 1 else 'Rank'} {ranks} failed to pass "
            f"monitoredBarrier in {round(1000 * seconds)} ms{news.report() if news is not None else ''}"
        )
    task = Task(release(), "monitored_barrier")
    engine.start(task)
    engine.wait(task, seconds, report)
