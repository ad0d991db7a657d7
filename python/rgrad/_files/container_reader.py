"""Reading rgrad's own container, which ``save`` wrote before it wrote PyTorch's files.

It is a zip archive without compression: ``header.json`` describes the structure, and ``tensors/<n>`` holds the
elements of memory n in C order, little endian. Objects of other classes, such as whole modules, are pickles
``objects/<n>``, with their tensors in the header.

``views`` in the header lists the tensors: a number n is the tensor that memory n holds, ``[n, offset, shape, strides]``
a view of memory n. Views that are lazy conjugates or negatives have a fifth part: ``["conj"]``, ``["neg"]`` or both. In
version 1 there are no views, and each mention of a memory is a tensor.

Every value in the header is a JSON scalar (None, bools, strings, whole numbers) or a list whose first entry names its
kind: ``["tensor", n]``, ``["param", n, requires_grad]``, ``["list", ...]``, ``["tuple", ...]``,
``["dict", [key, value], ...]``, ``["odict", metadata, [key, value], ...]``, ``["size", ...]``, ``["float", text]``,
``["complex", text, text]``, ``["bytes", hex]``, ``["dtype", name]``, ``["device", text]``, ``["object", n, class]``.
"""

from __future__ import annotations

import io
import math
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.bits import kind_of, tensor_of, with_lazy_bits
from .._tensor.parameter import Parameter
from .._tensor.untyped_storage import UntypedStorage
from . import safe_globals
from .archive_reader import ArchiveReader, Theirs, as_damage
from .key_hashes import alike
from .locations import Restore, restorer
from .restricted_pickle import Malformed, RestrictedUnpickler

#: Nothing that a header may describe is nested deeper than this; it bounds recursion on files made by others.
MAX_DEPTH = 200
FORMAT = "rgrad"
#: 4 where there are lazy conjugates or negatives, 3 where there are objects, else 2.
VERSION = 4

# More dimensions than NumPy has are no tensor of `save`.
_MOST_DIMENSIONS = 64


def read_tensor(archive: ArchiveReader, number: int, what: Any, mapped: Any) -> Tensor:
    """A memory of a file, read, or where it is mapped and aligned, mapped.

    Raises:
        ValueError: The archive has not as many bytes as the header says.
    """
    import numpy as np

    kind, shape = what["dtype"], what["shape"]
    if type(shape) is not list or any(type(n) is not int or n < 0 for n in shape) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"tensor {number} has shape {str(shape)[:200]}")
    _named_dtype(kind)
    dtype = np.dtype(kind_of(kind)).newbyteorder("<")
    count = math.prod(shape)
    expected, found = count * dtype.itemsize, archive.size(f"tensors/{number}")
    # Checked before memory is asked for: a small file cannot claim a large tensor.
    if found != expected:
        raise ValueError(f"tensor {number} of {kind} {shape} needs {expected} bytes, got {found}")
    place = archive.place(f"tensors/{number}") if mapped is not None and expected else None
    if place is not None and place % dtype.itemsize == 0:
        array = np.frombuffer(mapped, dtype, count, place).reshape(shape)
    else:
        array = np.empty(shape, dtype)
        archive.fill(f"tensors/{number}", array.reshape(-1).view(np.uint8).data)
    if kind == "bool":
        _check_bools(array.view(np.uint8), number)
    return tensor_of(array.astype(array.dtype.newbyteorder("="), copy=False), kind)


class _TrustedUnpickler(pickle.Unpickler):
    """Python's own, which runs what the pickle says."""

    def __init__(self, data: bytes | bytearray, reader: Reader) -> None:
        super().__init__(io.BytesIO(data))
        self.reader = reader

    def persistent_load(self, pid: Any) -> Any:
        return self.reader.tensor_of_id(pid)


