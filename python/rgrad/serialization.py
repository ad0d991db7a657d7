"""``save`` and ``load``: tensors in plain containers, in a file that runs no code when it is read.

The file is a zip archive without compression: ``header.json`` describes the structure, and ``tensors/<n>`` holds the
elements of memory n in C order, little endian. Python's pickle is not involved.

``views`` in the header lists the tensors, which share memory as they did when they were saved: a number n is the tensor
that memory n holds, ``[n, offset, shape, strides]`` a view of memory n. An object that occurs twice has one entry.

Every value in the header is a JSON scalar (None, bools, strings, whole numbers) or a list whose first entry names its
kind: ``["tensor", n]``, ``["param", n, requires_grad]``, ``["list", ...]``, ``["tuple", ...]``,
``["dict", [key, value], ...]``, ``["odict", metadata, [key, value], ...]``, ``["size", ...]``, ``["float", text]``,
``["complex", text, text]``, ``["bytes", hex]``, ``["dtype", name]``, ``["device", text]``.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from . import _core
from ._bits import array_of, tensor_of
from ._core import Tensor
from ._info import typename
from .nn.parameter import Parameter
from .utils.hooks import warn_if_has_hooks

FORMAT = "rgrad"
VERSION = 2
_HEADER = "header.json"

# Nothing that a header may describe is nested deeper than this; it bounds recursion on files made by others.
_MAX_DEPTH = 200

File = str | os.PathLike[str] | IO[bytes]


class _Writer:
    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
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
        raise TypeError(
            f"save: got {typename(value)} at {self._where()}, expected tensors, numbers, strings, bytes, None, or "
            "dicts, lists and tuples of them. Save what describes the object, such as its state_dict()."
        )

    def _where(self) -> str:
        return "the top" if not self._path else "obj" + "".join(self._path)

    def _container(self, value: Any, kind: type) -> Any:
        if id(value) in self._open or len(self._path) >= _MAX_DEPTH:
            raise ValueError(
                f"save: the object contains itself or is nested more than {_MAX_DEPTH} deep at {self._where()[:200]}"
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
        if type(value) not in (Tensor, Parameter):
            own = f"{type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(
                f"save: got a tensor of class {own} at {self._where()}, expected Tensor or nn.Parameter, since a file "
                "holds no classes: save .as_subclass(rgrad.Tensor) of it, or use pickle"
            )
        # The list keeps the objects, so no other one gets the same id.
        number = self._numbers.setdefault(id(value), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(value)
            warn_if_has_hooks(value)
        if isinstance(value, Parameter):
            return ["param", number, value.requires_grad]
        return ["tensor", number, value.requires_grad] if value.is_leaf and value.requires_grad else ["tensor", number]

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
            number, first = len(written), self.tensors[members[0]].detach()
            if all(layout == layouts[0] for layout in layouts):
                written.append(first)
                for i in members:
                    views[i] = number
                continue
            start = min(offset for offset, _, _ in layouts)
            end = max(_end(*layout) for layout in layouts)
            written.append(first.as_strided((end - start,), (1,), start))
            for i, (offset, shape, strides) in zip(members, layouts, strict=True):
                views[i] = [number, offset - start, list(shape), list(strides)]
        return written, views


def _layout(tensor: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return tensor.storage_offset(), tuple(map(int, tensor.shape)), tuple(tensor.stride())


def _end(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The place behind the last element of a layout with elements."""
    return offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1


