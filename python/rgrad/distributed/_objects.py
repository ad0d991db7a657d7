"""Collectives of objects that can be pickled. Unpickling can run any code: processes must trust each other."""

from __future__ import annotations

import pickle
from collections.abc import Generator
from typing import Any

import numpy as np

from ._calls import joined, place_in, run
from ._group import ProcessGroup
from ._mpi import Bytes, Link

Steps = Generator[Any, None, None]


def packed(value: Any) -> Bytes:
    """An object as bytes."""
    return np.frombuffer(bytearray(pickle.dumps(value)), np.uint8)


def unpacked(data: Bytes) -> Any:
    """The object of bytes."""
    return pickle.loads(data.tobytes())


def _sizes(link: Link, data: Bytes, sizes: Any) -> Steps:
    yield link.all_gather(np.array([data.nbytes], np.int64).view(np.uint8), sizes.view(np.uint8))


def _padded(data: Bytes, size: int) -> Bytes:
    room = np.zeros(size, np.uint8)
    room[: data.nbytes] = data
    return room


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give all processes a list of one of them.

    Args:
        object_list: The list, and a list of the same length elsewhere.
        src: Who has it, by its place among all processes; by default the first.
        group: By default that of all processes.
        device: Accepted; has no effect.
        group_src: Who has it, by its place in the group.
    """
    name = "broadcast_object_list"
    if (members := joined(group, name)) is None:
        return
    root = place_in(members, name, "src", 0 if src is None and group_src is None else src, group_src)
    link = members.link
    here = link.rank == root
    given = packed(list(object_list)) if here else None
    got: list[Bytes] = []

    def program() -> Steps:
        size = np.array([0 if given is None else given.nbytes], np.int64)
        yield link.broadcast(size.view(np.uint8), root)
        data = np.empty(int(size[0]), np.uint8) if given is None else given
        yield link.broadcast(data, root)
        got.append(data)

    run(members, name, program(), [f"src={root}"], [], False)
    if not here:
        objects = unpacked(got[0])
        if len(objects) != len(object_list):
            raise RuntimeError(f"{name}: {len(objects)} objects came, and `object_list` has {len(object_list)} places")
        object_list[:] = objects


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Collect an object of each process.

    Args:
        object_list: Gets a copy of each object.
        obj: This process's.
        group: By default that of all processes.
    """
    name = "all_gather_object"
    if (members := joined(group, name)) is None:
        return
    if len(object_list) != members.size():
        raise ValueError(
            f"{name}: `object_list` must have one place for each process, got {len(object_list)} for {members.size()}"
        )
    link, given = members.link, packed(obj)
    sizes = np.zeros(link.size, np.int64)
    got: list[Any] = []

    def program() -> Steps:
        yield from _sizes(link, given, sizes)
        room = np.empty((link.size, max(sizes.tolist())), np.uint8)
        yield link.all_gather(_padded(given, room.shape[1]), room.reshape(-1))
        got.append(room)

    run(members, name, program(), [], [], False)
    object_list[:] = [unpacked(row[:size]) for row, size in zip(got[0], sizes, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """As :func:`all_gather_object`, in one process.

    Args:
        obj: This process's.
        object_gather_list: Gets a copy of each object, where they are collected; None elsewhere.
        dst: Who gets them, by its place among all processes; by default the first.
        group: By default that of all processes.
        group_dst: Who gets them, by its place in the group.
    """
    name = "gather_object"
    if (members := joined(group, name)) is None:
        return
    root = place_in(members, name, "dst", 0 if dst is None and group_dst is None else dst, group_dst)
    link, given = members.link, packed(obj)
    here = link.rank == root
    if here and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank: it is `object_gather_list`.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if here and object_gather_list is not None and len(object_gather_list) != link.size:
        raise ValueError(
            f"{name}: `object_gather_list` must have one place for each process, got {len(object_gather_list)}"
        )
    sizes = np.zeros(link.size, np.int64)
    got: list[Any] = []

    def program() -> Steps:
        yield from _sizes(link, given, sizes)
        most = max(sizes.tolist())
        room = np.empty((link.size, most), np.uint8) if here else None
        yield link.gather(_padded(given, most), None if room is None else room.reshape(-1), root)
        got.append(room)

    run(members, name, program(), [f"dst={root}"], [], False)
    if object_gather_list is not None and here:
        object_gather_list[:] = [unpacked(row[:size]) for row, size in zip(got[0], sizes, strict=True)]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Give each process one object of a list.

    Args:
        scatter_object_output_list: Its first place gets this process's.
        scatter_object_input_list: One for each process, where they are; None elsewhere.
        src: Who has them, by its place among all processes; by default the first.
        group: By default that of all processes.
        group_src: Who has them, by its place in the group.
    """
    name = "scatter_object_list"
    if (members := joined(group, name)) is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = place_in(members, name, "src", 0 if src is None and group_src is None else src, group_src)
    link = members.link
    here = link.rank == root
    if here and (scatter_object_input_list is None or len(scatter_object_input_list) != link.size):
        raise ValueError(
            "source rank must provide non-None scatter_object_input_list: `scatter_object_input_list` must have one "
            "object for each process"
        )
    parts = [packed(one) for one in scatter_object_input_list or ()] if here else []
    got: list[Any] = []

    def program() -> Steps:
        sizes = np.array([part.nbytes for part in parts] or [0] * link.size, np.int64)
        yield link.broadcast(sizes.view(np.uint8), root)
        most = max(sizes.tolist())
        given = np.concatenate([_padded(part, most) for part in parts]) if here else None
        room = np.empty(most, np.uint8)
        yield link.scatter(given, room, root)
        got.append(room[: sizes[link.rank]])

    run(members, name, program(), [f"src={root}"], [], False)
    scatter_object_output_list[0] = unpacked(got[0])
