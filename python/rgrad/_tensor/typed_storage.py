"""`TypedStorage`, `FloatStorage` and its sisters: the memory of tensors as elements of one dtype, an old form."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

from .. import _core
from .._runtime.warned import warn_user_once
from .untyped_storage import CLASSES, UntypedStorage, buffer_bytes, by_name, mapped_bytes

#: The dtype of each of the old classes.
DTYPES: dict[str, Any] = {
    "DoubleStorage": _core.float64,
    "FloatStorage": _core.float32,
    "HalfStorage": _core.float16,
    "LongStorage": _core.int64,
    "IntStorage": _core.int32,
    "ShortStorage": _core.int16,
    "CharStorage": _core.int8,
    "ByteStorage": _core.uint8,
    "BoolStorage": _core.bool,
    "BFloat16Storage": _core.bfloat16,
    "ComplexDoubleStorage": _core.complex128,
    "ComplexFloatStorage": _core.complex64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Old classes whose elements are no numbers here.
QUANTIZED = ("QUInt8Storage", "QInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage")


def warn_of_removal() -> None:
    """Say once that typed storages are old."""
    warn_user_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
        "class. This should only matter to you if you are using storages directly. To access UntypedStorage "
        "directly, use tensor.untyped_storage() instead of tensor.storage()"
    )


class TypedStorage:
    """The memory of tensors as elements of one dtype. Use :class:`UntypedStorage` in new programs.

    Args:
        args: The number of elements, or a sequence of their values.
        wrap_storage: The memory to use, in place of ``args``.
        dtype: The dtype of the elements.
        device: The device.

    Raises:
        RuntimeError: Arguments contradict each other.
        TypeError: An argument has another type.

    Example:
        >>> s = rgrad.TypedStorage._over(rgrad.tensor([1.0, 2.0]).untyped_storage(), rgrad.float32)
        >>> s.tolist(), s.nbytes()
        ([1.0, 2.0], 8)
    """

    __module__ = "rgrad.storage"
    is_sparse = False
    dtype: Any
    _untyped_storage: UntypedStorage

    def __init__(
        self, *args: Any, device: Any = None, dtype: Any = None, wrap_storage: Any = None, _internal: bool = False
    ) -> None:
        if not _internal:
            warn_of_removal()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"Arguments 'wrap_storage' and {len(args)} by position: give one of them")
            if not isinstance(dtype, _core.dtype):
                raise TypeError(f"Argument 'dtype' must be rgrad.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError("Argument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            self.dtype, self._untyped_storage = dtype, wrap_storage
            return
        self.dtype = _core.get_default_dtype() if dtype is None else dtype
        if len(args) > 1:
            raise RuntimeError(f"TypedStorage(): expected a size or a sequence, got {len(args)} arguments")
        data = args[0] if args else 0
        if isinstance(data, int) and not isinstance(data, bool):
            memory = _core.zeros(data, dtype=self.dtype, device=device or "cpu")
        elif isinstance(data, TypedStorage):
            memory = data._values().to(self.dtype, copy=True)
        elif hasattr(data, "__iter__") and not isinstance(data, (str, bytes, UntypedStorage)):
            memory = _core.tensor(list(data), dtype=self.dtype, device=device or "cpu")
        else:
            raise TypeError(f"Argument type not recognized: {type(data)}; expected a size or a sequence of numbers")
        self._untyped_storage = UntypedStorage._over(memory.reshape(-1))

    @classmethod
    def _over(cls, storage: UntypedStorage, dtype: Any) -> TypedStorage:
        """The elements of a storage, without a warning."""
        return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def _values(self) -> Any:
        return self._untyped_storage._as(self.dtype)

    # ---------------------------------------------------------------------------------------------------- numbers

    def untyped(self) -> UntypedStorage:
        """The storage of bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def element_size(self) -> int:
        """The bytes of one element."""
        size: int = self.dtype.itemsize
        return size

    _element_size = element_size

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._untyped_storage.nbytes()

    _nbytes = nbytes

    def size(self) -> int:
        """The number of elements."""
        if self._untyped_storage._window is None and self._untyped_storage.device.type not in ("cpu", "meta"):
            return int(self._values().numel())
        return self.nbytes() // self.element_size()

    _size = size

    def __len__(self) -> int:
        return self.size()

    @property
    def device(self) -> Any:
        """Where the memory lies."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a GPU of CUDA."""
        return self._untyped_storage.is_cuda

    def get_device(self) -> int:
        """The number of the device, -1 for the CPU."""
        return self._untyped_storage.get_device()

    @property
    def filename(self) -> str | None:
        """The file that is mapped."""
        return self._untyped_storage.filename

    def resizable(self) -> bool:
        """False: the memory of a tensor keeps its size."""
        return False

    def resize_(self, size: int) -> Self:
        """Keep the storage if it has this size.

        Args:
            size: The number of elements.

        Raises:
            RuntimeError: It has another size.
        """
        self._untyped_storage.resize_(size * self.element_size())
        return self

    # --------------------------------------------------------------------------------------------------- elements

    def _place(self, index: Any) -> Any:
        if isinstance(index, slice):
            return index
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index % len(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._values()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._values()[self._place(index)] = value._values() if isinstance(value, TypedStorage) else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        values: list[Any] = self._values().tolist()
        return values

    def fill_(self, value: Any) -> Self:
        """Set every element.

        Args:
            value: The number.
        """
        self._values().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copy the elements of another storage, converted.

        Args:
            source: The other storage.
            non_blocking: Has no effect: the copy is done when the call returns.

        Raises:
            RuntimeError: The sizes differ.
        """
        if isinstance(source, TypedStorage):
            self._values().copy_(source._values())
        else:
            self._untyped_storage.copy_(source)
        return self

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist()) if self.device.type != "meta" else "...\n"
        return f"{values}[rgrad.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    # ----------------------------------------------------------------------------------------------------- copies

    def _wrapped(self, storage: UntypedStorage) -> Any:
        return TypedStorage._over(storage, self.dtype)

    def clone(self) -> Any:
        """A copy in memory of its own."""
        return self._wrapped(self._untyped_storage.clone())

    def __copy__(self) -> Any:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return self._wrapped(self._untyped_storage.__deepcopy__(memo))

    def __reduce__(self) -> Any:
        return _rebuilt, (self._untyped_storage, self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage on a device.

        Args:
            device: The device.
            non_blocking: Has no effect: the copy is done when the call returns.
        """
        return self._wrapped(self._untyped_storage.to(device))

    def cpu(self) -> Any:
        """The storage on the CPU."""
        return self._wrapped(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage on a GPU of CUDA.

        Args:
            device: Which one.
            non_blocking: Has no effect: the copy is done when the call returns.

        Raises:
            RuntimeError: There is none.
        """
        return self._wrapped(self._untyped_storage.cuda(device))

    def _converted(self, dtype: Any) -> Any:
        return TypedStorage._over(UntypedStorage._over(self._values().to(dtype)), dtype)

    def is_shared(self) -> bool:
        """Whether other processes can have the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> Self:
        """Move the storage to memory that other processes can have. Tensors that were made of it keep the old one.

        Raises:
            RuntimeError: It is on another device, or the system has no files of memory.
        """
        self._untyped_storage.share_memory_()
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

    def pickle_storage_type(self) -> str:
        """The name of the old class of this dtype.

        Raises:
            KeyError: There was none.
        """
        if self.dtype not in NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return NAMES[self.dtype]

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the old class, or the elements as a storage of another one.

        Args:
            dtype: A class of storages, or its name; None for the name of this one.
            non_blocking: Has no effect: the copy is done when the call returns.
        """
        if dtype is None:
            return f"rgrad.{self.pickle_storage_type()}"
        wanted = by_name(dtype) if isinstance(dtype, str) else dtype
        return self._untyped_storage if wanted is UntypedStorage else self._converted(wanted.dtype)

    @classmethod
    def _dtype_of_class(cls) -> Any:
        return getattr(cls, "dtype", None) or _core.get_default_dtype()

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        """A storage with a copy of the bytes of an object.

        Args:
            buffer: What has the bytes.
            args: The order of bytes: ``"native"``, ``"little"`` or ``"big"``.
            dtype: The dtype of the elements; that of the class, if it has one.
            device: The device.
            kwargs: ``byte_order``; ``count``, the number of elements; ``offset``, the first byte.

        Raises:
            ValueError: The order of bytes is unknown, or the buffer is shorter.
        """
        kind = dtype or cls._dtype_of_class()
        memory = buffer_bytes(buffer, kind, *args, **kwargs)
        made = UntypedStorage._over(memory)
        made._dtype = kind
        return TypedStorage._over(made.to(device), kind)

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> Any:
        """The first elements of a file, mapped: they are read when they are used.

        Args:
            filename: The path.
            shared: Write changes to the file, which is made longer if it is too short.
            size: How many elements.

        Raises:
            RuntimeError: The file is shorter, and ``shared`` is False; or the class has no dtype.
            OSError: It cannot be opened.
        """
        kind = getattr(cls, "dtype", None)
        if kind is None:
            raise RuntimeError("from_file can only be called on derived classes")
        made = UntypedStorage._over(mapped_bytes(filename, shared, size * kind.itemsize))
        made.filename = os.fspath(filename)
        return TypedStorage._over(made, kind)


def _conversion(name: str, dtype: Any) -> None:
    def convert(self: Any) -> Any:
        return TypedStorage._over(UntypedStorage._over(self._raw()), _core.uint8)._converted(dtype)

    def convert_typed(self: Any) -> Any:
        return self._converted(dtype)

    for cls, function in ((UntypedStorage, convert), (TypedStorage, convert_typed)):
        function.__name__, function.__qualname__ = name, f"{cls.__name__}.{name}"
        function.__doc__ = f"The elements converted to ``{str(dtype).rpartition('.')[2]}``, as a typed storage."
        setattr(cls, name, function)


for _name, _dtype in {
    "double": _core.float64,
    "float": _core.float32,
    "half": _core.float16,
    "long": _core.int64,
    "int": _core.int32,
    "short": _core.int16,
    "char": _core.int8,
    "byte": _core.uint8,
    "bool": _core.bool,
    "bfloat16": _core.bfloat16,
    "complex_double": _core.complex128,
    "complex_float": _core.complex64,
}.items():
    _conversion(_name, _dtype)


def _rebuilt(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage._over(storage, dtype)


_rebuilt.__module__ = "rgrad.storage"


class _LegacyStorageMeta(type):
    """The type of the old classes: typed storages of their dtype are instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type(instance) is not TypedStorage:
            return bool(super().__instancecheck__(instance))
        kind = getattr(cls, "dtype", None)
        return bool(instance.dtype == kind and instance.device.type == "cpu")


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """An old class: a call makes a typed storage of its dtype."""

    def __new__(cls, *args: Any, wrap_storage: Any = None) -> Any:
        kind = cls._dtype_of_class()
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=kind)


def _legacy(name: str, kind: Any) -> Any:
    doc = f"A storage of ``{str(kind).rpartition('.')[2]}``; see :class:`TypedStorage`."
    return _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": kind, "__module__": "rgrad", "__doc__": doc})


CLASSES.update({name: _legacy(name, kind) for name, kind in DTYPES.items()})
CLASSES["TypedStorage"] = TypedStorage
