"""`UntypedStorage`: the memory of tensors as bytes, an object for programs that look at it.

The native class of this name has the few numbers that rgrad itself asks for; `natives.memory_of` gives it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from typing import Any, Self

from .. import _core
from .._core import Tensor
from .bits import in_memory
from .construct import copied_data
from .natives import memory_of


def whole_memory(t: Tensor) -> Tensor:
    """All elements of a tensor's memory, in one dimension and in the tensor's dtype.

    Raises:
        NotImplementedError: The tensor belongs to a function transform.
    """
    with _core.DisableTorchFunctionSubclass():
        if _core._level_of(t) > 0:
            raise NotImplementedError("Cannot access storage of a tensor inside a function transform (vmap, grad, ...)")
        t = in_memory(t)
        # On a device integers and bool take four bytes at least.
        packed = t.device.type in ("cpu", "meta") or t.is_floating_point() or t.is_complex()
        size = t.element_size() if packed else max(4, t.element_size())
        return t.as_strided((memory_of(t).nbytes() // size,), (1,), 0).detach()


def mapped_bytes(filename: str | os.PathLike[str], shared: bool, nbytes: int) -> Tensor:
    """The first bytes of a file as a tensor; they are read when they are used.

    A shared map writes to the file, which is made as long as that if it is shorter.

    Raises:
        RuntimeError: The file is shorter, and the map is not shared.
        OSError: It cannot be opened.
    """
    import mmap

    import numpy as np

    if type(nbytes) is bool or (nbytes := operator.index(nbytes)) < 0:
        raise RuntimeError(f"from_file: the size must be a non-negative number, got {nbytes}")
    handle = os.open(filename, (os.O_RDWR | os.O_CREAT) if shared else os.O_RDONLY, 0o666)
    try:
        found = os.fstat(handle).st_size
        if found < nbytes:
            if not shared:
                raise RuntimeError(
                    f"from_file: {os.fspath(filename)!r} has {found} bytes, which is smaller than the required {nbytes}"
                )
            os.ftruncate(handle, nbytes)
        if nbytes == 0:
            return _core.empty(0, dtype=_core.uint8)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return _core.from_numpy(np.frombuffer(mmap.mmap(handle, nbytes, access=access), np.uint8))
    finally:
        os.close(handle)


def _deserialized(data: bytes) -> Any:
    """What pickles of storages name; see `UntypedStorage.__reduce__`."""
    import numpy as np

    return UntypedStorage._over(_core.from_numpy(np.frombuffer(bytearray(data), np.uint8)))


_deserialized.__module__ = "rgrad.storage"


class UntypedStorage:
    """The memory of tensors as a sequence of bytes. Tensors that share memory have equal `data_ptr`.

    Args:
        data: The number of bytes, or the bytes themselves as numbers; without it there are none.
        device: The device.

    Raises:
        TypeError: ``data`` is neither a number nor a sequence.
        RuntimeError: The number is negative.

    Example:
        >>> x = rgrad.tensor([1.0, 2.0])
        >>> x.untyped_storage().nbytes()
        8
        >>> x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        True
    """

    __module__ = "rgrad.storage"
    __slots__ = ("__weakref__", "_dtype", "_memory", "_native", "_window", "filename")

    #: A tensor in one dimension that has all of the memory.
    _memory: Tensor | None
    #: A tensor that lies in the memory, or its native storage.
    _native: Any
    #: For a part of a storage: its first byte, and how many there are.
    _window: tuple[int, int] | None
    #: The dtype of the elements where a reader of files knows it.
    _dtype: Any
    filename: str | None

    def __init__(self, data: Any = 0, *, device: Any = None) -> None:
        if isinstance(data, (bool, str, bytes)):
            raise TypeError(f"UntypedStorage(): expected a size or a sequence of bytes, got {type(data).__name__}")
        if hasattr(data, "__index__"):
            size = operator.index(data)
            if size < 0:
                raise RuntimeError(f"UntypedStorage(): the size must be non-negative, got {size}")
            memory = _core.zeros(size, dtype=_core.uint8, device=device or "cpu")
        else:
            memory = _core.tensor(list(data), dtype=_core.uint8, device=device or "cpu")
        self._set(memory)

    def _set(self, memory: Tensor | None, native: Any = None, window: tuple[int, int] | None = None) -> None:
        self._memory, self._native, self._window = memory, native, window
        self._dtype = self.filename = None

    @classmethod
    def _over(cls, memory: Tensor, window: tuple[int, int] | None = None) -> Self:
        """The storage of a tensor in one dimension, or a part of it."""
        made = cls.__new__(cls)
        made._set(memory, window=window)
        return made

    @classmethod
    def _of(cls, t: Tensor) -> Self:
        """The storage of any tensor."""
        made = cls.__new__(cls)
        made._set(None, native=t.detach() if _core._level_of(t) == 0 else t)
        return made

    def _whole(self) -> Tensor:
        if self._memory is None:
            self._memory = whole_memory(self._native)
        return self._memory

    def _as(self, dtype: Any) -> Tensor:
        """The elements as a dtype, over the same memory; bytes that are left over at the end are not there.

        Raises:
            RuntimeError: The memory lies on a device and has another dtype.
        """
        memory = self._whole()
        if memory.dtype == dtype and self._window is None:
            return memory
        if memory.device.type not in ("cpu", "meta"):
            raise RuntimeError(
                f"a storage of {memory.dtype} on {memory.device} cannot be taken as {dtype}: there the elements have "
                "the form of their dtype. Use .cpu() first"
            )
        raw = memory.view(_core.uint8)
        if self._window is not None:
            start, size = self._window
            raw = raw[start : start + size]
        width = dtype.itemsize
        raw = raw[: raw.numel() // width * width]
        if dtype == _core.uint8:
            return raw
        if not raw.numel():
            return _core.empty(0, dtype=dtype, device=raw.device)
        if raw.storage_offset() % width:
            raise RuntimeError(
                f"a storage that begins at byte {raw.storage_offset()} of its memory cannot be taken as {dtype}, whose "
                f"elements lie at multiples of {width} bytes. Use .clone() first"
            )
        return raw.view(dtype)

    def _raw(self) -> Tensor:
        """The bytes."""
        return self._as(_core.uint8)

    # ---------------------------------------------------------------------------------------------------- numbers

    def _native_storage(self) -> Any:
        return memory_of(self._native if self._native is not None else self._whole())

    def data_ptr(self) -> int:
        """The address of the first byte. For memory of a device, a number that no other memory has; 0 for meta."""
        start: int = self._native_storage().data_ptr()
        return start + self._window[0] if self._window is not None and start else start

    @property
    def _cdata(self) -> int:
        number: int = self._native_storage()._cdata
        return number if self._window is None else hash((number, self._window))

    def nbytes(self) -> int:
        """The size in bytes."""
        size: int = self._native_storage().nbytes() if self._window is None else self._window[1]
        return size

    def size(self) -> int:
        """The size in bytes, which are the elements of an untyped storage."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    @property
    def device(self) -> Any:
        """Where the memory lies."""
        return (self._native if self._native is not None else self._whole()).device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a GPU of CUDA."""
        return bool(self.device.type == "cuda")

    def get_device(self) -> int:
        """The number of the device, -1 for the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    def resizable(self) -> bool:
        """False: the memory of a tensor keeps its size."""
        return False

    def resize_(self, size: int) -> Self:
        """Keep the storage if it has this size.

        Args:
            size: The bytes.

        Raises:
            RuntimeError: It has another size: `Tensor.resize_` gives a tensor another memory.
        """
        if operator.index(size) != self.nbytes():
            raise RuntimeError(
                f"Trying to resize storage that is not resizable: it has {self.nbytes()} bytes, got {size}. "
                "Tensor.resize_ gives a tensor another memory"
            )
        return self

    # --------------------------------------------------------------------------------------------------- elements

    def _position(self, index: Any) -> int:
        found, size = operator.index(index), self.nbytes()
        if not -size <= found < size:
            raise IndexError(f"index {found} is out of range for a storage of size {size}")
        return found % size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.nbytes())
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            offset = self._window[0] if self._window is not None else 0
            part = type(self)._over(self._whole(), (offset + start, max(0, stop - start)))
            part.filename = self.filename
            return part
        return int(self._raw()[self._position(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        place = index if isinstance(index, slice) else self._position(index)
        raw = self._raw()
        raw[place] = value._raw().to(raw.device) if isinstance(value, UntypedStorage) else value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        values: list[int] = (self if self.device.type == "cpu" else self.cpu())._raw().tolist()
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The bytes as an array of NumPy over the same memory."""
        found = self._raw().numpy()
        if dtype is not None and found.dtype != dtype:
            return found.astype(dtype)
        return found.copy() if copy else found

    def __repr__(self) -> str:
        shown = self.tolist() if self.nbytes() <= 1000 and self.device.type != "meta" else []
        lines = "".join(f" {number}\n" for number in shown) or "...\n"
        return f"{lines}[rgrad.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    # ----------------------------------------------------------------------------------------------------- copies

    def fill_(self, value: int) -> Self:
        """Set every byte.

        Args:
            value: A number from 0 to 255.
        """
        self._raw().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copy the bytes of another storage of the same size.

        Args:
            source: The other storage.
            non_blocking: Has no effect: the copy is done when the call returns.

        Raises:
            RuntimeError: The sizes differ.
        """
        given: UntypedStorage = source.untyped()
        if given.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {given.nbytes()} bytes"
            )
        if self._window is None and self._whole().dtype == given._whole().dtype and given._window is None:
            self._whole().copy_(given._whole())
        else:
            self._raw().copy_(given._raw().to(self.device))
        return self

    def clone(self) -> Self:
        """A copy in memory of its own."""
        return self._like((self._whole() if self._window is None else self._raw()).clone())

    def _like(self, memory: Tensor) -> Self:
        made = type(self)._over(memory)
        made._dtype = self._dtype
        return made

    def __copy__(self) -> Self:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        if id(self) not in memo:
            # Tensors of the same memory, which are copied with it, share the copy.
            source = self._whole() if self._native is None else self._native
            copied = type(self)._of(copied_data(source, memo))
            memo[id(self)] = copied if self._window is None else copied[self._window[0] : sum(self._window)]
        found: Self = memo[id(self)]
        return found

    def __reduce__(self) -> Any:
        return _deserialized, (bytes((self if self.device.type == "cpu" else self.cpu())._raw().numpy()),)

    def to(self, device: Any = None, non_blocking: bool = False) -> Self:
        """The storage on a device; itself if it lies there.

        Args:
            device: The device.
            non_blocking: Has no effect: the copy is done when the call returns.
        """
        if device is None or _core.device(device) == self.device:
            return self
        memory = self._whole() if self._window is None else self._raw()
        if self._dtype is not None and memory.dtype == _core.uint8:
            memory = self._as(self._dtype)
        moved = memory.to(device)
        return self if moved.device == self.device else self._like(moved)

    def cpu(self) -> Self:
        """The storage on the CPU; itself if it lies there."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """The storage on a GPU of CUDA.

        Args:
            device: Which one.
            non_blocking: Has no effect: the copy is done when the call returns.

        Raises:
            RuntimeError: There is none.
        """
        memory: Any = self._whole()
        return self._like(memory.cuda(device))

    def untyped(self) -> Self:
        """The storage itself."""
        return self

    def new(self) -> Self:
        """An empty storage on the same device."""
        return type(self)(0, device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class, or the bytes as a storage of another one.

        Args:
            dtype: A class of storages, or its name; None for the name of this one.
            non_blocking: Has no effect: the copy is done when the call returns.
        """
        if dtype is None:
            return f"rgrad.storage.{type(self).__name__}"
        wanted = by_name(dtype) if isinstance(dtype, str) else dtype
        return self if wanted is UntypedStorage else wanted(self.tolist())

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of every element, in place.

        Args:
            dtype: The dtype of the elements; the parts of complex ones are reversed each by itself.
        """
        swap_bytes(self._raw().numpy(), dtype)

    def is_shared(self) -> bool:
        """Whether other processes can have the memory."""
        memory: Any = self._whole()
        return bool(memory.is_shared())

    def share_memory_(self) -> Self:
        """Move the storage to memory that other processes can have. Tensors that were made of it keep the old one.

        Raises:
            RuntimeError: It is on another device, or the system has no files of memory.
        """
        memory: Any = self._whole() if self._window is None else self._raw().clone()
        self._set(memory.share_memory_())
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """False: no memory is pinned.

        Args:
            device: Has no effect.
        """
        return False

    def pin_memory(self, device: Any = None) -> Self:
        """The storage itself.

        Args:
            device: Has no effect.
        """
        return self

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> Self:
        """The first bytes of a file, mapped: they are read when they are used.

        Args:
            filename: The path.
            shared: Write changes to the file, which is made as long as ``nbytes`` if it is shorter. Otherwise they
                stay in this process.
            nbytes: How many bytes.

        Raises:
            RuntimeError: The file is shorter, and ``shared`` is False.
            OSError: It cannot be opened.
        """
        made = cls._over(mapped_bytes(filename, shared, nbytes))
        made.filename = os.fspath(filename)
        return made

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        """A copy of the bytes of an object; see :meth:`TypedStorage.from_buffer`.

        Args:
            buffer: What has the bytes.
            args: The order of bytes, as text.
            dtype: The dtype, for the order of bytes.
            kwargs: ``byte_order``, ``count`` and ``offset``.

        Raises:
            ValueError: The order of bytes is unknown, or the buffer is shorter.
        """
        return cls._over(buffer_bytes(buffer, dtype or _core.uint8, *args, **kwargs))


#: The classes of storages by their names, the old ones of `typed_storage` too.
CLASSES: dict[str, Any] = {"UntypedStorage": UntypedStorage}


def by_name(name: str) -> Any:
    """The class of storages of a name.

    Raises:
        RuntimeError: There is none.
    """
    short = name.rpartition(".")[2]
    if short not in CLASSES:
        raise RuntimeError(f"there is no class of storages {name!r}; there are {', '.join(CLASSES)}")
    return CLASSES[short]


def swap_bytes(raw: Any, dtype: Any) -> None:
    """Reverse the bytes of the elements of an array of bytes, in place."""
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width > 1:
        raw.view(f"uint{8 * width}").byteswap(inplace=True)


def buffer_bytes(buffer: Any, dtype: Any, byte_order: str = "native", count: int = -1, offset: int = 0) -> Tensor:
    """A copy of bytes of a buffer, of elements in an order of bytes, as a tensor of uint8.

    Raises:
        ValueError: The order of bytes is unknown, or the buffer is shorter.
    """
    import sys

    import numpy as np

    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little' or 'native')")
    data, width = memoryview(buffer).cast("B"), dtype.itemsize
    if not 0 <= offset <= len(data):
        raise ValueError(f"offset must be between 0 and the buffer's length of {len(data)} bytes, got {offset}")
    left = len(data) - offset
    if count < 0:
        if left % width:
            raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({width})")
        count = left // width
    if count * width > left:
        raise ValueError(f"buffer has only {left} bytes after offset {offset}, expected {count * width}")
    made = np.frombuffer(bytearray(data[offset : offset + count * width]), np.uint8)
    if byte_order not in ("native", sys.byteorder):
        swap_bytes(made, dtype)
    return _core.from_numpy(made)
