"""Memory that processes share: tensors on the CPU whose elements lie in a file of memory.

A process that is forked has the same memory. A process that is spawned, and one that gets a tensor through a queue or
pipe of :mod:`rgrad.multiprocessing`, gets the file's descriptor and maps it too.
"""

from __future__ import annotations

import mmap
import os
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, dtype
from .._operation.checked import operation
from .._runtime import memory_files
from .._tensor.bits import in_memory, lazy_bits, with_lazy_bits
from .._tensor.construct import _as, _attributes
from .._tensor.natives import memory_of
from .._tensor.parameter import Parameter, is_lazy
from ..autograd.grad_mode import no_grad

#: The descriptors and sizes of files of memory, by the address at which this process has mapped them.
_files: dict[int, tuple[int, int]] = {}


def _mapped(fd: int, size: int, kind: dtype) -> Tensor:
    """The elements of a file of memory. The descriptor is closed when no tensor has them any more."""
    values = np.frombuffer(mmap.mmap(fd, size), np.uint8)
    address = values.ctypes.data
    _files[address] = fd, size
    weakref.finalize(values, _close, address, fd).atexit = False
    return elements(_core.from_numpy(values), kind)


def elements(memory: Tensor, kind: dtype) -> Tensor:
    """The whole elements of a dtype that lie in bytes."""
    return memory[: len(memory) // kind.itemsize * kind.itemsize].view(kind)


def _close(address: int, fd: int) -> None:
    _files.pop(address, None)
    os.close(fd)


def _file_of(t: Tensor) -> tuple[int, int] | None:
    if t.device.type != "cpu" or not _files:
        return None
    return _files.get(memory_of(t).data_ptr())


@operation("is_shared")
def is_shared(input: Tensor) -> bool:
    """Tell whether other processes can have this tensor's memory; see :meth:`Tensor.share_memory_`.

    Args:
        input: A tensor.
    """
    return _file_of(input) is not None


@operation("share_memory_")
def share_memory_(input: Tensor) -> Tensor:
    """Move the tensor's elements to memory that other processes can have, and return the tensor.

    Tensors that share its memory already, such as views made before, keep the old memory. Processes that write at the
    same time do so without any order.

    Args:
        input: A tensor on the CPU.

    Raises:
        RuntimeError: The tensor is on another device, or the system has no files of memory (they are Linux's).
    """
    move([input])
    return input


def move(tensors: list[Tensor]) -> None:
    """Move tensors to shared memory. What shared memory among them before does so afterwards.

    Raises:
        RuntimeError: See :func:`share_memory_`.
    """
    for t in tensors:
        if is_lazy(t):
            t.share_memory_()  # it says what to do
        if t.device.type != "cpu":
            raise RuntimeError(
                f"share_memory_: only memory of the CPU can be shared between processes, this tensor is on {t.device}. "
                "Move it with .cpu() first"
            )
    if not hasattr(os, "memfd_create"):
        raise RuntimeError("share_memory_: this system has no files of memory (memfd_create)")
    moved: dict[int, tuple[Tensor, Tensor]] = {}
    with no_grad():
        # Of one memory the tensor with the smallest elements first: it has all its bytes.
        for t in sorted(tensors, key=lambda t: t.element_size()):
            if _file_of(t) is not None:
                continue
            storage = memory_of(t)
            if storage._cdata not in moved:
                # The old memory is kept until the end, so that no other gets its address.
                moved[storage._cdata] = _copied(t, storage.nbytes()), t.detach()
            # The memory is bytes: tensors of several dtypes may share it, as ``x`` and ``x.real`` do.
            there = elements(moved[storage._cdata][0], t.dtype)
            there = there.as_strided(tuple(t.shape), t.stride(), t.storage_offset())
            t.data = with_lazy_bits(there, lazy_bits(t))


def _copied(t: Tensor, size: int) -> Tensor:
    """The bytes of a tensor's memory, copied to a file of memory of one element or more."""
    width = t.element_size()
    count = size // width
    size = max(size, width)
    fd = memory_files.new("rgrad-shared")
    try:
        # A lack of memory is an exception now, not a signal at the first write.
        os.posix_fallocate(fd, 0, size)
        memory_files.seal(fd)
        memory = _mapped(fd, size, _core.uint8)
    except BaseException:
        os.close(fd)
        raise
    elements(memory, t.dtype)[:count].copy_(in_memory(t).as_strided((count,), (1,), 0))
    return memory


def _received(
    handle: Any,
    size: int,
    cls: type[Any],
    kind: dtype,
    layout: tuple[Any, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
    lazy: list[str],
) -> Any:
    memory = _mapped(handle.detach(), size, kind)
    return _as(cls, with_lazy_bits(memory.as_strided(*layout).detach(), lazy), requires_grad, attributes)


def reduced(t: Any) -> Any:
    """How a tensor travels between processes: by its file if it is shared, otherwise with its values."""
    file = _file_of(t)
    if file is None:
        return t.__reduce_ex__(2)
    if not t.is_leaf and t.requires_grad:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    fd, size = file
    layout = tuple(t.shape), t.stride(), t.storage_offset()
    return _received, (DupFd(fd), size, type(t), t.dtype, layout, t.requires_grad, _attributes(t), lazy_bits(t))


for _kind in (Tensor, Parameter):
    ForkingPickler.register(_kind, reduced)
