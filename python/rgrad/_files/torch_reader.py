"""Reading PyTorch's zip archives: a pickle, and the memories of tensors beside it.

What a file claims is compared with what it has before memory is asked for; see `archive_reader`.
"""

from __future__ import annotations

import io
import pickle
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .. import _core
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage, swap_bytes
from . import rebuild
from .archive_reader import DATA, ArchiveReader, Theirs
from .locations import is_meta, restorer
from .options import LoadEndianness, get_default_load_endianness
from .restricted_pickle import Malformed, RestrictedUnpickler
from .torch_names import found_here, plain_values

_UNTYPED = _core.uint8


def text_of(value: Any) -> str:
    """What is a string in the pickles of PyTorch, also in those of Python 2.

    Raises:
        Malformed: It is none.
    """
    if type(value) is bytes and value.isascii():
        return value.decode("ascii")
    if type(value) is not str:
        raise Malformed(f"the pickle has {type(value).__name__} in the id of a storage, expected a string")
    return value


def by_pickle(
    data: bytes | bytearray | memoryview,
    persistent_load: Callable[[Any], Any],
    permitted: Mapping[str, Any] | None,
    pickle_module: Any,
    options: Mapping[str, Any],
    at: int = 0,
) -> tuple[Any, int]:
    """The object of a pickle, and where the pickle ends.

    Args:
        data: What has the pickle.
        persistent_load: Gives what stands behind an id.
        permitted: What it may use, by full name; None for all that there is.
        pickle_module: What reads it then.
        options: The arguments of its unpickler.
        at: Where the pickle begins.

    Raises:
        Malformed: It is no pickle that is allowed here.
        Exception: ``pickle.UnpicklingError``, and `Theirs` with what a class or function raises.
    """
    try:
        if permitted is not None:
            part = memoryview(data)[at:]
            machine = RestrictedUnpickler(part, permitted, persistent_load, options.get("encoding", "utf-8"))
            return machine.load(), at + machine.end
        file = io.BytesIO(data)
        file.seek(at)
        unpickler = _trusted(pickle_module or pickle)(file, **options)
        unpickler.persistent_load = persistent_load
        return unpickler.load(), file.tell()
    except (Malformed, pickle.UnpicklingError, MemoryError, rebuild.NotHere, Theirs):
        raise
    except Exception as error:
        raise Theirs(error) from error


def _trusted(module: Any) -> Any:
    """The unpickler of a module, with PyTorch's names."""
    values = plain_values()

    class Unpickler(module.Unpickler):  # type: ignore[misc]
        def find_class(self, owner: str, name: str) -> Any:
            full = f"{owner}.{name}"
            if full in values:
                return values[full]
            if full in rebuild.FUNCTIONS:
                return rebuild.FUNCTIONS[full]
            if owner.partition(".")[0] == "torch":
                return found_here(owner, name)
            return super().find_class(owner, name)

    return Unpickler


class Storages:
    """The memories of a file, each read once.

    Args:
        archive: The file.
        folder: The folder of its entries.
        map_location: Where to put them; see `load`.
        mapped: The file as memory, or None.
    """

    def __init__(self, archive: ArchiveReader, folder: str, map_location: Any, mapped: Any) -> None:
        self._archive, self._folder, self._mapped = archive, folder, mapped
        self._restore = restorer(map_location)
        self._is_meta = is_meta(map_location)
        self._swaps = _order(archive, folder) != sys.byteorder
        self._read: dict[str, UntypedStorage] = {}
        self._typed: dict[tuple[str, Any], TypedStorage] = {}

    def __call__(self, pid: Any) -> TypedStorage:
        """The storage of an id.

        Raises:
            Malformed: It is no such id, or the file has not what it says.
        """
        if type(pid) is not tuple or len(pid) != 5 or text_of(pid[0]) != "storage":
            raise Malformed("a pickle asks for something else than a storage of the file")
        _, kind, key, location, numel = pid
        key, location = text_of(key), text_of(location)
        try:
            size, dtype = rebuild.storage_of(numel, kind)
        except TypeError as error:
            raise Malformed(str(error)) from None
        if (key, dtype) not in self._typed:
            if key not in self._read:
                try:
                    self._read[key] = self._storage(key, size, dtype, location)
                except (Malformed, Theirs, OSError, MemoryError):
                    raise
                except Exception as error:
                    raise Malformed(f"storage {key[:60]!r}: {error}") from error
            self._typed[key, dtype] = TypedStorage._over(self._read[key], dtype)
        return self._typed[key, dtype]

    def _storage(self, key: str, size: int, dtype: Any, location: str) -> UntypedStorage:
        name = f"{self._folder}data/{key}"
        found = self._archive.size(name)
        if found != size:
            raise Malformed(f"storage {key!r} needs {size} bytes, the file has {found}")
        if self._is_meta:
            return UntypedStorage(size, device="meta")
        memory = _core.from_numpy(self._bytes(name, size, dtype.itemsize))
        if self._swaps:
            if dtype == _UNTYPED and self._mapped is not None:
                memory = memory.clone()
            swap_bytes(memory.numpy(), dtype)
        if dtype == _core.bool and size and int(memory.max()) > 1:
            raise Malformed(f"storage {key!r} of bool has bytes that are neither 0 nor 1")
        storage = UntypedStorage._over(memory)
        storage._dtype = dtype
        try:
            return self._restore(storage, location)
        except Exception as error:
            raise Theirs(error) from error.__cause__

    def _bytes(self, name: str, size: int, width: int) -> Any:
        """The bytes of an entry as an array, mapped if they are aligned for their dtype and need no change."""
        import numpy as np

        if self._mapped is not None and size and not (self._swaps and width > 1):
            place = self._archive.place(name)
            if place % width == 0:
                return np.frombuffer(self._mapped, np.uint8, size, place)
        found = np.empty(size, np.uint8)
        self._archive.fill(name, found.data)
        return found


def _order(archive: ArchiveReader, folder: str) -> str:
    """The order of bytes in a file."""
    name = f"{folder}byteorder"
    if name in archive.names():
        found = bytes(archive.read(name)) if archive.size(name) < 100 else b"?"
        if found not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {found!r}")
        return found.decode()
    default = get_default_load_endianness()
    if default == LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if default == LoadEndianness.BIG else "little"


def refuse_script(archive: ArchiveReader, folder: str, weights_only: bool) -> None:
    """Say what a file of ``torch.jit.save`` is.

    Raises:
        RuntimeError: It is one.
    """
    if f"{folder}constants.pkl" in archive.names():
        words = (
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``load``. " if weights_only else ""
        )
        raise RuntimeError(
            f"load: {words}{archive.name} is a TorchScript archive (torch.jit.save), whose code rgrad does not run. "
            "Save a state_dict in its place"
        )


def read_archive(
    archive: ArchiveReader,
    folder: str,
    map_location: Any,
    mapped: Any,
    permitted: Mapping[str, Any] | None,
    pickle_module: Any,
    options: Mapping[str, Any],
) -> Any:
    """What is in a file of PyTorch; the arguments are those of `by_pickle` and `Storages`.

    Raises:
        Malformed: The file is damaged.
        Exception: ``pickle.UnpicklingError``, `rebuild.NotHere`, and `Theirs` with what others raise.
    """
    storages = Storages(archive, folder, map_location, mapped)
    data = archive.read(folder + DATA)
    found, _ = by_pickle(data, storages, permitted, pickle_module, options)
    return found


def warn_of_unused(options: Mapping[str, Any]) -> None:
    """Say that arguments of the unpickler have no effect without trust."""
    if options:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=4)
