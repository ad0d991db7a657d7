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

import json
import os
import pickle
import warnings
from pathlib import Path
from typing import IO, Any

from ._core import Tensor
from ._files import safe_globals as _safe_globals
from ._files.archive import StoredArchive
from ._files.archive_reader import HEADER, MOST_HEADER, ArchiveReader, File, as_damage, name_of, reading
from ._files.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)
from ._files.reader import Reader, read_tensor
from ._files.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    safe_globals,
)
from ._files.writer import Writer
from ._runtime.whole_files import written_whole
from ._tensor.bits import array_of

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


def save(obj: Any, f: File, *args: Any, **kwargs: Any) -> None:
    """Write ``obj`` to a path or a binary file: tensors, numbers, strings, bytes, None and dicts, lists and tuples.

    Other objects, whole modules among them, are pickled. To read these takes ``load(f, weights_only=False)`` or
    `add_safe_globals`, and their classes; a state dict needs neither.

    Values, dtypes, shapes, devices, the structure and ``requires_grad`` come back; history
    does not. Tensors that share memory do so again when they are loaded, and a tensor that occurs twice is one object.
    A view is written with its own elements only, or with those between it and the other tensors of its memory in
    ``obj``. ``obj`` is checked before the file is touched. PyTorch's further
    arguments (``pickle_module``, ...) are accepted and ignored.

    At a path, the new file is written beside the old one and takes its place when it is whole and on the disk, with its
    permissions; a symbolic link stays. Until then the old one is as it was, also for those who have it open or mapped.

    Raises:
        TypeError: A key of a dict is no string, number or tuple; or an object cannot be pickled. A note says where it
            is. For some objects this is ``pickle.PicklingError`` or an AttributeError.
        ValueError: ``obj`` contains itself, or what is not in tensors is larger than `load` takes, 1 GiB.
        RuntimeError: The folder does not exist.
        OSError: The file cannot be written.
    """
    import numpy as np

    writer = Writer()
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
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > MOST_HEADER:
        raise ValueError(
            f"save: strings, bytes and numbers in obj take {len(text)} bytes, expected at most {MOST_HEADER}. "
            "Put large data in tensors"
        )

    def write(file: IO[bytes]) -> None:
        with StoredArchive(file) as archive:
            archive.add(HEADER, text)
            for i, array in enumerate(arrays):
                archive.add(f"tensors/{i}", array.reshape(-1).view(np.uint8).data)
            for i, written in enumerate(writer.objects):
                archive.add(f"objects/{i}", written)

    if isinstance(f, (str, os.PathLike)):
        with written_whole(f) as file:
            write(file)
    else:
        write(f)


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
            are any: that runs what the file says, so do it only with files that you trust. Otherwise what a pickle
            names is called with what the file gives to it, and only what reading it has made is written to.
        mmap: Map the file to memory instead of reading it: what nobody looks at is never read, and checksums are not
            compared. The file must stay as it is: where another program shortens it, the system ends the process that
            reads what is lost (SIGBUS), as with any map. `save` does not shorten files, it replaces them.
            See `set_default_mmap_options` for writes to the tensors.
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
    if not isinstance(f, (str, os.PathLike)) and not all(hasattr(f, word) for word in ("read", "seek", "tell")):
        raise AttributeError(
            f"load: '{type(f).__name__}' object has no attribute 'seek': expected a path or a file that is seekable; "
            "read others into io.BytesIO first"
        )
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    name, shared = name_of(f), bool(mmap) and _maps_are_shared()
    with reading(f, writable=shared) as archive, as_damage(name):
        header = _header(archive)
        devices = [str(what.get("device", "cpu")) for what in header["tensors"]]
        mapped = _mapped(archive.file, shared) if mmap and header["tensors"] else None
        tensors = [read_tensor(archive, i, what, mapped) for i, what in enumerate(header["tensors"])]
        objects = archive.objects()
    permitted = None
    if weights_only is not False:
        permitted = _safe_globals.allowed()
        with as_damage(name):
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
    with as_damage(name):
        return Reader(moved, header["views"] if header["version"] > 1 else None, objects, permitted).decode(
            header["obj"]
        )


def _header(archive: ArchiveReader) -> Any:
    header = archive.header()
    if header["format"] != FORMAT or header["version"] not in (1, 2, VERSION):
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


def _maps_are_shared() -> bool:
    import mmap

    return get_default_mmap_options() not in (None, mmap.MAP_PRIVATE)


def _mapped(file: Any, shared: bool) -> Any:
    """A file as memory. Writes stay in this process, or go to the file, as `get_default_mmap_options` says."""
    import mmap

    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


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