def save(obj: Any, f: File, *args: Any, **kwargs: Any) -> None:
    """Write ``obj`` to a path or a binary file: tensors, numbers, strings, bytes, None and dicts, lists and tuples.

    Values, dtypes, shapes, devices, the structure and ``requires_grad`` of leaves and parameters come back; history
    does not. Tensors that share memory do so again when they are loaded, and a tensor that occurs twice is one object.
    A view is written with its own elements only, or with those between it and the other tensors of its memory in
    ``obj``. ``obj`` is checked before the file is touched. PyTorch's further
    arguments (``pickle_module``, ...) are accepted and ignored.

    Raises:
        TypeError: Something else is in ``obj``; the message says where.
        ValueError: ``obj`` contains itself.
        OSError: The file cannot be written.
    """
    import json
    import zipfile

    import numpy as np

    writer = _Writer()
    tree = writer.encode(obj)
    arrays = []
    described = []
    memories, views = writer.memories()
    for tensor in memories:
        array = np.ascontiguousarray(array_of(tensor.detach().cpu()))
        arrays.append(array.astype(array.dtype.newbyteorder("<"), copy=False))
        what = {"dtype": str(tensor.dtype).rpartition(".")[2], "shape": [int(n) for n in tensor.shape]}
        described.append(what if tensor.device.type == "cpu" else {**what, "device": str(tensor.device)})
    header = {"format": FORMAT, "version": VERSION, "tensors": described, "views": views, "obj": tree}
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_HEADER, json.dumps(header, ensure_ascii=False, separators=(",", ":")))
        for i, array in enumerate(arrays):
            with archive.open(f"tensors/{i}", "w", force_zip64=True) as out:
                out.write(array.reshape(-1).view(np.uint8).data)


