"""Writes rgrad's own container, which `save` wrote once and `load` still reads; see `_files/container_reader.py`."""

from __future__ import annotations

import io
import json
import pickle
from collections import OrderedDict
from typing import IO, Any

import numpy as np

from rgrad import _core
from rgrad._core import Tensor
from rgrad._files.archive import StoredArchive
from rgrad._files.archive_reader import HEADER
from rgrad._files.container_reader import FORMAT, MAX_DEPTH, VERSION, end_of
from rgrad._runtime.info import typename
from rgrad._tensor.bits import array_of, in_memory, lazy_bits
from rgrad._tensor.parameter import Parameter


def container(obj: Any) -> io.BytesIO:
    """A container with an object, to read from its start."""
    file = io.BytesIO()
    writer = Writer()
    tree = writer.encode(obj)
    memories, views = writer.memories()
    described = [{"dtype": str(t.dtype).rpartition(".")[2], "shape": [int(n) for n in t.shape]} for t in memories]
    version = VERSION if writer.lazy else 3 if writer.objects else 2
    header = {"format": FORMAT, "version": version, "tensors": described, "views": views, "obj": tree}
    with StoredArchive(file) as archive:
        archive.add(HEADER, json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode())
        for number, tensor in enumerate(memories):
            values: Any = np.ascontiguousarray(array_of(tensor.detach()))
            archive.add(f"tensors/{number}", values.reshape(-1).view(np.uint8).data)
        for number, written in enumerate(writer.objects):
            archive.add(f"objects/{number}", written)
    file.seek(0)
    return file


class Writer:
    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.objects: list[bytes] = []
        #: Whether a tensor is a lazy conjugate or negative.
        self.lazy = False
        self._numbers: dict[int, int] = {}
        self._path: list[str] = []
        self._open: set[int] = set()

    def encode(self, value: Any) -> Any:
        if value is None or value is True or value is False or type(value) in (str, int):
            return value
        kind = type(value)
        if kind is float:
            return ["float", value.hex() if value == value and abs(value) != float("inf") else repr(value)]
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind is complex:
            return ["complex", *(self.encode(part)[1] for part in (value.real, value.imag))]
        if kind in (bytes, bytearray):
            return ["bytes", value.hex()]
        if isinstance(value, _core.Size):
            return ["size", *map(int, value)]
        if isinstance(value, _core.dtype):
            return ["dtype", str(value).rpartition(".")[2]]
        if isinstance(value, _core.device):
            return ["device", str(value)]
        if kind in (list, tuple, dict, OrderedDict) or kind.__qualname__ == "defaultdict":
            return self._container(value, kind)
        return self._object(value)

    def _object(self, value: Any) -> Any:
        written = io.BytesIO()
        try:
            _ObjectPickler(self, written).dump(value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            error.add_note(
                f"save: got {typename(value)} at {self._where()}, which cannot be pickled. Save what describes the "
                "object, such as its state_dict()."
            )
            raise
        self.objects.append(written.getvalue())
        return ["object", len(self.objects) - 1, typename(value)]

    def _where(self) -> str:
        return "the top" if not self._path else "obj" + "".join(self._path)

    def _container(self, value: Any, kind: type) -> Any:
        if id(value) in self._open or len(self._path) >= MAX_DEPTH:
            raise ValueError(
                f"save: the object contains itself or is nested more than {MAX_DEPTH} deep at {self._where()[:200]}"
            )
        self._open.add(id(value))
        try:
            if isinstance(value, dict):
                items = [self._item(key, entry) for key, entry in value.items()]
                if kind is not OrderedDict:
                    return ["dict", *items]
                # Module.state_dict() puts its versions there.
                return ["odict", self._child("._metadata", getattr(value, "_metadata", None)), *items]
            return [kind.__name__, *(self._child(f"[{i}]", entry) for i, entry in enumerate(value))]
        finally:
            self._open.discard(id(value))

    def _item(self, key: Any, entry: Any) -> list[Any]:
        if not isinstance(key, (str, int, float, bool, type(None), tuple, bytes)):
            raise TypeError(
                f"save: got a key of type {typename(key)} at {self._where()}, expected strings, numbers or tuples"
            )
        return [self._child(f"<key {key!r}>", key), self._child(f"[{key!r}]", entry)]

    def _child(self, step: str, value: Any) -> Any:
        self._path.append(step)
        encoded = self.encode(value)
        self._path.pop()
        return encoded

    def _tensor(self, value: Tensor) -> Any:
        if not _is_plain(value):
            return self._object(value)
        # The list keeps the objects, so no other one gets the same id.
        number = self._numbers.setdefault(id(value), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(value)
        if isinstance(value, Parameter):
            return ["param", number, value.requires_grad]
        return ["tensor", number, True] if value.requires_grad else ["tensor", number]

    def memories(self) -> tuple[list[Tensor], list[Any]]:
        """What to write, and for each tensor what it is of that.

        Tensors of one memory and layout (tied weights) are written as one tensor. Where layouts differ, the stretch of
        memory that holds all of them is written once; views of one memory by several dtypes are written apart.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, tensor in enumerate(self.tensors):
            storage: Any = tensor.untyped_storage()
            place = (storage._cdata, tensor.dtype) if tensor.numel() else (None, i)
            groups.setdefault(place, []).append(i)
        written: list[Tensor] = []
        views: list[Any] = [None] * len(self.tensors)
        for members in groups.values():
            layouts = [_layout(self.tensors[i]) for i in members]
            number, first = len(written), in_memory(self.tensors[members[0]])
            lazy = [lazy_bits(self.tensors[i]) if first.numel() else [] for i in members]
            if all(layout == layouts[0] for layout in layouts) and not any(lazy):
                written.append(first)
                for i in members:
                    views[i] = number
                continue
            start = min(offset for offset, _, _ in layouts)
            end = max(end_of(*layout) for layout in layouts)
            written.append(first.as_strided((end - start,), (1,), start))
            for i, (offset, shape, strides), names in zip(members, layouts, lazy, strict=True):
                views[i] = [number, offset - start, list(shape), list(strides), *([names] if names else [])]
                self.lazy |= bool(names)
        return written, views


def _is_plain(value: Any) -> bool:
    """Whether a header describes the tensor."""
    return type(value) in (Tensor, Parameter)


class _ObjectPickler(pickle.Pickler):
    """Leaves the tensors in an object to the header."""

    def __init__(self, writer: Writer, file: IO[bytes]) -> None:
        super().__init__(file, protocol=4)
        self.writer = writer

    def persistent_id(self, obj: Any) -> Any:
        # A tensor with attributes of its own, or with history, is for its __reduce_ex__, which keeps or refuses them.
        if not _is_plain(obj) or not obj.is_leaf or vars(obj):
            return None
        return tuple(self.writer.encode(obj))


def _layout(tensor: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return tensor.storage_offset(), tuple(map(int, tensor.shape)), tuple(tensor.stride())
