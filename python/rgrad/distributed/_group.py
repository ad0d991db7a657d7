"""Groups of processes: who is in them, and what they send through."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._engine import Lane, Task, engine
from ._mpi import INSTALL, Alone, Link, found, launched, world
from ._news import Last, Watch, place

NOT_READY = "Default process group has not been initialized, please make sure to call init_process_group."
_BACKENDS = ("gloo", "mpi", "nccl", "ucc", "xccl")

#: How long a group waits for its members unless it is told otherwise.
default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a backend. All of them are MPI here, or nothing in a group of one process."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: got {type(name).__name__}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of processes. :func:`init_process_group` and :func:`new_group` make groups.

    Args:
        backend: The name of the backend.
        name: The name of the group.
        ranks: The places of the members among all processes, in their order in the group.
        links: What collectives and what messages go through; by default this process is alone.
        timeout: How many seconds a call waits for the others.
        description: What the group is for.
    """

    def __init__(
        self,
        backend: str = "gloo",
        name: str = "0",
        ranks: Sequence[int] = (0,),
        links: tuple[Link, Link] | None = None,
        timeout: float = default_pg_timeout.total_seconds(),
        description: str = "undefined",
    ) -> None:
        self.backend = Backend(backend)
        self.group_name = name
        self.group_desc = description
        self.ranks = list(ranks)
        self.link, self.messages = links or (Alone(), Alone())
        self.timeout = timeout
        self.lane = Lane()
        self.places = {rank: place for place, rank in enumerate(self.ranks)}
        #: How many collectives it has begun, and the last of them.
        self.count = 0
        self.last: Last | None = None
        self.closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_name} of ranks {self.ranks}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a ProcessGroup: it belongs to the processes that made it")

    def rank(self) -> int:
        """The place of this process in the group."""
        return self.link.rank

    def size(self) -> int:
        """How many processes there are."""
        return self.link.size

    def name(self) -> str:
        """The name of the backend."""
        return str(self.backend)

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long calls wait for the others.

        Args:
            timeout: The time.
        """
        self.timeout = timeout.total_seconds()

    def close(self) -> None:
        """End it. Messages that are on their way are lost."""
        if not self.closed:
            self.closed = True
            idle = not self.lane.tasks
            with engine.lock:
                for link in (self.link, self.messages):
                    # A communicator with operations in it cannot be freed.
                    if idle:
                        link.free()


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, once there is one."""
        return _default

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        global _default
        _default = group


class group(metaclass=_World):
    """Where the group of all processes is found: ``group.WORLD``."""


class GroupMember(metaclass=_World):
    """As :class:`group`; ``NON_GROUP_MEMBER`` is what processes outside of a group have."""

    NON_GROUP_MEMBER = -100


_default: ProcessGroup | None = None
_groups: list[ProcessGroup] = []
_made: dict[tuple[int, ...], int] = {}
_watch: Watch | None = None


def is_available() -> bool:
    """Whether mpi4py is installed, which several processes need. A group of one process works without it."""
    return found()


def is_initialized() -> bool:
    """Whether :func:`init_process_group` has made a group."""
    return _default is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend's name is known; all of them are MPI here.

    Args:
        backend: Its name.
    """
    return backend.lower() in _BACKENDS


def is_gloo_available() -> bool:
    """As :func:`is_mpi_available`: under this name MPI is used."""
    return found()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return found()


def is_nccl_available() -> bool:
    """Always False: there are no CUDA devices."""
    return False


def is_ucc_available() -> bool:
    """Always False: there is MPI only."""
    return False


def is_xccl_available() -> bool:
    """Always False: there is MPI only."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether ``torchrun`` or ``python -m rgrad.distributed.run`` has started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _of_environment(name: str) -> int:
    given = os.environ.get(name)
    if given is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set"
        )
    return int(given)


