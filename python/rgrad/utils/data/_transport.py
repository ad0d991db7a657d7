"""Messages between a loader and its workers: pickles over a socket, with large arrays beside them in shared memory."""

import io
import mmap
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._runtime import memory_files

#: From so many bytes on arrays travel in shared memory, where the system has memory files.
SHARED = 1 << 18
#: Arrays in shared memory begin at multiples of this.
ALIGNMENT = 64

_HEADER = struct.Struct("<QIB")


class ConnectionEnded(EOFError):
    """The other process has gone."""


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _tensor(values: Any) -> Tensor:
    """A tensor from an array that nobody else has: large ones keep its memory."""
    return _core.from_numpy(values) if values.nbytes >= SHARED else _core.tensor(values, device="cpu")


class _Pickler(pickle.Pickler):
    """Takes plain tensors a shorter way than others, which have classes, gradients, strides or devices of their own."""

    def reducer_override(self, obj: Any) -> Any:
        if (
            type(obj) is not Tensor
            or obj.requires_grad
            or obj.device.type != "cpu"
            or obj.dtype in (_core.bfloat16, _core.complex32)
            or not obj.is_contiguous()
            or vars(obj)
            or obj.is_conj()
            or obj.is_neg()
        ):
            return NotImplemented
        return _tensor, (obj.numpy(),)


def dumps(message: Any) -> list[Any]:
    """The parts of a message that are to be sent, in order. The first one tells of the others.

    Raises:
        Exception: What pickling the message raises.
    """
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(message)
    body = file.getbuffer()
    raws = [buffer.raw() for buffer in buffers]
    sizes = [raw.nbytes for raw in raws]
    shared = hasattr(os, "memfd_create") and sum(sizes) >= SHARED
    head = _HEADER.pack(len(body), len(raws), shared) + struct.pack(f"<{len(raws)}Q", *sizes)
    return [head, body, *([] if not raws else [_Shared(raws)] if shared else raws)]


class _Shared:
    """Arrays that travel in one memory file."""

    def __init__(self, raws: Sequence[memoryview]) -> None:
        self.raws = raws

    def write(self) -> int:
        """Write them to a new file of memory, and give its descriptor."""
        fd = memory_files.new("rgrad-batch")
        try:
            at = 0
            for raw in self.raws:
                done = 0
                while done < raw.nbytes:
                    # Unlike a write through a mapping this fails with an exception where memory runs out.
                    done += os.pwrite(fd, raw[done : done + (1 << 30)], at + done)
                at += _aligned(raw.nbytes)
            os.ftruncate(fd, at)
            memory_files.seal(fd)
        except BaseException:
            os.close(fd)
            raise
        return fd


def send(sock: socket.socket, parts: Sequence[Any]) -> None:
    """Send the parts of a message.

    Raises:
        OSError: The other process has gone.
    """
    flat = [part for part in parts if not isinstance(part, _Shared)]
    if sum(len(part) for part in flat) <= 1 << 16:
        sock.sendall(b"".join(flat))
    else:
        for part in flat:
            sock.sendall(part)
    for part in parts:
        if isinstance(part, _Shared):
            fd = part.write()
            try:
                socket.send_fds(sock, [b"."], [fd])
            finally:
                os.close(fd)


def _exactly(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    _fill(sock, memoryview(data))
    return data


def _fill(sock: socket.socket, view: memoryview) -> None:
    done = 0
    while done < len(view):
        count = sock.recv_into(view[done:])
        if count == 0:
            raise ConnectionEnded
        done += count


def receive(sock: socket.socket) -> Any:
    """Wait for a message.

    Raises:
        ConnectionEnded: The other process has gone.
        OSError: The connection is broken.
    """
    length, count, shared = _HEADER.unpack(_exactly(sock, _HEADER.size))
    sizes = struct.unpack(f"<{count}Q", _exactly(sock, 8 * count)) if count else ()
    body = _exactly(sock, length)
    if not shared:
        return pickle.loads(body, buffers=[_exactly(sock, size) for size in sizes])
    mark, fds, _, _ = socket.recv_fds(sock, 1, 1)
    if not mark or not fds:
        raise ConnectionEnded
    try:
        whole = memoryview(mmap.mmap(fds[0], sum(map(_aligned, sizes))))
    finally:
        for fd in fds:
            os.close(fd)
    views, at = [], 0
    for size in sizes:
        views.append(whole[at : at + size])
        at += _aligned(size)
    return pickle.loads(body, buffers=views)
