"""Memory that processes share: tensors on the CPU whose elements lie in a file of memory.

A process that is forked has the same memory. A process that is spawned, and one that gets a tensor through a queue or
pipe of :mod:`rgrad.multiprocessing`, gets the file's descriptor and maps it too.
"""

from __future__ import annotations

import mmap
import os
import weakref
from importlib import import_module
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._runtime import memory_files
from .._tensor.construct import _as, _attributes
from .._tensor.parameter import Parameter, is_lazy
from ..autograd.grad_mode import no_grad

#: The descriptors and sizes of files of memory, by the address at which this process has mapped them.
_files: dict[int, tuple[int, int]] = {}


def _mapped(fd: int, size: int, kind: Any) -> Tensor:
    """The elements of a file of memory. The descriptor is closed when no tensor has them any more."""
    values = np.frombuffer(mmap.mmap(fd, size), kind)
    address = values.ctypes.data
    _files[address] = fd, size
    weakref.finalize(values, _close, address, fd).atexit = False
    return _core.from_numpy(values)


def _close(address: int, fd: int) -> None:
    _files.pop(address, None)
    os.close(fd)


def _file_of(t: Tensor) -> tuple[int, int] | None:
    if t.device.type != "cpu" or not _files:
        return None
    return _files.get(t.untyped_storage().data_ptr())


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
        for t in tensors:
            if _file_of(t) is not None:
                continue
            storage: Any = t.untyped_storage()
            if storage._cdata not in moved:
                # The old memory is kept until the end, so that no other gets its address.
                moved[storage._cdata] = _copied(t, storage.nbytes()), t.detach()
            t.data = moved[storage._cdata][0].as_strided(tuple(t.shape), t.stride(), t.storage_offset())


def _numpy_kind(dtype: Any) -> Any:
    name = str(dtype).rpartition(".")[2]
    if name != "bfloat16":
        return np.dtype(name)
    try:
        kind: Any = import_module("ml_dtypes").bfloat16
    except ImportError:
        raise RuntimeError(
            "share_memory_: bfloat16 needs the package ml_dtypes, since NumPy has no such type. Install it, or share "
            "float16 or float32"
        ) from None
    return np.dtype(kind)


def _copied(t: Tensor, size: int) -> Tensor:
    """All memory of a tensor, copied to a file of memory of one element or more."""
    kind = _numpy_kind(t.dtype)
    count = size // kind.itemsize
    size = max(count, 1) * kind.itemsize
    fd = memory_files.new("rgrad-shared")
    try:
        # A lack of memory is an exception now, not a signal at the first write.
        os.posix_fallocate(fd, 0, size)
        memory_files.seal(fd)
        memory = _mapped(fd, size, kind)
    except BaseException:
        os.close(fd)
        raise
    memory[:count].copy_(t.detach().as_strided((count,), (1,), 0))
    return memory


def _received(
    handle: Any,
    size: int,
    cls: type[Any],
    dtype: str,
    layout: tuple[Any, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    memory = _mapped(handle.detach(), size, _numpy_kind(dtype))
    return _as(cls, memory.as_strided(*layout).detach(), requires_grad, attributes)


def _reduced(t: Any) -> Any:
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
    dtype = str(t.dtype).rpartition(".")[2]
    return _received, (DupFd(fd), size, type(t), dtype, layout, t.requires_grad, _attributes(t))


for _kind in (Tensor, Parameter):
    ForkingPickler.register(_kind, _reduced)