def _seconds(timeout: timedelta | None) -> float:
    if timeout is None:
        timeout = default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout.total_seconds()


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: Any = None,
) -> None:
    """Make the group of all processes.

    Processes that ``mpiexec``, ``srun`` or ``python -m rgrad.distributed.run`` has started find each other by MPI, for
    which mpi4py must be installed. A process that was started alone is a group of one and needs nothing.

    Args:
        backend: A name: "mpi", "gloo", "nccl", "ucc" or pairs such as "cpu:gloo". All of them are MPI.
        init_method: "env://", the default, reads ``RANK`` and ``WORLD_SIZE`` where MPI does not know them. MPI needs
            no other address.
        timeout: How long a call waits for the others; by default 30 minutes.
        world_size: How many processes there are; MPI knows it.
        rank: The place of this one; MPI knows it.
        store: Accepted in place of ``init_method``; then both numbers have to be given.
        group_name: Accepted; has no effect.
        pg_options: Accepted; has no effect.
        device_id: Accepted; has no effect.

    Raises:
        RuntimeError: There is more than one process, and mpi4py or the launcher is missing; or a process does not come.
        ValueError: There is a group already, a number is missing or is not the one that MPI knows.

    Example:
        >>> rgrad.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> rgrad.distributed.get_world_size()
        1
        >>> rgrad.distributed.destroy_process_group()
    """
    global _default, _watch
    if _default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    seconds = _seconds(timeout)
    if world_size != 1 and found() and (launched() or (backend or "").lower() == Backend.MPI):
        _default, _watch = _of_mpi(backend, rank, world_size, seconds)
    else:
        _default = _of_one(backend, init_method, rank, world_size, store, seconds)
    _groups.append(_default)


def _of_one(
    backend: str | None, init_method: str | None, rank: int, world_size: int, store: Any, seconds: float
) -> ProcessGroup:
    if store is None and (init_method or "env://").startswith("env://"):
        rank = _of_environment("RANK") if rank < 0 else rank
        world_size = _of_environment("WORLD_SIZE") if world_size < 0 else world_size
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(
            f"init_process_group: rank and world_size must be given, with 0 <= rank < world_size; got rank {rank} and "
            f"world_size {world_size}"
        )
    if world_size > 1:
        start = "start the processes with python -m rgrad.distributed.run, mpiexec or srun"
        raise RuntimeError(
            f"init_process_group: world_size is {world_size}, but no launcher of MPI has started this process, and "
            f"rgrad's processes find each other by MPI; {start if found() else f'{INSTALL}, and {start}'}"
        )
    return ProcessGroup(backend or "gloo", "0", timeout=seconds)


