"""What ``save`` writes: PyTorch's pickles, with the memories of tensors beside them.

Only `pickle`'s pickler in Python lets a class have another name in the file than it has here.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Iterator
from types import FunctionType
from typing import IO, Any

from .. import _core
from .._core import Tensor
from .._runtime.info import typename
from .._tensor.bits import in_memory, lazy_bits
from .._tensor.natives import memory_of
from .._tensor.parameter import Parameter
from .._tensor.typed_storage import NAMES, TypedStorage
from .._tensor.untyped_storage import UntypedStorage, whole_memory
from ..utils.hooks import warn_if_has_hooks
from . import rebuild
from .archive import StoredArchive
from .torch_names import STORAGE_TYPES, StorageType, known_here, torch_name

# By id: what is written under a name of PyTorch that its place here does not tell.
_NAME_OF: dict[int, tuple[str, str]] = {
    id(function): (full.rpartition(".")[0], full.rpartition(".")[2])
    for full, function in reversed(rebuild.FUNCTIONS.items())
} | {id(UntypedStorage): ("torch.storage", "UntypedStorage"), id(Tensor): ("torch", "Tensor")}

#: What a file in PyTorch's first form begins with, as a pickle.
MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001

# The folder of all entries.
_FOLDER = "archive"


class TorchPickler(pickle._Pickler):
    """Writes an object under PyTorch's names, and leaves out the memories of its tensors.

    Args:
        file: Where the pickle goes.
        protocol: Of pickle.
        old: Write what PyTorch before 1.6 wrote.
    """

    def __init__(self, file: IO[bytes], protocol: int, old: bool = False) -> None:
        super().__init__(file, protocol)
        self._old = old
        self._numbers: dict[int, str] = {}
        # For each memory what it was called first, and its elements on the CPU. The tensors keep the numbers taken.
        self.memories: dict[str, tuple[Any, Tensor]] = {}
        self._kept: list[Any] = []

    # ------------------------------------------------------------------------------------------------------ memories

    def _memory(self, number: int, whole: Any, device: Any, wanted: Any) -> tuple[Any, ...]:
        """The id of a memory in the pickle.

        Args:
            number: What tells it from others.
            whole: Gives a tensor with all of its elements.
            device: Where it lies.
            wanted: The kind of storage to call it.
        """
        key = self._numbers.setdefault(number, str(len(self._numbers)))
        if key not in self.memories:
            elements = whole()
            self._kept.append(elements)
            self.memories[key] = wanted, elements.cpu()
        elements = self.memories[key][1]
        size = elements.numel() * elements.element_size()
        count = size if wanted is UntypedStorage else size // wanted.dtype.itemsize
        found = ("storage", wanted, key, str(device), count)
        return (*found, None) if self._old else found

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Memory:
            return self._memory(obj.number, obj.whole, obj.device, obj.kind)
        if kind is UntypedStorage:
            return self._memory(obj._cdata, obj._whole if obj._window is None else obj._raw, obj.device, kind)
        if kind is TypedStorage:
            name = NAMES.get(obj.dtype)
            wanted = STORAGE_TYPES[name] if name is not None else UntypedStorage
            untyped = obj.untyped()
            return self._memory(untyped._cdata, obj._values, obj.device, wanted)
        return None

    # ------------------------------------------------------------------------------------------------------- tensors

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            cls = type(obj)
            if cls.__reduce_ex__ is not Tensor.__reduce_ex__ and cls is not Parameter:
                return NotImplemented
            with _core.DisableTorchFunctionSubclass():
                return self._tensor(obj, cls)
        if isinstance(obj, (StorageType, _core.dtype)):
            return str(obj).rpartition(".")[2]
        return NotImplemented

    def _tensor(self, t: Any, cls: Any) -> tuple[Any, ...]:
        warn_if_has_hooks(t)
        attributes = vars(t)
        if cls is Parameter:
            given = (self._plain(t), t.requires_grad, _no_hooks())
            if attributes:
                return rebuild.rebuild_parameter_with_state, (*given, dict(attributes))
            return rebuild.rebuild_parameter, given
        function, args = self._rebuilt(t)
        if cls is Tensor and not attributes:
            return function, args
        return rebuild.from_type, (function, cls, args, t.__getstate__())

    def _plain(self, t: Any) -> Tensor:
        plain: Tensor = t.detach()
        if type(plain) is not Tensor:
            plain = Tensor._make_subclass(Tensor, plain, False)
        self._kept.append(plain)
        return plain

    def _rebuilt(self, t: Any) -> tuple[Any, tuple[Any, ...]]:
        """The function that makes a plain tensor, and its arguments."""
        shape, stride = tuple(map(int, t.shape)), tuple(t.stride())
        if t.device.type == "meta":
            return rebuild.rebuild_meta, (t.dtype, shape, stride, t.requires_grad)
        requires_grad, bits = t.requires_grad, dict.fromkeys(lazy_bits(t), True)
        if bits:
            t = in_memory(t)
        number = memory_of(t)._cdata
        wanted = self._kind(t.dtype, number)
        memory = _Memory(number, lambda: whole_memory(t), t.device, wanted)
        # The number is taken as long as the tensor lives.
        self._kept.append((t, memory))
        given = (memory, t.storage_offset(), shape, stride, requires_grad, _no_hooks())
        metadata = (bits,) if bits else ()
        if wanted is UntypedStorage:
            return rebuild.rebuild_tensor_v3, (*given, t.dtype, *metadata)
        return rebuild.rebuild_tensor_v2, (*given, *metadata)

    def _kind(self, dtype: Any, number: int) -> Any:
        """The class of storages for a tensor: with a dtype if all tensors before it of that memory have the same."""
        name = NAMES.get(dtype)
        first = self.memories.get(self._numbers.get(number, ""))
        if name is None or (first is not None and first[0] is not STORAGE_TYPES[name]):
            if self._old:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as different types"
                    if name is not None
                    else f"save: tensors of {dtype} have no place in files of PyTorch before 1.6"
                )
            return UntypedStorage
        return STORAGE_TYPES[name]

    # --------------------------------------------------------------------------------------------------------- names

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module, text = self._named(obj, name)
        if module is None:
            super().save_global(obj, name)  # type: ignore[misc]
            return
        if self.proto >= 4:  # type: ignore[attr-defined]
            self.save(module)  # type: ignore[attr-defined]
            self.save(text)  # type: ignore[attr-defined]
            self.write(pickle.STACK_GLOBAL)  # type: ignore[attr-defined]
        else:
            self.write(pickle.GLOBAL + f"{module}\n{text}\n".encode())  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]

    def _named(self, obj: Any, name: str | None) -> tuple[str | None, str]:
        """The name in the file of a class, a function or a value of rgrad; None for what is not of rgrad."""
        if id(obj) in _NAME_OF:
            return _NAME_OF[id(obj)]
        if isinstance(obj, (StorageType, _core.dtype)):
            return "torch", str(obj).rpartition(".")[2]
        text = str(name or getattr(obj, "__qualname__", None) or getattr(obj, "__name__", ""))
        own = str(getattr(obj, "__module__", None) or "")
        if own.partition(".")[0] == "rgrad" and "." not in text:
            module, short = torch_name(own, text)
            # It must be there when it is read.
            if module != own and known_here("rgrad" + module.removeprefix("torch"), short) is obj:
                return module, short
        return None, text


def _save_type(pickler: Any, obj: Any) -> None:
    if obj in (type(None), type(NotImplemented), type(...)):
        pickle._Pickler.save_type(pickler, obj)  # type: ignore[attr-defined]
    else:
        pickler.save_global(obj)


def _no_hooks() -> OrderedDict[Any, Any]:
    # What files have where hooks were once.
    return OrderedDict()


# The tables of the base class have its own functions, not the names of methods.
_DISPATCH: dict[type, Any] = {
    **pickle._Pickler.dispatch,
    type: _save_type,
    FunctionType: lambda pickler, obj: pickler.save_global(obj),
}
TorchPickler.dispatch = _DISPATCH


class _Memory:
    """Stands for the memory of a tensor while it is written."""

    __slots__ = ("device", "kind", "number", "whole")

    def __init__(self, number: int, whole: Any, device: Any, kind: Any) -> None:
        self.number, self.whole, self.device, self.kind = number, whole, device, kind


def pickled(obj: Any, protocol: int, old: bool = False) -> tuple[bytes, dict[str, tuple[Any, Tensor]]]:
    """The pickle of an object, and the memories beside it.

    Raises:
        Exception: ``pickle.PicklingError``, AttributeError or TypeError: it cannot be pickled. A note says what, and
            where it is. RuntimeError or RecursionError: It cannot be written like this.
    """
    file = io.BytesIO()
    pickler = TorchPickler(file, protocol, old)
    try:
        pickler.dump(obj)
    except RecursionError:
        raise RecursionError(
            "save: maximum recursion depth exceeded while pickling an object: it is nested too deeply"
        ) from None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        what, where = _culprit(obj, protocol)
        error.add_note(
            f"save: got {typename(what)} at {where}, which cannot be pickled. Save what describes the object, such as "
            "its state_dict()."
        )
        raise
    return file.getvalue(), pickler.memories


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items())
        yield from ((f"<key {key!r}>", key) for key in value)
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{place}]", entry) for place, entry in enumerate(value))
    elif not isinstance(value, type) and isinstance(getattr(value, "__dict__", None), dict):
        yield from ((f".{name}", entry) for name, entry in vars(value).items())


def _fails(value: Any, protocol: int) -> bool:
    try:
        TorchPickler(io.BytesIO(), protocol).dump(value)
    except Exception:
        return True
    return False


def _culprit(value: Any, protocol: int) -> tuple[Any, str]:
    """The innermost part of an object that cannot be pickled, and where it is."""
    path: list[str] = []
    while len(path) < 100:
        part = next(((step, child) for step, child in _children(value) if _fails(child, protocol)), None)
        if part is None:
            break
        path.append(part[0])
        value = part[1]
    return value, "obj" + "".join(path) if path else "the top"


def _bytes_of(elements: Tensor) -> Any:
    if not elements.numel():
        return b""
    return elements.detach().view(_core.uint8).numpy().data


def write_archive(file: IO[bytes], data: bytes, memories: dict[str, tuple[Any, Tensor]], order: bool = True) -> None:
    """A file of PyTorch since 1.6: a zip archive with the pickle and the memories."""
    import zlib

    with StoredArchive(file) as archive:
        archive.add(f"{_FOLDER}/data.pkl", data)
        if order:
            archive.add(f"{_FOLDER}/byteorder", sys.byteorder.encode())
        for key, (_, elements) in memories.items():
            archive.add(f"{_FOLDER}/data/{key}", _bytes_of(elements))
        archive.add(f"{_FOLDER}/version", b"3\n")
        # A number of the content, which is PyTorch's name of the file in its logs.
        archive.add(f"{_FOLDER}/.data/serialization_id", b"%020d%020d" % (len(data), zlib.crc32(data)))


def write_old(file: IO[bytes], data: bytes, memories: dict[str, tuple[Any, Tensor]], protocol: int) -> None:
    """A file of PyTorch before 1.6: some pickles and the memories, one after the other."""
    info = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC, PROTOCOL, info):
        file.write(pickle.dumps(value, protocol))
    file.write(data)
    keys = sorted(memories)
    file.write(pickle.dumps(keys, protocol))
    for key in keys:
        kind, elements = memories[key]
        size = elements.numel() * elements.element_size()
        count = size if kind is UntypedStorage else size // kind.dtype.itemsize
        file.write(struct.pack("<q", count))
        file.write(_bytes_of(elements))
