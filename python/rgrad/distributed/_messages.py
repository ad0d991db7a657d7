"""Messages from one process to another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from .._core import Tensor
from ._buffers import Lent
from ._calls import checked, joined, place_in
from ._engine import Task, engine
from ._errors import DistBackendError
from ._group import ProcessGroup, report, watch
from ._mpi import Bytes, Link
from ._news import place
from ._objects import packed, unpacked
from ._work import Work

# Tags above are taken by barriers.
_MOST = 32000


class _Soon:
    """Something to wait for that is asked again at the next poll."""

    def __init__(self) -> None:
        self._asked = False

    def Test(self) -> bool:
        before, self._asked = self._asked, True
        return before


def _arrived(link: Link, data: Bytes, source: int | None, tag: int, task: list[Task]) -> Generator[Any, None, None]:
    """Receive into memory that must have the message's size."""
    while (found := link.waiting_message(tag, source)) is None:
        yield _Soon()
    sender, size, message = found
    if size != data.nbytes:
        # Taken all the same, so that it does not wait for the next one.
        message.Recv(np.empty(size, np.uint8))
        raise DistBackendError(
            f"recv: rank {sender} of the group has sent {size} bytes, and the tensor has {data.nbytes}; send and "
            f"receive "
            "tensors of one shape and dtype"
        )
    yield message.Irecv(data)
    task[0].source = sender


def _peer(name: str, what: str, group: ProcessGroup, rank: int | None, group_rank: int | None, tag: int) -> int:
    found = place_in(group, name, what, rank, group_rank)
    if found == group.rank():
        kind = "destination" if what == "dst" else "source"
        raise ValueError(
            f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process. Got "
            f"{found} in "
            f"{name}, and the group has {group.size()} processes"
        )
    if not 0 <= tag < _MOST:
        raise ValueError(f"{name}: tag must be at least 0 and less than {_MOST}, got {tag}")
    return found


def _start(group: ProcessGroup, task: Task, peer: int | None, result: list[Tensor], asynchronous: bool) -> Work:
    if (news := watch()) is not None:
        needed = group.ranks if peer is None else [group.ranks[peer]]
        others = [rank for rank in needed if rank != group.ranks[group.rank()]]

        def gone() -> str:
            said = [news.gone([rank], None, 0) for rank in others]
            return said[0] if all(said) else ""

        task.peers = gone
    task.at = place()
    engine.start(task)
    if asynchronous:
        engine.watch(task)
    return Work(result, task, group.timeout, report)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Send a tensor; it must not be changed before the work is done.

    Args:
        tensor: Any shape and dtype.
        dst: Who gets it, by its place among all processes.
        group: By default that of all processes.
        tag: A number that the receiver must give, too.
        group_dst: Who gets it, by its place in the group.
    """
    return _send("isend", tensor, dst, group, tag, group_dst, True)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor.

    Args:
        tensor: Any shape and dtype.
        dst: Who gets it, by its place among all processes.
        group: By default that of all processes.
        tag: A number that the receiver must give, too.
        group_dst: Who gets it, by its place in the group.

    Raises:
        ValueError: The receiver is this process, or no member of the group.
        RuntimeError: The receiver fails, leaves or does not come.
    """
    work = _send("send", tensor, dst, group, tag, group_dst, False)
    if work is not None:
        work.wait()


def _send(
    name: str,
    tensor: Tensor,
    dst: int | None,
    group: ProcessGroup | None,
    tag: int,
    group_dst: int | None,
    asynchronous: bool,
) -> Work | None:
    checked(name, tensor)
    if (members := joined(group, name)) is None:
        return None
    to = _peer(name, "dst", members, dst, group_dst, tag)

    def program(lent: Lent) -> Generator[Any, None, None]:
        yield members.messages.send(lent.bytes, to, tag)

    return _start(members, Task(program(Lent(tensor)), name, f" to rank {to}"), to, [tensor], asynchronous)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receive a tensor, which has arrived when the work is done.

    Args:
        tensor: The output, of the shape and dtype of what is sent.
        src: Who sends it, by its place among all processes; None for whoever does.
        group: By default that of all processes.
        tag: A number that the sender must give, too.
        group_src: Who sends it, by its place in the group.
    """
    return _receive("irecv", tensor, src, group, tag, group_src, True)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor.

    Args:
        tensor: The output, of the shape and dtype of what is sent.
        src: Who sends it, by its place among all processes; None for whoever does.
        group: By default that of all processes.
        tag: A number that the sender must give, too.
        group_src: Who sends it, by its place in the group.

    Returns:
        The sender's place among all processes, and -1 outside of the group.

    Raises:
        ValueError: The sender is this process, or no member of the group.
        RuntimeError: The sender fails, leaves or does not come, or what it sends has another size.
    """
    work = _receive("recv", tensor, src, group, tag, group_src, False)
    if work is None:
        return -1
    work.wait()
    members = joined(group, "recv")
    assert members is not None
    return members.ranks[work.source_rank()]