def _of_mpi(backend: str | None, rank: int, world_size: int, seconds: float) -> tuple[ProcessGroup, Watch | None]:
    link = world(seconds)
    for what, given, variable, known in (
        ("rank", rank, "RANK", link.rank),
        ("world_size", world_size, "WORLD_SIZE", link.size),
    ):
        stated = given if given >= 0 else int(os.environ.get(variable, known))
        if stated != known:
            raise ValueError(f"init_process_group: {what} is {stated}, but MPI says {known}; leave it away")
    os.environ.setdefault("RANK", str(link.rank))
    os.environ.setdefault("WORLD_SIZE", str(link.size))
    name = backend or Backend.MPI
    if link.rank == 0 and "mpi" not in name.lower() and link.size > 1:
        warnings.warn(f"init_process_group: backend {name!r} runs on MPI here", stacklevel=3)
    ranks = range(link.size)
    links = (link, link.copy())
    made = ProcessGroup(name, "0", ranks, links, seconds, "default_pg")
    return made, Watch(link.copy(), _groups) if link.size > 1 else None


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group; by default that of all processes, and with it all others.

    Args:
        group: What :func:`init_process_group` or :func:`new_group` has made.

    Raises:
        AssertionError: There is no group.
        ValueError: The group has ended already.
    """
    global _default, _watch
    if not is_member(group):
        return
    if _default is None:
        raise AssertionError("Process group cannot be None: " + NOT_READY)
    if group is not None and group not in _groups:
        raise ValueError("Invalid process group specified")
    if group is not None and group is not _default:
        _groups.remove(group)
        group.close()
        return
    if _watch is not None:
        _watch.leave()
    engine.close()
    for one in reversed(_groups):
        one.close()
    _groups.clear()
    _made.clear()
    _default = _watch = None


def _members_meet(link: Link, ranks: Sequence[int], tag: int) -> Any:
    """Messages after which every member knows that all members are here."""
    import numpy as np

    mine, size = ranks.index(link.rank), len(ranks)
    step = 1
    while step < size:
        sent, got = np.zeros(1, np.uint8), np.zeros(1, np.uint8)
        yield [
            link.receive(got, ranks[(mine - step) % size], tag),
            link.send(sent, ranks[(mine + step) % size], tag),
        ]
        step *= 2


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A further group of some processes. All members call it; who is no member may.

    Args:
        ranks: The members' places among all processes; None for all of them.
        timeout: How long a call waits for the others; by default 30 minutes.
        backend: A name; by default that of the group of all processes.
        pg_options: Accepted; has no effect.
        use_local_synchronization: Accepted; has no effect: only members wait for each other.
        group_desc: What the group is for.
        device_id: Accepted; has no effect.
        sort_ranks: Whether members stand in the order of their places among all processes.

    Returns:
        The group, or ``GroupMember.NON_GROUP_MEMBER`` for a process outside of it.

    Raises:
        RuntimeError: A rank does not exist, or is given twice; or a member does not come.
        ValueError: There is no group of all processes.
    """
    whole = of(None)
    members = list(range(whole.size())) if ranks is None else [int(rank) for rank in ranks]
    if len(members) > whole.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group: got "
            f"{len(members)} ranks, and there are {whole.size()} processes"
        )
    if len(set(members)) != len(members):
        raise ValueError(f"Found duplicate ranks in new_group: {members}")
    if sort_ranks:
        members.sort()
    if any(not 0 <= rank < whole.size() for rank in members):
        raise ValueError(
            "The new group's rank should be within the world_size set by init_process_group: got ranks "
            f"{members}, and there are {whole.size()} processes"
        )
    seconds = _seconds(timeout)
    if whole.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    key = tuple(members)
    number = _made[key] = _made.get(key, 0) + 1
    name = f"{zlib.crc32(repr((key, number)).encode()):08x}"
    links: tuple[Link, Link] | None = None
    if len(members) > 1:
        # Tags of messages between members of different groups must not meet; ranks and number make them differ.
        tag = 1 + int(name, 16) % 32000
        if _watch is None:
            raise RuntimeError("new_group: the group of all processes has ended")
        meeting = Task(_members_meet(_watch.link, members, tag), "new_group", at=place())
        meeting.peers = lambda: _watch.gone(members, None, 0) if _watch is not None else ""
        engine.start(meeting)
        engine.wait(meeting, seconds, report)
        with engine.lock:
            first = whole.link.part(members, tag)
            links = (first, first.copy())
    made = ProcessGroup(backend or whole.backend, name, members, links, seconds, group_desc or "undefined")
    _groups.append(made)
    return made


def report(task: Task) -> str:
    """What the other processes did last, for the message of a time-out."""
    return _watch.report() if _watch is not None else ""


def watch() -> Watch | None:
    """What knows about the other processes, where there are any."""
    return _watch


def of(group: ProcessGroup | None) -> ProcessGroup:
    """A group; None is that of all processes.

    Raises:
        ValueError: There is none, or the group has ended.
    """
    if _default is None:
        raise ValueError(NOT_READY)
    if group is None:
        return _default
    if not isinstance(group, ProcessGroup) or group.closed:
        raise ValueError(f"Invalid process group specified: {group!r} has ended, or is none")
    return group


def all_groups() -> list[ProcessGroup]:
    """The groups of this process."""
    return _groups


def is_member(group: Any) -> bool:
    """Whether this process is in a group."""
    return group is None or isinstance(group, ProcessGroup)
