"""The transport: the one module that knows mpi4py.

A :class:`Link` is a communicator. Its methods start something and return an MPI request, or None where nothing is left
to wait for. Programs of such steps are run by ``_engine``. :class:`Alone` is the link of one process, which needs no
MPI.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import DistBackendError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

INSTALL = "install mpi4py and an MPI library: pip install 'rgrad[distributed]', or pip install mpi4py mpich"
#: What launchers of MPI tell the processes that they start: a variable with the number of processes.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
#: Their variables with the place of a process on its machine.
LOCAL_RANKS = (
    "LOCAL_RANK",
    "MPI_LOCALRANKID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
)
#: Names of dtypes that MPI adds and compares itself.
NATIVE = {
    "int8": "INT8_T",
    "int16": "INT16_T",
    "int32": "INT32_T",
    "int64": "INT64_T",
    "uint8": "UINT8_T",
    "uint16": "UINT16_T",
    "uint32": "UINT32_T",
    "uint64": "UINT64_T",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}


def found() -> bool:
    """Whether mpi4py is installed. It is not imported: that starts MPI."""
    return importlib.util.find_spec("mpi4py") is not None


def launched() -> bool:
    """Whether a launcher of MPI has started this process."""
    if any(name in os.environ for name in _SIZES) or "PMIX_RANK" in os.environ:
        return True
    return int(os.environ.get("SLURM_STEP_NUM_TASKS") or 1) > 1


def mpi() -> Any:
    """The module ``mpi4py.MPI``.

    Raises:
        RuntimeError: It cannot be imported.
    """
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"Distributed package doesn't have MPI built in: mpi4py cannot be imported ({error}); {INSTALL}"
        ) from error


def translated(error: BaseException) -> BaseException:
    """MPI's own error as the one that PyTorch's users catch; all others as they are."""
    if type(error).__module__.startswith("mpi4py"):
        return DistBackendError(f"MPI: {error}; do all processes call the same operation with the same shapes?")
    return error


class Link:
    """The members of a group and what they can start together.

    Args:
        comm: A communicator of mpi4py that nobody else uses.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self._mpi = mpi()

    def broadcast(self, data: Bytes, root: int) -> Any:
        return self.comm.Ibcast(data, root)

    def all_gather(self, given: Bytes, got: Bytes) -> Any:
        return self.comm.Iallgather(given, got)

    def gather(self, given: Bytes, got: Bytes | None, root: int) -> Any:
        return self.comm.Igather(given, got, root)

    def scatter(self, given: Bytes | None, got: Bytes, root: int) -> Any:
        return self.comm.Iscatter(given, got, root)

    def all_to_all(self, given: Bytes, sent: Sequence[int], got: Bytes, received: Sequence[int]) -> Any:
        """Parts of ``sent`` bytes go to the members in order; parts of ``received`` bytes come from them."""
        return self.comm.Ialltoallv((given, (list(sent), _starts(sent))), (got, (list(received), _starts(received))))

    def all_reduce(self, data: Bytes, dtype: str, op: str) -> Any:
        kind = getattr(self._mpi, NATIVE[dtype])
        return self.comm.Iallreduce(self._mpi.IN_PLACE, [data, kind], getattr(self._mpi, op))

    def reduce(self, data: Bytes, dtype: str, op: str, root: int) -> Any:
        kind, how = getattr(self._mpi, NATIVE[dtype]), getattr(self._mpi, op)
        if self.rank == root:
            return self.comm.Ireduce(self._mpi.IN_PLACE, [data, kind], how, root)
        return self.comm.Ireduce([data, kind], None, how, root)

    def reduce_scatter(self, given: Bytes, got: Bytes, dtype: str, op: str) -> Any:
        kind = getattr(self._mpi, NATIVE[dtype])
        return self.comm.Ireduce_scatter_block([given, kind], [got, kind], getattr(self._mpi, op))

    def barrier(self) -> Any:
        return self.comm.Ibarrier()

    def send(self, data: Bytes, to: int, tag: int) -> Any:
        return self.comm.Isend(data, to, tag)

    def receive(self, data: Bytes, source: int | None, tag: int) -> Any:
        return self.comm.Irecv(data, self._mpi.ANY_SOURCE if source is None else source, tag)

    def exchange(self, given: Bytes, got: Bytes, partner: int, tag: int) -> list[Any]:
        """Send to a member and receive from it."""
        return [self.receive(got, partner, tag), self.send(given, partner, tag)]

    def waiting_message(self, tag: int, source: int | None = None) -> tuple[int, int, Any] | None:
        """A message that has arrived: its sender, its number of bytes, and MPI's handle, which receives it."""
        status = self._mpi.Status()
        message = self.comm.Improbe(self._mpi.ANY_SOURCE if source is None else source, tag, status)
        if message is None:
            return None
        return status.Get_source(), status.Get_count(self._mpi.BYTE), message

    def same_machine(self) -> int:
        """The place of this process among those of its machine."""
        near = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        try:
            return int(near.Get_rank())
        finally:
            near.Free()

    def part(self, members: Sequence[int], tag: int) -> Link:
        """A link of some members, all of which call this at the same time."""
        everybody = self.comm.Get_group()
        chosen = everybody.Incl(list(members))
        try:
            return Link(self.comm.Create_group(chosen, tag))
        finally:
            chosen.Free()
            everybody.Free()

    def copy(self) -> Link:
        """A link of the same members, in which nothing meets what goes through this one."""
        return Link(self.comm.Dup())

    def free(self) -> None:
        self.comm.Free()

    def abort(self, status: int) -> None:
        """End all processes of the job."""
        self.comm.Abort(status)


