"""``save`` and ``load``: tensors in plain containers, in a file that runs no code when it is read; and other objects.

The file is a zip archive without compression: ``header.json`` describes the structure, and ``tensors/<n>`` holds the
elements of memory n in C order, little endian. Objects of other classes, such as whole modules, are pickled into
``objects/<n>``, with their tensors in the header: only ``load(..., weights_only=False)`` reads these.

``views`` in the header lists the tensors, which share memory as they did when they were saved: a number n is the tensor
that memory n holds, ``[n, offset, shape, strides]`` a view of memory n. An object that occurs twice has one entry.

Every value in the header is a JSON scalar (None, bools, strings, whole numbers) or a list whose first entry names its
kind: ``["tensor", n]``, ``["param", n, requires_grad]``, ``["list", ...]``, ``["tuple", ...]``,
``["dict", [key, value], ...]``, ``["odict", metadata, [key, value], ...]``, ``["size", ...]``, ``["float", text]``,
``["complex", text, text]``, ``["bytes", hex]``, ``["dtype", name]``, ``["device", text]``, ``["object", n, class]``.
"""

import io
import os
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from . import _core, _safe_globals
from ._archive import StoredArchive, place_of, read_stored
from ._bits import array_of, tensor_of
from ._core import Tensor
from ._file_options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)
from ._info import typename
from ._safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    safe_globals,
)
from .nn.parameter import Parameter
from .utils.hooks import warn_if_has_hooks

__all__ = [
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
]

FORMAT = "rgrad"
#: 3 where there are objects, else 2.
VERSION = 3
_HEADER = "header.json"

# Nothing that a header may describe is nested deeper than this; it bounds recursion on files made by others.
_MAX_DEPTH = 200

File = str | os.PathLike[str] | IO[bytes]


class _Writer:
    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.objects: list[bytes] = []
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
        if not _is_plain(value):
            return self._object(value)
        # The list keeps the objects, so no other one gets the same id.
        number = self._numbers.setdefault(id(value), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(value)
            warn_if_has_hooks(value)
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


def _is_plain(value: Any) -> bool:
    """Whether a header describes the tensor."""
    return type(value) in (Tensor, Parameter)


class _ObjectPickler(pickle.Pickler):
    """Leaves the tensors in an object to the header."""

    def __init__(self, writer: _Writer, file: IO[bytes]) -> None:
        super().__init__(file, protocol=4)
        self.writer = writer

    def persistent_id(self, obj: Any) -> Any:
        # A tensor with attributes of its own, or with history, is for its __reduce_ex__, which keeps or refuses them.
        if not _is_plain(obj) or not obj.is_leaf or vars(obj):
            return None
        return tuple(self.writer.encode(obj))


class _ObjectUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], reader: "_Reader") -> None:
        super().__init__(file)
        self.reader = reader

    def persistent_load(self, pid: Any) -> Any:
        return self.reader.decode(list(pid), 0)

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(module, name) if self.reader.trusted else _safe_globals.find(module, name)


