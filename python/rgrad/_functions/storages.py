"""Functions and methods that give or take storages."""

from __future__ import annotations

import os
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.options import checked_options
from .._tensor.natives import set_to
from .._tensor.typed_storage import TypedStorage, warn_of_removal
from .._tensor.untyped_storage import UntypedStorage, by_name, mapped_bytes, whole_memory


@operation("untyped_storage")
def untyped_storage(input: Tensor) -> UntypedStorage:
    """The memory of the tensor, which all its views share, as a storage of bytes.

    Args:
        input: A tensor.
    """
    return UntypedStorage._of(input)


@operation("storage")
def storage(input: Tensor) -> TypedStorage:
    """The memory of the tensor as a typed storage. Use ``untyped_storage`` in new programs.

    Args:
        input: A tensor.
    """
    warn_of_removal()
    return TypedStorage._over(UntypedStorage._of(input), input.dtype)


@operation("storage_type")
def storage_type(input: Tensor) -> type[TypedStorage]:
    """The old class of storages of the tensor's dtype.

    Args:
        input: A tensor.

    Raises:
        KeyError: There was none for the dtype.
    """
    name = TypedStorage._over(UntypedStorage._of(input), input.dtype).pickle_storage_type()
    found: type[TypedStorage] = by_name(name)
    return found


@operation("set_")
def set_(input: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make the tensor use the memory of another one, or a storage.

    Args:
        input: A tensor.
        source: A tensor of the same dtype, whose shape and strides it gets, too, or a storage. Without it the tensor
            becomes empty.
        storage_offset: The first element in the memory.
        size: The shape; by default that of ``source``, or all elements of the storage.
        stride: The strides in elements; by default those of a contiguous tensor.

    Raises:
        RuntimeError: The dtypes or devices differ, one of the tensors has a history while grad mode is on, the tensor
            is frozen, or it would reach beyond the memory.
        TypeError: ``source`` is neither a tensor nor a storage.
    """
    if source is None:
        return set_to(input)
    if isinstance(source, (TypedStorage, UntypedStorage)):
        memory = source.untyped()._as(input.dtype)
        if size is None:
            size = (memory.numel() - storage_offset,)
    elif not isinstance(source, Tensor):
        raise TypeError(
            f"set_(): argument 'source' (position 1) must be Tensor or Storage, not {type(source).__name__}"
        )
    elif size is None and stride is None and storage_offset == 0:
        return set_to(input, source)
    else:
        memory = whole_memory(source)
    size = tuple(source.shape) if size is None else (size,) if isinstance(size, int) else tuple(size)
    if stride is None:
        stride = _core.empty(size, device="meta").stride()
    start = memory.storage_offset() + storage_offset
    view = memory.as_strided(size, (stride,) if isinstance(stride, int) else tuple(stride), start)
    return set_to(input, view.detach())


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """The data as a tensor, with or without a copy.

    Args:
        obj: A tensor, an array of NumPy, a storage, an object with ``__array__`` or a buffer, a number or nested
            sequences of numbers.
        dtype: The dtype; by default that of `obj`.
        device: The device; by default that of `obj`.
        copy: True always copies, False never does; None copies if it is necessary.
        requires_grad: Whether operations on the tensor are recorded.

    Returns:
        The tensor.

    Raises:
        ValueError: `copy` is False, but a copy is necessary. Further errors are those of `tensor`.
    """
    if isinstance(obj, (TypedStorage, UntypedStorage)):
        obj = obj._values() if isinstance(obj, TypedStorage) else obj._as(dtype or _core.uint8)
    return _core.asarray(obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """The bytes of an object as a tensor in one dimension, over the same memory.

    Args:
        buffer: What has the bytes: a ``bytearray``, an ``array``, a map of a file.
        dtype: The dtype of the elements.
        count: How many elements; -1 for all that are there.
        offset: The first byte.
        requires_grad: Whether operations on the tensor are recorded.

    Returns:
        The tensor. It refuses writes if the buffer does.

    Raises:
        ValueError: There are no bytes, fewer than ``count`` elements, or bytes that are left over at the end.
        TypeError: ``buffer`` has no bytes, or ``dtype`` is none.
    """
    import numpy as np

    dtype, _, requires_grad = checked_options("frombuffer", dtype, requires_grad=requires_grad)
    if dtype is None:
        raise TypeError("frombuffer(): argument 'dtype' must be rgrad.dtype, not NoneType")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise TypeError(
            f"frombuffer(): object of type {type(buffer).__name__} does not implement Python buffer protocol"
        ) from None
    data, width = view.cast("B") if view.nbytes else view, dtype.itemsize
    size = view.nbytes
    if not size or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) - 1"
        )
    left = size - offset
    if count < 0:
        if left % width:
            raise ValueError(
                f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size "
                f"({width})"
            )
        count = left // width
    if count * width > left:
        raise ValueError(
            f"requested buffer length ({count} * {width} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    found = np.frombuffer(data, np.uint8, count * width, offset)
    if found.ctypes.data % width:
        found = found.copy()
    made = _core.from_numpy(found).view(dtype)
    return made.requires_grad_() if requires_grad else made


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The first elements of a file as a tensor in one dimension; they are read when they are used.

    Args:
        filename: The path.
        shared: Write changes to the file, which is made longer if it is too short. Otherwise they stay in this
            process.
        size: How many elements.
        dtype: Their dtype; by default the default dtype.
        layout: Has no effect.
        device: The device. On another one than the CPU it is a copy.
        pin_memory: Has no effect.
        requires_grad: Whether operations on the tensor are recorded.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The file is shorter, and ``shared`` is not True.
        OSError: It cannot be opened.
    """
    kind = dtype or _core.get_default_dtype()
    found = mapped_bytes(filename, bool(shared), (size or 0) * kind.itemsize).view(kind)
    if device is not None:
        found = found.to(device)
    return found.requires_grad_() if requires_grad else found