def load(f: File, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Read what :func:`save` wrote. No code in the file is run, so files from others are safe to read.

    Args:
        f: Path or seekable binary file.
        map_location: Device to put tensors on; a dict from saved devices to devices, by name; or a function that is
            given a tensor on the CPU and the name of its saved device, and returns the tensor, moved, or None to leave
            that to ``load``. Default: each tensor goes back to the device that it was saved from.
        args: Accepted for PyTorch's sake; they have no effect.
        kwargs: Likewise.

    Returns:
        What was saved.

    Raises:
        FileNotFoundError: There is no such file.
        RuntimeError: The file is damaged, of another format or from a later version, or tensors were saved from a
            device that is not here and ``map_location`` names no other.
    """
    import json
    import zipfile

    name = getattr(f, "name", f) if not isinstance(f, (str, os.PathLike)) else os.fspath(f)
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"load: {name} is not a file written by rgrad.save ({error})") from None
    with archive:
        names = archive.namelist()
        if _HEADER not in names:
            hint = " It looks like a PyTorch file." if any(n.endswith("data.pkl") for n in names) else ""
            raise RuntimeError(
                f"load: {name} is not a file written by rgrad.save: got a zip archive without {_HEADER}.{hint}"
            )
        with _as_damage(name):
            header = json.loads(archive.read(_HEADER))
            if header["format"] != FORMAT or header["version"] not in (1, VERSION):
                raise RuntimeError(
                    f"load: {name} has format {header['format']!r} version {header['version']!r}, "
                    f"expected {FORMAT!r} version {VERSION} or 1"
                )
            devices = [str(what.get("device", "cpu")) for what in header["tensors"]]
            tensors = [_read_tensor(archive, i, what) for i, what in enumerate(header["tensors"])]
    moved = [_moved(tensor, device, map_location) for tensor, device in zip(tensors, devices, strict=True)]
    with _as_damage(name):
        return _Reader(moved, header["views"] if header["version"] > 1 else None).decode(header["obj"], 0)


@contextmanager
def _as_damage(name: Any) -> Iterator[None]:
    import zipfile

    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        raise RuntimeError(f"load: {name} is damaged: {type(error).__name__}: {error}") from error


def _read_tensor(archive: Any, number: int, what: Any) -> Tensor:
    import math
    import zipfile

    import numpy as np

    kind, shape = what["dtype"], tuple(what["shape"])
    if any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"tensor {number} has shape {shape}")
    info = archive.getinfo(f"tensors/{number}")
    dtype = np.dtype("uint16" if kind == "bfloat16" else kind).newbyteorder("<")
    expected = math.prod(shape) * dtype.itemsize
    # Checked before memory is asked for: a small file cannot claim a large tensor.
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != expected:
        raise ValueError(f"tensor {number} of {kind} {shape} needs {expected} bytes, got {info.file_size}")
    array = np.empty(shape, dtype)
    target = array.reshape(-1).view(np.uint8).data
    with archive.open(info) as source:
        done = 0
        while done < expected:
            got = source.readinto(target[done : done + (1 << 24)])
            if not got:
                raise EOFError(f"tensor {number} ends after {done} of {expected} bytes")
            done += got
    return tensor_of(array.astype(array.dtype.newbyteorder("="), copy=False), kind)


def _to_saved_device(tensor: Tensor, device: str) -> Tensor:
    return tensor.to(device)


def _moved(tensor: Tensor, saved_on: str, map_location: Any) -> Tensor:
    """The tensor where it belongs."""
    if callable(map_location):
        moved = map_location(tensor, saved_on)
        if isinstance(moved, Tensor):
            return moved
        map_location = None
    elif isinstance(map_location, dict):
        by_kind = map_location.get(saved_on.partition(":")[0])
        map_location = map_location.get(saved_on, by_kind)
    if map_location is not None:
        return tensor.to(map_location)
    try:
        return _to_saved_device(tensor, saved_on)
    except RuntimeError as error:
        raise RuntimeError(
            f"load: the file has a tensor saved on {saved_on}, which is not available here. Use "
            f"map_location='cpu' to load it to the CPU ({error})"
        ) from error


class _Reader:
    def __init__(self, memories: list[Tensor], views: Any) -> None:
        self.memories = memories
        # In version 1 each mention of a memory is a tensor of its own.
        self.views = views
        self.used: set[int] = set()
        self.made: dict[int, Tensor] = {}

    def decode(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if not isinstance(value, list) or not value or depth > _MAX_DEPTH + 2:
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
            return {self.decode(key, depth): self.decode(entry, depth) for key, entry in rest}
        if kind == "odict":
            metadata, *items = rest
            result = OrderedDict((self.decode(key, depth), self.decode(entry, depth)) for key, entry in items)
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
        raise ValueError(f"unknown kind {kind!r} in the header")

    def _tensor(self, kind: str, number: int, requires_grad: bool = False) -> Tensor:
        if self.views is None:
            return self._object(kind, number, requires_grad)
        if type(number) is not int or not 0 <= number < len(self.views):
            raise ValueError(f"tensor {number!r} is not in the file")
        if number not in self.made:
            self.made[number] = self._object(kind, self.views[number], requires_grad)
        return self.made[number]

    def _object(self, kind: str, view: Any, requires_grad: bool) -> Tensor:
        memory, *layout = view if isinstance(view, list) else [view]
        if type(memory) is not int or not 0 <= memory < len(self.memories):
            raise ValueError(f"tensor {memory!r} is not in the file")
        tensor = self.memories[memory]
        if layout:
            tensor = _viewed(tensor, *layout)
        elif kind == "tensor" and (memory in self.used or requires_grad):
            # A second tensor on the same memory.
            tensor = tensor.detach()
        if kind == "param":
            return Parameter(tensor, requires_grad)
        self.used.add(memory)
        return tensor.requires_grad_() if requires_grad else tensor


def _viewed(memory: Tensor, offset: Any, shape: Any, strides: Any) -> Tensor:
    """A part of what a memory holds, as another tensor on it."""
    numbers = [offset, *shape, *strides]
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers) or 0 in shape:
        raise ValueError(f"a view has offset {offset!r}, shape {shape!r} and strides {strides!r}")
    if _end(offset, tuple(shape), tuple(strides)) > memory.numel():
        raise ValueError(f"a view of shape {shape} ends behind the {memory.numel()} elements of its memory")
    return memory.as_strided(tuple(shape), tuple(strides), offset).detach()


def _number(text: str) -> float:
    return float(text) if text in ("nan", "inf", "-inf") else float.fromhex(text)


def _named_dtype(name: Any) -> Any:
    found = getattr(_core, name) if isinstance(name, str) and name.isidentifier() else None
    if not isinstance(found, _core.dtype):
        raise ValueError(f"unknown dtype {name!r}")
    return found