class Reader:
    """Makes objects of the entries of a header.

    Args:
        memories: What the tensors are of.
        views: What each tensor is of them; None in files of version 1, in which each mention of a memory is a tensor.
        objects: The pickles.
        permitted: What these may use, by full name; None for all that there is.
    """

    def __init__(
        self,
        memories: Sequence[Tensor],
        views: Any,
        objects: Sequence[bytes | bytearray],
        permitted: Mapping[str, Any] | None,
    ) -> None:
        self._memories = memories
        self._objects = objects
        self._permitted = permitted
        self._views = views
        self._used: set[int] = set()
        self._made: dict[int, Tensor] = {}
        self._unpickled: dict[int, Any] = {}

    def decode(self, value: Any, depth: int = 0) -> Any:
        """The object of an entry.

        Raises:
            ValueError: It is none. Entries of the wrong form may raise other errors, too.
            Exception: ``pickle.UnpicklingError``, and `Theirs` with what a class or function of a pickle raises.
        """
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if not isinstance(value, list) or not value or depth > MAX_DEPTH + 2:
            raise ValueError(f"unexpected entry {str(value)[:60]!r} in the header")
        kind, *rest = value
        depth += 1
        if kind in ("tensor", "param"):
            return self._tensor(kind, *rest)
        if kind == "list":
            return [self.decode(entry, depth) for entry in rest]
        if kind == "tuple":
            return tuple(self.decode(entry, depth) for entry in rest)
        if kind == "dict":
            return dict(self._items(rest, depth))
        if kind == "odict":
            metadata, *items = rest
            result = OrderedDict(self._items(items, depth))
            if metadata is not None:
                result._metadata = self.decode(metadata, depth)  # type: ignore[attr-defined]
            return result
        if kind == "size":
            return _core.Size(rest)
        if kind == "float":
            return _number(rest[0])
        if kind == "complex":
            return complex(_number(rest[0]), _number(rest[1]))
        if kind == "bytes":
            return bytes.fromhex(rest[0])
        if kind == "dtype":
            return _named_dtype(rest[0])
        if kind == "device":
            return _core.device(rest[0])
        if kind == "object":
            return self._unpickle(rest[0])
        raise ValueError(f"unknown kind {kind!r} in the header")

    def _items(self, items: list[Any], depth: int) -> list[tuple[Any, Any]]:
        found = [(self.decode(key, depth), self.decode(entry, depth)) for key, entry in items]
        if alike(key for key, _ in found):
            raise ValueError("keys of a dict are chosen so that their hashes are the same")
        return found

    def _unpickle(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise ValueError(f"object {number!r} is not in the file")
        # Once, however often it is mentioned.
        if number not in self._unpickled:
            data = self._objects[number]
            try:
                if self._permitted is None:
                    self._unpickled[number] = _TrustedUnpickler(data, self).load()
                else:
                    machine = RestrictedUnpickler(data, self._permitted, self.tensor_of_id)
                    self._unpickled[number] = machine.load()
            except (Malformed, pickle.UnpicklingError, MemoryError):
                raise
            except Exception as error:
                raise Theirs(error) from error
        return self._unpickled[number]

    def tensor_of_id(self, pid: Any) -> Tensor:
        """What stands behind the id of a tensor in a pickle: nothing else has one, so that pickles hold no pickles.

        Raises:
            Malformed: It is no such id.
        """
        kinds = tuple(map(type, pid)) if type(pid) is tuple else ()
        if kinds not in ((str, int), (str, int, bool)) or pid[0] not in ("tensor", "param"):
            raise Malformed("a pickle asks for something else than a tensor of the file")
        try:
            return self._tensor(*pid)
        except (TypeError, ValueError, RuntimeError) as error:
            raise Malformed(str(error)) from None

    def _tensor(self, kind: str, number: int, requires_grad: bool = False) -> Tensor:
        if self._views is None:
            return self._object(kind, number, requires_grad)
        if type(number) is not int or not 0 <= number < len(self._views):
            raise ValueError(f"tensor {number!r} is not in the file")
        if number not in self._made:
            self._made[number] = self._object(kind, self._views[number], requires_grad)
        return self._made[number]

    def _object(self, kind: str, view: Any, requires_grad: bool) -> Tensor:
        memory, *layout = view if isinstance(view, list) else [view]
        if type(memory) is not int or not 0 <= memory < len(self._memories):
            raise ValueError(f"tensor {memory!r} is not in the file")
        tensor = self._memories[memory]
        if layout:
            tensor = _viewed(tensor, *layout)
        elif kind == "tensor" and (memory in self._used or requires_grad):
            # A second tensor on the same memory.
            tensor = tensor.detach()
        if kind == "param":
            return Parameter(tensor, requires_grad)
        self._used.add(memory)
        return tensor.requires_grad_() if requires_grad else tensor


def end_of(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The place behind the last element of a layout with elements."""
    return offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1


def _viewed(memory: Tensor, offset: Any, shape: Any, strides: Any, lazy: Any = ()) -> Tensor:
    """A part of what a memory holds, as another tensor on it, which may be a lazy conjugate or negative."""
    if lazy and (lazy not in (["conj"], ["neg"], ["conj", "neg"]) or memory.dtype == _core.bool):
        raise ValueError(f"a view of {memory.dtype} is read as {lazy!r}, expected 'conj', 'neg' or both")
    if "conj" in lazy and not memory.is_complex():
        raise ValueError(f"a view of {memory.dtype} is a conjugate, expected a complex dtype")
    numbers = [offset, *shape, *strides]
    if len(shape) > _MOST_DIMENSIONS or len(strides) > _MOST_DIMENSIONS:
        raise ValueError(f"a view has {len(shape)} dimensions, expected at most {_MOST_DIMENSIONS}")
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers) or 0 in shape:
        raise ValueError(f"a view has offset {offset!r}, shape {shape!r} and strides {strides!r}")
    if end_of(offset, tuple(shape), tuple(strides)) > memory.numel():
        raise ValueError(f"a view of shape {shape} ends behind the {memory.numel()} elements of its memory")
    # With strides of 0 the memory does not bound it.
    if math.prod(shape) >= 1 << 63:
        raise ValueError(f"a view of shape {shape} has more elements than can be counted")
    return with_lazy_bits(memory.as_strided(tuple(shape), tuple(strides), offset).detach(), lazy)


def _check_bools(values: Any, number: int) -> None:
    if values.size and values.max() > 1:
        raise ValueError(f"tensor {number} of bool has bytes that are neither 0 nor 1")


def _number(text: str) -> float:
    return float(text) if text in ("nan", "inf", "-inf") else float.fromhex(text)


def _named_dtype(name: Any) -> Any:
    found = getattr(_core, name) if isinstance(name, str) and name.isidentifier() else None
    if not isinstance(found, _core.dtype):
        raise ValueError(f"unknown dtype {name!r}")
    return found


def _header(archive: ArchiveReader) -> Any:
    header = archive.header()
    if header["format"] != FORMAT or header["version"] not in range(1, VERSION + 1):
        raise RuntimeError(
            f"load: {archive.name} has format {str(header['format'])[:60]!r} version {str(header['version'])[:60]!r}, "
            f"expected {FORMAT!r} version 1 to {VERSION}"
        )
    return header


def _classes(value: Any) -> list[str]:
    """The classes of the objects that a header names."""
    found: dict[str, None] = {}
    # Not by recursion: nobody has looked yet how deeply the header is nested.
    left = [value]
    while left:
        entry = left.pop()
        if not isinstance(entry, list) or not entry:
            continue
        if entry[0] == "object" and len(entry) == 3:
            found[str(entry[2])[:200]] = None
        else:
            left.extend(reversed(entry))
    return list(found)


def read_container(archive: ArchiveReader, map_location: Any, mapped: Any, permitted: Mapping[str, Any] | None) -> Any:
    """What is in a container.

    Args:
        archive: The file.
        map_location: Where to put tensors; see `load`.
        mapped: The file as memory, or None.
        permitted: What its pickles may use, by full name; None for all that there is.

    Raises:
        RuntimeError: It is damaged or from a later version.
        Exception: ``pickle.UnpicklingError``: it has pickles that name what is not permitted.
    """
    restore = restorer(map_location)
    with as_damage(archive.name):
        header = _header(archive)
        devices = [str(what.get("device", "cpu")) for what in header["tensors"]]
        tensors = [read_tensor(archive, i, what, mapped) for i, what in enumerate(header["tensors"])]
        objects = archive.objects()
        refused = [] if permitted is None else safe_globals.unsafe(objects, permitted)
    if refused:
        raise pickle.UnpicklingError(
            f"Weights only load failed: {archive.name} holds pickled objects ({', '.join(_classes(header['obj']))}), "
            "and reading them runs what the file says. If you trust its source, pass weights_only=False. "
            + safe_globals.not_allowed(refused[0])
        )
    if permitted is None and objects:
        warnings.warn(
            f"load: {archive.name} holds pickled objects, and reading them runs what the file says: load only files "
            "that you trust. A state_dict needs no trust.",
            stacklevel=3,
        )
    moved = [_moved(tensor, device, restore) for tensor, device in zip(tensors, devices, strict=True)]
    with as_damage(archive.name):
        return Reader(moved, header["views"] if header["version"] > 1 else None, objects, permitted).decode(
            header["obj"]
        )


def _moved(tensor: Tensor, saved_on: str, restore: Restore) -> Tensor:
    """The tensor where it belongs."""
    storage = UntypedStorage._of(tensor)
    storage._dtype = tensor.dtype
    found = restore(storage, saved_on)
    if found is storage:
        return tensor
    memory = found._as(tensor.dtype)
    return memory[: tensor.numel()].reshape(tensor.shape).detach()
