"""What ``load`` makes of the header of a file, of the memories of its tensors, and of its pickles."""

from __future__ import annotations

import io
import math
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.bits import tensor_of
from .._tensor.parameter import Parameter
from .archive_reader import ArchiveReader, Theirs
from .key_hashes import alike
from .restricted_pickle import Malformed, RestrictedUnpickler
from .writer import MAX_DEPTH, end_of

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
    dtype = np.dtype("uint16" if kind == "bfloat16" else kind).newbyteorder("<")
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


def _viewed(memory: Tensor, offset: Any, shape: Any, strides: Any) -> Tensor:
    """A part of what a memory holds, as another tensor on it."""
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
    return memory.as_strided(tuple(shape), tuple(strides), offset).detach()


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