def _layout(tensor: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return tensor.storage_offset(), tuple(map(int, tensor.shape)), tuple(tensor.stride())


def _end(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The place behind the last element of a layout with elements."""
    return offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1


def save(obj: Any, f: File, *args: Any, **kwargs: Any) -> None:
    """Write ``obj`` to a path or a binary file: tensors, numbers, strings, bytes, None and dicts, lists and tuples.

    Other objects, whole modules among them, are pickled. To read these takes ``load(f, weights_only=False)`` or
    `add_safe_globals`, and their classes; a state dict needs neither.

    Values, dtypes, shapes, devices, the structure and ``requires_grad`` come back; history
    does not. Tensors that share memory do so again when they are loaded, and a tensor that occurs twice is one object.
    A view is written with its own elements only, or with those between it and the other tensors of its memory in
    ``obj``. ``obj`` is checked before the file is touched. PyTorch's further
    arguments (``pickle_module``, ...) are accepted and ignored.

    Raises:
        TypeError: A key of a dict is no string, number or tuple; or an object cannot be pickled. A note says where it
            is. For some objects this is ``pickle.PicklingError`` or an AttributeError.
        ValueError: ``obj`` contains itself.
        RuntimeError: The folder does not exist.
        OSError: The file cannot be written.
    """
    import json

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
    if isinstance(f, (str, os.PathLike)):
        folder = Path(f).parent
        if not folder.is_dir():
            raise RuntimeError(f"save: Parent directory {folder} does not exist.")
    version = VERSION if writer.objects else 2
    header = {"format": FORMAT, "version": version, "tensors": described, "views": views, "obj": tree}
    with _opened(f) as file, StoredArchive(file) as archive:
        archive.add(_HEADER, json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode())
        for i, array in enumerate(arrays):
            archive.add(f"tensors/{i}", array.reshape(-1).view(np.uint8).data)
        for i, written in enumerate(writer.objects):
            archive.add(f"objects/{i}", written)


@contextmanager
def _opened(f: File) -> Iterator[IO[bytes]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            yield file
    else:
        yield f


def _first_bytes(f: Any) -> bytes:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return file.read(4)
    f.seek(0)
    start: bytes = f.read(4)
    return start


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Read what :func:`save` wrote. No code in the file is run, unless ``weights_only`` is False.

    Args:
        f: Path or seekable binary file.
        map_location: Device to put tensors on; a dict from saved devices to devices, by name; or a function that is
            given a tensor on the CPU and the name of its saved device, and returns the tensor, moved, or None to leave
            that to ``load``. Default: each tensor goes back to the device that it was saved from.
        pickle_module: Accepted for PyTorch's sake; it has no effect.
        weights_only: Refuse a file with pickled objects, such as whole modules, if they name classes or functions that
            ``serialization.add_safe_globals`` has not allowed; the default. False reads them all, and warns if there
            are any: that runs what the file says, so do it only with files that you trust.
        mmap: Map the file to memory instead of reading it: what nobody looks at is never read, and checksums are not
            compared. The file must stay as it is; see `set_default_mmap_options` for writes to the tensors.
        kwargs: Accepted; they have no effect.

    Returns:
        What was saved.

    Raises:
        AttributeError: The file cannot seek.
        EOFError: The file is empty.
        FileNotFoundError: There is no such file.
        RuntimeError: The file is damaged, of another format or from a later version, or tensors were saved from a
            device that is not here and ``map_location`` names no other.
        ValueError: ``mmap`` without a path.
        Exception: ``pickle.UnpicklingError``: the file has pickled objects of what is not allowed, and ``weights_only``
            is not False.
    """
    import json
    import zipfile

    name = getattr(f, "name", f) if not isinstance(f, (str, os.PathLike)) else os.fspath(f)
    if not isinstance(f, (str, os.PathLike)) and not all(hasattr(f, word) for word in ("read", "seek", "tell")):
        raise AttributeError(
            f"load: '{type(f).__name__}' object has no attribute 'seek': expected a path or a file that is seekable; "
            "read others into io.BytesIO first"
        )
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    try:
        archive = zipfile.ZipFile(f)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        start = _first_bytes(f)
        if not start:
            raise EOFError(f"load: {name} is empty") from None
        if start == b"PK\x03\x04":
            raise RuntimeError(
                f"load: {name} is damaged: failed reading zip archive: failed finding central directory; the end of "
                "the file is missing, as after an interrupted copy"
            ) from None
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
            if header["format"] != FORMAT or header["version"] not in (1, 2, VERSION):
                raise RuntimeError(
                    f"load: {name} has format {header['format']!r} version {header['version']!r}, "
                    f"expected {FORMAT!r} version 1 to {VERSION}"
                )
            devices = [str(what.get("device", "cpu")) for what in header["tensors"]]
            mapped = _mapped(archive.fp) if mmap and header["tensors"] else None
            tensors = [_read_tensor(archive, i, what, mapped) for i, what in enumerate(header["tensors"])]
            objects = [archive.read(n) for n in sorted(names, key=_place) if n.startswith("objects/")]
    trusted = weights_only is False
    if objects and not trusted:
        permitted = _safe_globals.allowed()
        with _as_damage(name):
            refused = _safe_globals.unsafe(objects, permitted)
        if refused:
            raise pickle.UnpicklingError(
                f"Weights only load failed: {name} holds pickled objects ({', '.join(_classes(header['obj']))}), and "
                "reading them runs what the file says. If you trust its source, pass weights_only=False. "
                + _safe_globals.not_allowed(refused[0])
            )
    elif objects:
        warnings.warn(
            f"load: {name} holds pickled objects, and reading them runs what the file says: load only files that you "
            "trust. A state_dict needs no trust.",
            stacklevel=2,
        )
    moved = [_moved(tensor, device, map_location) for tensor, device in zip(tensors, devices, strict=True)]
    with _as_damage(name):
        reader = _Reader(moved, header["views"] if header["version"] > 1 else None, objects, trusted)
        if not objects:
            return reader.decode(header["obj"], 0)
    # What goes wrong in classes is theirs, not damage of the file.
    return reader.decode(header["obj"], 0)


def _place(name: str) -> tuple[int, str]:
    """Orders objects/2 before objects/10."""
    return len(name), name


def _classes(value: Any) -> list[str]:
    """The classes of the objects that a header names."""
    if not isinstance(value, list) or not value:
        return []
    if value[0] == "object":
        return [str(value[2])]
    return list(dict.fromkeys(name for entry in value for name in _classes(entry)))


@contextmanager
def _as_damage(name: Any) -> Iterator[None]:
    import zipfile
    import zlib

    wrong = (KeyError, ValueError, TypeError, IndexError, AttributeError, zipfile.BadZipFile, EOFError, zlib.error)
    try:
        yield
    except (*wrong, RuntimeError) as error:
        # The archive says with the last what it does not support: encryption, ways of compression.
        if isinstance(error, RuntimeError) and (type(error).__module__ != "builtins" or str(error)[:5] == "load:"):
            raise
        raise RuntimeError(f"load: {name} is damaged: {type(error).__name__}: {error}") from error


def _mapped(file: Any) -> Any:
    """A file as memory. Writes stay in this process, or go to the file, as `get_default_mmap_options` says."""
    import mmap

    if get_default_mmap_options() in (None, mmap.MAP_PRIVATE):
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with open(file.name, "r+b") as writable:
        return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)


def _read_tensor(archive: Any, number: int, what: Any, mapped: Any) -> Tensor:
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
    place = place_of(archive, info) if mapped is not None and expected else None
    if place is not None and place % dtype.itemsize == 0:
        array = np.frombuffer(mapped, dtype, math.prod(shape), place).reshape(shape)
    else:
        array = np.empty(shape, dtype)
        read_stored(archive, info, array.reshape(-1).view(np.uint8).data)
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
    def __init__(self, memories: list[Tensor], views: Any, objects: list[bytes], trusted: bool) -> None:
        self.memories = memories
        self.objects = objects
        # Whether objects may use all that there is.
        self.trusted = trusted
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
        if kind == "object":
            return _ObjectUnpickler(io.BytesIO(self.objects[rest[0]]), self).load()
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
