"""PyTorch's switches for reading and writing files: what has an effect here is the kind of a memory map."""

from __future__ import annotations

import sys
from contextvars import ContextVar, Token
from enum import Enum
from types import TracebackType


class LoadEndianness(Enum):
    """Byte orders of files without a mark of their own. Files of ``rgrad.save`` are little endian, always."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    endianness: LoadEndianness | None = None
    checksums = True
    # mmap.MAP_PRIVATE
    mmap: int | None = None if sys.platform == "win32" else 2


# What blocks of `set_default_mmap_options` say. Threads and signal handlers do not see each other's blocks.
_mmap_of_block: ContextVar[int | None] = ContextVar("mmap_options", default=None)


def get_default_load_endianness() -> LoadEndianness | None:
    """What `set_default_load_endianness` was given last.

    Example:
        >>> print(rgrad.serialization.get_default_load_endianness())
        None
    """
    return _Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Accepted for PyTorch's sake: the files of ``rgrad.save`` have one byte order.

    Raises:
        TypeError: `endianness` is neither a `LoadEndianness` nor None.

    Example:
        >>> rgrad.serialization.set_default_load_endianness(None)
        >>> print(rgrad.serialization.get_default_load_endianness())
        None
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Options.endianness = endianness


def get_crc32_options() -> bool:
    """What `set_crc32_options` was given last.

    Example:
        >>> rgrad.serialization.get_crc32_options()
        True
    """
    return _Options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Accepted for PyTorch's sake: files always have checksums, which take a small part of the time of writing.

    Example:
        >>> rgrad.serialization.set_crc32_options(True)
        >>> rgrad.serialization.get_crc32_options()
        True
    """
    _Options.checksums = compute_crc32


def get_default_mmap_options() -> int | None:
    """The kind of a memory map that ``load(..., mmap=True)`` makes: ``mmap.MAP_PRIVATE``, or what was set.

    Example:
        >>> import mmap
        >>> rgrad.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        True
    """
    of_block = _mmap_of_block.get()
    return _Options.mmap if of_block is None else of_block


class set_default_mmap_options:
    """Sets the kind of a memory map that ``load(..., mmap=True)`` makes; as a block, for its time and its thread.

    Args:
        flags: ``mmap.MAP_PRIVATE``: writes to loaded tensors stay in this process. ``mmap.MAP_SHARED``: they go to the
            file.

    Raises:
        RuntimeError: On Windows.
        ValueError: Another kind.

    Example:
        >>> import mmap
        >>> with rgrad.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     rgrad.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        if sys.platform == "win32":
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev = get_default_mmap_options()
        self.flags = flags
        self._in_block = _mmap_of_block.get() is not None
        self._entered: list[Token[int | None]] = []
        self._set(flags)

    def _set(self, flags: int | None) -> None:
        if self._in_block:
            _mmap_of_block.set(flags)
        else:
            _Options.mmap = flags

    def __enter__(self) -> None:
        # A block has its own place; what holds outside of it is as it was.
        self._set(self.prev)
        self._entered.append(_mmap_of_block.set(self.flags))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        _mmap_of_block.reset(self._entered.pop())
