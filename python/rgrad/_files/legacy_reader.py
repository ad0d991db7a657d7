"""Reading what PyTorch wrote before version 1.6: pickles with memories behind them, and before 0.2 tar archives.

In the first form tensors are made before the file says where their elements are. So each memory is asked for on the
word of the pickle, as far as all together are no larger than the file, and filled at the end.
"""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage, swap_bytes
from . import rebuild
from .archive_reader import Theirs
from .locations import restorer
from .restricted_pickle import Malformed, RestrictedUnpickler
from .torch_names import StorageType
from .torch_reader import by_pickle, text_of
from .torch_writer import MAGIC, PROTOCOL

#: How files of the first form begin: a pickle of a number.
START = b"\x80"


def _no_ids(pid: Any) -> Any:
    raise Malformed("a pickle asks for something that the file has not")


def _plain(data: memoryview, at: int) -> tuple[Any, int]:
    """A pickle of numbers, strings and containers at a place, and where it ends."""
    machine = RestrictedUnpickler(data[at:], {}, _no_ids)
    return machine.load(), at + machine.end


class _Memories:
    """The memories of a file of the first form, which are filled at the end."""

    def __init__(self, size: int, map_location: Any) -> None:
        self._left = size
        self._restore = restorer(map_location)
        self.storages: dict[str, tuple[UntypedStorage, Any, int]] = {}
        self._views: dict[str, UntypedStorage] = {}

    def __call__(self, pid: Any) -> Any:
        if type(pid) is not tuple or not pid:
            raise Malformed("a pickle asks for something else than a storage of the file")
        kind, *data = text_of(pid[0]), *pid[1:]
        if kind == "module" and len(data) == 3:
            # A class with its source, which is not compared: nobody writes it any more.
            return data[0]
        if kind != "storage" or len(data) not in (4, 5):
            raise Malformed(f"a pickle asks for {kind[:60]!r}, expected a storage")
        storage_type, key, location, numel, view = [*data, None][:5]
        key = text_of(key) if not isinstance(key, int) else str(key)
        try:
            size, dtype = rebuild.storage_of(numel, storage_type)
        except TypeError as error:
            raise Malformed(str(error)) from None
        if key not in self.storages:
            self.storages[key] = self._new(size, dtype, text_of(location)), dtype, numel
        storage = self.storages[key][0]
        if view is not None:
            storage = self._view(storage, view, dtype)
        return TypedStorage._over(storage, dtype)

    def _new(self, size: int, dtype: Any, location: str) -> UntypedStorage:
        self._left -= size
        if self._left < 0:
            raise Malformed(f"storages are said to have {size} bytes more than the file has")
        made = UntypedStorage(size)
        made._dtype = dtype
        try:
            return self._restore(made, location)
        except Exception as error:
            raise Theirs(error) from error.__cause__

    def _view(self, storage: UntypedStorage, view: Any, dtype: Any) -> UntypedStorage:
        if type(view) is not tuple or len(view) != 3 or any(type(n) is not int or n < 0 for n in view[1:]):
            raise Malformed(f"a view of a storage is {str(view)[:60]}")
        key, offset, count = str(view[0]), view[1] * dtype.itemsize, view[2] * dtype.itemsize
        if offset + count > storage.nbytes():
            raise Malformed("a view of a storage ends behind it")
        if key not in self._views:
            self._views[key] = storage[offset : offset + count]
        return self._views[key]

    def fill(self, data: memoryview, at: int, keys: Any, swaps: bool) -> None:
        """Read the elements, which stand one after the other behind the pickles."""
        import numpy as np

        if type(keys) is not list or len(keys) > len(self.storages):
            raise Malformed("the list of storages names more than the tensors have")
        for entry in keys:
            key = text_of(entry) if not isinstance(entry, int) else str(entry)
            if key not in self.storages:
                raise Malformed(f"storage {key[:60]!r} belongs to no tensor")
            storage, dtype, numel = self.storages.pop(key)
            if len(data) - at < 8:
                raise Malformed(f"the file ends before storage {key!r}")
            (count,) = struct.unpack(">q" if swaps else "<q", data[at : at + 8])
            size = numel * dtype.itemsize
            if count != numel or len(data) - at - 8 < size:
                raise Malformed(f"storage {key!r} has {count} elements of {numel}, or the file ends before they do")
            found: Any = np.frombuffer(bytearray(data[at + 8 : at + 8 + size]), np.uint8)
            if swaps:
                swap_bytes(found, dtype)
            if dtype == _core.bool and size and found.max() > 1:
                raise Malformed(f"storage {key!r} of bool has bytes that are neither 0 nor 1")
            at += 8 + size
            if size and storage.device.type != "meta":
                filled = UntypedStorage._over(_core.from_numpy(found))
                storage._whole().copy_(filled._as(storage._whole().dtype))