class Alone(Link):
    """The link of one process: what it sends it gets."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1

    def broadcast(self, data: Bytes, root: int) -> Any:
        return None

    def all_gather(self, given: Bytes, got: Bytes) -> Any:
        got[...] = given

    def gather(self, given: Bytes, got: Bytes | None, root: int) -> Any:
        if got is not None:
            got[...] = given

    def scatter(self, given: Bytes | None, got: Bytes, root: int) -> Any:
        if given is not None:
            got[...] = given

    def all_to_all(self, given: Bytes, sent: Sequence[int], got: Bytes, received: Sequence[int]) -> Any:
        got[...] = given

    def all_reduce(self, data: Bytes, dtype: str, op: str) -> Any:
        return None

    def reduce(self, data: Bytes, dtype: str, op: str, root: int) -> Any:
        return None

    def reduce_scatter(self, given: Bytes, got: Bytes, dtype: str, op: str) -> Any:
        got[...] = given

    def barrier(self) -> Any:
        return None

    def same_machine(self) -> int:
        return 0

    def part(self, members: Sequence[int], tag: int) -> Link:
        return Alone()

    def copy(self) -> Link:
        return Alone()

    def free(self) -> None:
        pass

    def abort(self, status: int) -> None:
        os._exit(status)


def _starts(sizes: Sequence[int]) -> list[int]:
    starts, total = [], 0
    for size in sizes:
        starts.append(total)
        total += size
    return starts


def world(timeout: float) -> Link:
    """The link of all processes that were started together.

    Raises:
        RuntimeError: mpi4py is missing, or not all processes come here in time.
    """
    module = mpi()
    everybody = module.COMM_WORLD
    if module.Query_thread() < module.THREAD_SERIALIZED:
        raise RuntimeError(
            "init_process_group: this MPI library cannot be called from several threads; start MPI with "
            "mpi4py.rc.thread_level = 'multiple', or use another library"
        )
    # To duplicate a communicator blocks, so all processes must be known to be here.
    request, limit = everybody.Ibarrier(), time.monotonic() + timeout
    while not request.Test():
        if time.monotonic() > limit:
            raise DistBackendError(
                f"init_process_group: Timed out waiting {round(1000 * timeout)}ms for {everybody.Get_size()} "
                f"processes; "
                "all of them must call init_process_group"
            )
        time.sleep(0.0005)
    return Link(everybody.Dup())