def _receive(
    name: str,
    tensor: Tensor,
    src: int | None,
    group: ProcessGroup | None,
    tag: int,
    group_src: int | None,
    asynchronous: bool,
) -> Work | None:
    checked(name, tensor)
    if (members := joined(group, name)) is None:
        return None
    anybody = src is None and group_src is None
    if anybody and members.size() == 1:
        raise ValueError(f"{name}: there is one process, which nobody sends anything")
    source = None if anybody else _peer(name, "src", members, src, group_src, tag)
    holder: list[Task] = []

    def program(lent: Lent) -> Generator[Any, None, None]:
        yield from _arrived(members.messages, lent.bytes, source, tag, holder)
        lent.written()

    holder.append(Task(program(Lent(tensor)), name, "" if source is None else f" from rank {source}"))
    return _start(members, holder[0], source, [tensor], asynchronous)


class P2POp:
    """A message for :func:`batch_isend_irecv`.

    Args:
        op: :func:`isend` or :func:`irecv`.
        tensor: What is sent, or the output.
        peer: The other one, by its place among all processes.
        group: By default that of all processes.
        tag: A number that must be the same on both sides.
        group_peer: The other one, by its place in the group.

    Raises:
        ValueError: ``op`` is something else.
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        checked("P2POp", tensor)
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages.

    Args:
        p2p_op_list: The messages, all in one group.

    Returns:
        A work for each.

    Raises:
        ValueError: There are none, one is something else, or groups differ.
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for op in p2p_op_list:
        send = op.op is isend
        start: Any = _send if send else _receive
        works.append(start("isend" if send else "irecv", op.tensor, op.peer, op.group, op.tag, op.group_peer, True))
    return [work for work in works if work is not None]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects that can be pickled.

    Args:
        object_list: The objects.
        dst: Who gets them, by its place among all processes.
        group: By default that of all processes.
        device: Accepted; has no effect.
        group_dst: Who gets them, by its place in the group.
        use_batch: Accepted; has no effect.
    """
    if (members := joined(group, "send_object_list")) is None:
        return
    to = _peer("send_object_list", "dst", members, dst, group_dst, 0)

    def program(data: Bytes) -> Generator[Any, None, None]:
        yield members.messages.send(data, to, _MOST)

    _start(members, Task(program(packed(list(object_list))), "send_object_list"), to, [], False).wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects. They are unpickled, which can run any code: receive from processes that you trust.

    Args:
        object_list: As many places as there are objects; they get them.
        src: Who sends them, by its place among all processes; None for whoever does.
        group: By default that of all processes.
        device: Accepted; has no effect.
        group_src: Who sends them, by its place in the group.
        use_batch: Accepted; has no effect.

    Returns:
        The sender's place among all processes.
    """
    name = "recv_object_list"
    if (members := joined(group, name)) is None:
        return -1
    anybody = src is None and group_src is None
    source = None if anybody else _peer(name, "src", members, src, group_src, 0)
    got: list[Any] = []

    def program() -> Generator[Any, None, None]:
        while (found := members.messages.waiting_message(_MOST, source)) is None:
            yield _Soon()
        data = np.empty(found[1], np.uint8)
        yield found[2].Irecv(data)
        got.extend((found[0], data))

    _start(members, Task(program(), name), source, [], False).wait()
    objects = unpacked(got[1])
    if len(objects) != len(object_list):
        raise RuntimeError(f"{name}: {len(objects)} objects were sent, and `object_list` has {len(object_list)} places")
    object_list[:] = objects
    sender: int = got[0]
    return members.ranks[sender]
