"""``save`` and ``load``: tensors and objects in PyTorch's files.

A file is a zip archive without compression: ``data.pkl`` describes the structure in the opcodes of pickle, under
PyTorch's names, and ``data/<n>`` holds memory n. So PyTorch reads what `save` writes, and the other way round. Without
``weights_only=False`` no code in a file is run: a machine of rgrad's own reads the pickle, and makes nothing but
tensors, plain containers, and objects of classes that `add_safe_globals` has allowed.

`load` reads older files, too: those of PyTorch before 1.6, which are pickles with memories behind them, tar archives of
PyTorch 0.1, and rgrad's own container, which `save` wrote before.
"""

import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from . import _core
from ._files import safe_globals as _safe_globals
from ._files.archive_reader import HEADER, File, NoArchive, as_damage, folder_of, name_of, reading
from ._files.container_reader import read_container
from ._files.legacy_reader import START, read_first_form, read_tar
from ._files.locations import restorer, to_location
from ._files.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)
from ._files.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    safe_globals,
)
from ._files.torch_reader import read_archive, refuse_script, warn_of_unused
from ._files.torch_writer import pickled, write_archive, write_old
from ._runtime.whole_files import written_whole

__all__ = [
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
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

DEFAULT_PROTOCOL = 2

# For the annotations of programs.
FileLike: TypeAlias = File
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | _core.device | str | dict[str, str] | None


def save(
    obj: Any,
    f: File,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or a binary file, in PyTorch's format: PyTorch reads it, too.

    Values, dtypes, strides, devices, the structure and ``requires_grad`` come back; history and hooks do not. Tensors
    that share memory do so again when they are loaded. The memory of a tensor is written as a whole, once: save
    ``view.clone()`` where a small view of a large tensor is wanted. Tensors, plain containers and state dicts are read
    without trust. Whole modules and other objects are, if their classes are allowed (`add_safe_globals`) or with
    ``load(..., weights_only=False)``.

    At a path, the new file is written beside the old one and takes its place when it is whole and on the disk, with its
    permissions; a symbolic link stays. Until then the old one is as it was, also for those who have it open or mapped.

    Args:
        obj: The object.
        f: Path or binary file, which need not seek.
        pickle_module: Accepted for PyTorch's sake; it has no effect.
        pickle_protocol: The protocol of the pickle, 2 or later. PyTorch reads 2 without trust.
        _use_new_zipfile_serialization: False writes what PyTorch before 1.6 wrote and read.
        _disable_byteorder_record: Leave out what says the order of bytes.

    Raises:
        AttributeError: ``f`` is neither a path nor has a method ``write``.
        TypeError: An object cannot be pickled. A note says where it is. For some objects this is
            ``pickle.PicklingError`` or an AttributeError.
        RuntimeError: The folder does not exist, or a tensor has no place in a file of this form.
        RecursionError: The object is nested too deeply.
        ValueError: The protocol is unknown.
        OSError: The file cannot be written.
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute; got {type(f).__name__}"
        )
    if not 2 <= pickle_protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"save: got pickle_protocol={pickle_protocol}, expected 2 to {pickle.HIGHEST_PROTOCOL}")
    data, memories = pickled(obj, pickle_protocol, not _use_new_zipfile_serialization)
    if is_path:
        folder = Path(f).parent  # type: ignore[arg-type]
        if not folder.is_dir():
            raise RuntimeError(f"save: Parent directory {folder} does not exist.")

    def write(file: IO[bytes]) -> None:
        if _use_new_zipfile_serialization:
            write_archive(file, data, memories, not _disable_byteorder_record)
        else:
            write_old(file, data, memories, pickle_protocol)

    if is_path:
        with written_whole(f) as file:  # type: ignore[arg-type]
            write(file)
    else:
        write(f)  # type: ignore[arg-type]


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage on the device of a name, as `load` puts it there without ``map_location``.

    Args:
        storage: A storage on the CPU.
        location: The name of a device.

    Returns:
        The storage; the same one if it lies there.

    Raises:
        RuntimeError: There is no such device.
    """
    return to_location(storage, location)


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what :func:`save` or PyTorch wrote. No code in the file is run, unless ``weights_only`` is False.

    Args:
        f: Path or seekable binary file. A path that ends in ``.safetensors`` is read by the package of that name.
        map_location: Device to put tensors on; a dict from saved devices to devices, by name; or a function that is
            given a storage on the CPU and the name of its saved device, and returns the storage, moved, or None to
            leave that to ``load``. Default: each tensor goes back to the device that it was saved from.
        pickle_module: What reads the pickle with ``weights_only=False``, which is the default if it is given.
        weights_only: Refuse a file whose pickle names classes or functions that ``serialization.add_safe_globals`` has
            not allowed, apart from those of tensors and plain containers; the default. False reads everything: that
            runs what the file says, so do it only with files that you trust. Otherwise what a pickle names is called
            with what the file gives to it, and only what reading it has made is written to.
        mmap: Map the file to memory instead of reading it: what nobody looks at is never read, and checksums are not
            compared. The file must stay as it is: where another program shortens it, the system ends the process that
            reads what is lost (SIGBUS), as with any map. `save` does not shorten files, it replaces them.
            See `set_default_mmap_options` for writes to the tensors.
        pickle_load_args: Arguments of the unpickler, such as ``encoding`` for files of Python 2.

    Returns:
        What was saved.

    Raises:
        AttributeError: The file cannot seek.
        EOFError: The file is empty.
        FileNotFoundError: There is no such file.
        RuntimeError: The file is damaged, of another format or from a later version; tensors were saved from a device
            that is not here and ``map_location`` names no other; or a file needs trust.
        NotImplementedError: The file has a kind of tensor that rgrad has not: a quantized or sparse one.
        ValueError: ``mmap`` without a path.
        Exception: ``pickle.UnpicklingError``: the file has objects of what is not allowed, and ``weights_only`` is not
            False.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if not isinstance(f, (str, os.PathLike)) and not all(hasattr(f, word) for word in ("read", "seek", "tell")):
        raise AttributeError(
            f"load: '{type(f).__name__}' object has no attribute 'seek': expected a path or a file that is seekable; "
            "read others into io.BytesIO first"
        )
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(".safetensors"):
        from ._files.safetensors import load_file

        return load_file(f, map_location)
    restorer(map_location)
    if not weights_only:
        return _read(f, map_location, pickle_module, None, mmap, pickle_load_args)
    warn_of_unused(pickle_load_args)
    try:
        return _read(f, map_location, None, _safe_globals.allowed(), mmap, pickle_load_args)
    except pickle.UnpicklingError as error:
        hint = f" If you trust the source of {name_of(f)}, pass weights_only=False, which runs what the file says."
        raise pickle.UnpicklingError(f"{error}{'' if 'weights_only=False' in str(error) else hint}") from None


def _read(f: Any, map_location: Any, pickle_module: Any, permitted: Any, mmap: Any, given: dict[str, Any]) -> Any:
    """What is in a file of any form; see `load`. ``permitted`` is None where the file is trusted."""
    options = {"encoding": "utf-8", **given}
    name, shared = name_of(f), bool(mmap) and _maps_are_shared()
    start = None if isinstance(f, (str, os.PathLike)) else f.tell()
    try:
        with reading(f, writable=shared) as archive:
            mapped = _mapped(archive.file, shared) if mmap else None
            folder = folder_of(archive.names())
            if folder is None or HEADER in archive.names():
                return read_container(archive, map_location, mapped, permitted)
            refuse_script(archive, folder, permitted is not None)
            with as_damage(name):
                return read_archive(archive, folder, map_location, mapped, permitted, pickle_module, options)
    except NoArchive as error:
        # A pickle or a tar archive, or neither.
        if start is not None:
            f.seek(start)
        data = _whole(f)
        if data[257:262] == b"ustar":
            if permitted is not None:
                raise RuntimeError(
                    "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. If you trust the "
                    f"source of {name}, pass weights_only=False"
                ) from None
        elif not data.startswith(START):
            raise RuntimeError(str(error)) from None
        if mmap:
            raise RuntimeError(
                f"load: mmap can only be used with files saved with _use_new_zipfile_serialization=True; {name} is an "
                "older one. Load it, save it anew, and map that"
            ) from None
    with as_damage(name):
        if not data.startswith(START):
            return read_tar(data, map_location, pickle_module, options)
        return read_first_form(data, map_location, permitted, pickle_module, options)


def _whole(f: Any) -> bytes:
    if isinstance(f, (str, os.PathLike)):
        return Path(f).read_bytes()
    data: bytes = f.read()
    return data


def _weights_only(given: bool | None, pickle_module: Any) -> bool:
    """Whether a file is read without trust: as the caller says, or PyTorch's variables of the environment."""
    yes = ("1", "y", "yes", "true")
    force = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    trust = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    if force and trust:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if force:
        return True
    if given is None and trust:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected: weights_only is False, as none was given",
            stacklevel=3,
        )
        return False
    return pickle_module is None if given is None else bool(given)


def _maps_are_shared() -> bool:
    import mmap

    return get_default_mmap_options() not in (None, mmap.MAP_PRIVATE)


def _mapped(file: Any, shared: bool) -> Any:
    """A file as memory. Writes stay in this process, or go to the file, as `get_default_mmap_options` says."""
    import mmap

    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
