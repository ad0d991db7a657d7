"""Questions about groups, and groups made of groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .. import _core
from ._group import Backend, GroupMember, ProcessGroup, all_groups, is_member, new_group, of
from ._mpi import LOCAL_RANKS


def get_rank(group: ProcessGroup | None = None) -> int:
    """The place of this process in a group, and -1 if it is no member.

    Args:
        group: By default that of all processes.

    Raises:
        ValueError: There is no group.
    """
    return of(group).rank() if is_member(group) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has, and -1 if this one is no member.

    Args:
        group: By default that of all processes.

    Raises:
        ValueError: There is no group.
    """
    return of(group).size() if is_member(group) else -1


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of a group's backend.

    Args:
        group: By default that of all processes.

    Raises:
        ValueError: There is no group.
    """
    return of(group).backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The names of a group's backends by device.

    Args:
        group: By default that of all processes.

    Raises:
        ValueError: There is no group.
    """
    name = str(of(group).backend)
    return name if ":" in name else f"cpu:{name},wgpu:{name}"


def get_pg_count() -> int:
    """How many groups there are."""
    return len(all_groups())


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a device's tensors: "gloo", a name under which MPI runs.

    Args:
        device: A device or its name.
    """
    if _core.device(device).type not in ("cpu", "wgpu"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return "gloo"


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The place among all processes of a member of a group.

    Args:
        group: The group.
        group_rank: Its place in the group.
    """
    ranks = of(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The place in a group of one of all processes.

    Args:
        group: The group.
        global_rank: Its place among all.
    """
    places = of(group).places
    if global_rank not in places:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return places[global_rank]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The places of all members of a group among all processes.

    Args:
        group: By default that of all processes.
    """
    return list(of(group).ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The place of this process on its machine, which ``LOCAL_RANK`` or a variable of the launcher says.

    Args:
        fallback_rank: What it is without such a variable.

    Raises:
        RuntimeError: There is neither.
    """
    for name in LOCAL_RANKS:
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Several groups, no process in two of them. All processes call it.

    Args:
        ranks_per_subgroup_list: The members of each.
        timeout: How long a call waits for the others.
        backend: A name; by default that of the group of all processes.
        pg_options: Accepted; has no effect.
        group_desc: What the groups are for.

    Returns:
        The group that this process is in, or None, and the list of all.

    Raises:
        ValueError: A process is in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Sequence[int]] = {}
    own, groups = None, []
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    for ranks in ranks_per_subgroup_list:
        made = new_group(list(ranks), timeout, backend, group_desc=group_desc)
        groups.append(made)
        if get_rank() in ranks:
            own = made
    return own, groups


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of so many processes that follow each other. All processes call it.

    Args:
        group_size: How many.
        group: What is divided; by default the group of all processes.
        timeout: How long a call waits for the others.
        backend: A name; by default that of the group of all processes.
        pg_options: Accepted; has no effect.
        group_desc: What the groups are for.

    Returns:
        The group that this process is in, and the list of all.

    Raises:
        ValueError: The number of processes is not a multiple of ``group_size``.
    """
    ranks = get_process_group_ranks(group)
    if group_size is None:
        raise ValueError(
            "new_subgroups: `group_size` is needed: there are no CUDA devices, whose number is its default"
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if len(ranks) < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({len(ranks)})")
    if len(ranks) % group_size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by 'group_size={group_size}'")
    parts = [ranks[start : start + group_size] for start in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Divide a group. All its members call it.

    Args:
        parent_pg: What is divided; by default the group of all processes.
        split_ranks: The places in it of the members of each part.
        timeout: How long a call waits for the others.
        pg_options: Accepted; has no effect.
        group_desc: What the groups are for.
        backend: A name; by default that of the group that is divided.

    Returns:
        The part that this process is in, or None.

    Raises:
        ValueError: ``split_ranks`` is missing or empty, or has a process twice.
    """
    parent = of(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    places = [place for part in split_ranks for place in part]
    if len(set(places)) != len(places):
        raise ValueError(f"the split group must have disjoint ranks, got {[list(part) for part in split_ranks]}")
    if any(not 0 <= place < parent.size() for place in places):
        raise ValueError(
            f"the split group's ranks must be places in the group, which has {parent.size()} members: {places}"
        )
    for part in split_ranks:
        if parent.rank() in part:
            ranks = [parent.ranks[place] for place in part]
            made = new_group(ranks, timeout, backend or parent.backend, group_desc=group_desc, sort_ranks=False)
            return made if made != GroupMember.NON_GROUP_MEMBER else None
    return None