def read_first_form(
    data: bytes,
    map_location: Any,
    permitted: Mapping[str, Any] | None,
    pickle_module: Any,
    options: Mapping[str, Any],
) -> Any:
    """What is in a file of PyTorch before 1.6; see `torch_reader.by_pickle`.

    Raises:
        Malformed: It is damaged, or no such file.
        Exception: ``pickle.UnpicklingError``, `rebuild.NotHere`, and `Theirs` with what others raise.
    """
    view = memoryview(data)
    magic, at = _plain(view, 0)
    if magic != MAGIC:
        raise Malformed("Invalid magic number; corrupt file?")
    protocol, at = _plain(view, at)
    if protocol != PROTOCOL:
        raise Malformed(f"Invalid protocol version: {str(protocol)[:60]}")
    info, at = _plain(view, at)
    swaps = isinstance(info, dict) and info.get("little_endian", True) is False
    memories = _Memories(len(data), map_location)
    found, at = by_pickle(data, memories, permitted, pickle_module, options, at)
    keys, at = _plain(view, at)
    memories.fill(view, at, keys, swaps)
    return found


def read_tar(data: bytes, map_location: Any, pickle_module: Any, options: Mapping[str, Any]) -> Any:
    """What is in a file of PyTorch 0.1, a tar archive. It names classes, and needs trust.

    Raises:
        Malformed: It is damaged.
        Exception: What `torch_reader.by_pickle` raises.
    """
    import numpy as np

    restore = restorer(map_location)
    found: dict[Any, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", format=tarfile.PAX_FORMAT) as archive:

        def content(name: str) -> bytes:
            try:
                file = archive.extractfile(name)
            except KeyError:
                file = None
            if file is None:
                raise Malformed(f"there is no file {name!r} in the tar archive")
            return file.read()

        part = content("storages")
        at = 0

        def read(what: bytes, place: int) -> tuple[Any, int]:
            return by_pickle(what, _no_ids, None, pickle_module, options, place)

        count, at = read(part, at)
        for _ in range(int(count)):
            (key, location, kind), at = read(part, at)
            if not isinstance(kind, StorageType) or len(part) - at < 8:
                raise Malformed("a storage of the tar archive is of no class of storages")
            (numel,) = struct.unpack("<q", part[at : at + 8])
            size, dtype = rebuild.storage_of(numel, kind)
            if len(part) - at - 8 < size:
                raise Malformed(f"storage {key!r} ends behind the file")
            memory = _core.from_numpy(np.frombuffer(bytearray(part[at + 8 : at + 8 + size]), np.uint8))
            at += 8 + size
            storage = UntypedStorage._over(memory)
            storage._dtype = dtype
            found[key] = TypedStorage._over(restore(storage, text_of(location)), dtype)
        views, at = read(part, at)
        for target, root, offset, numel in views:
            width = found[root].element_size()
            start = offset * width
            part_of = found[root].untyped()[start : start + numel * width]
            found[target] = TypedStorage._over(part_of, found[root].dtype)
        part, at = content("tensors"), 0
        count, at = read(part, at)
        for _ in range(int(count)):
            (key, storage_key, _), at = read(part, at)
            head = part[at : at + 8]
            (rank,) = struct.unpack("<i4x", head) if len(head) == 8 else (-1,)
            end = at + 8 + 16 * rank + 8
            if not 0 <= rank <= rebuild.MOST_DIMENSIONS or end > len(part):
                raise Malformed("a tensor of the tar archive ends behind the file")
            numbers = struct.unpack(f"<{2 * rank + 1}q", part[at + 8 : end])
            at = end
            found[key] = rebuild.rebuild_tensor(found[storage_key], numbers[-1], numbers[:rank], numbers[rank:-1])
        text = content("pickle")

    def stored(pid: Any) -> Any:
        if isinstance(pid, tuple):
            return pid[0]
        return found[int(pid)]

    return by_pickle(text, stored, None, pickle_module, options)[0]
