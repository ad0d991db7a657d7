"""Checkpoints as folders: PyTorch's files, which PyTorch reads and which are read here where PyTorch has written them.

Note: what makes a folder a checkpoint is ``.metadata``, which names the other files. It is written last, whole or not
at all. A second checkpoint in the same folder gets files with new names, so the first one stays whole until then; its
files are removed afterwards.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._files import safe_globals
from ..._files.restricted_pickle import Malformed, RestrictedUnpickler
from ..._files.torch_writer import pickled
from ..._runtime.layouts import strided
from ..._runtime.whole_files import written_whole
from ...serialization import load as load_file
from ...serialization import save as save_file
from . import metadata as kinds
from .metadata import Metadata, MetadataIndex

__all__ = ["FileSystemReader", "FileSystemWriter"]

_METADATA = ".metadata"
_FILE = re.compile(r"__(\d+)_(\d+)\.distcp")
_HOME = "torch.distributed.checkpoint"


@dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value is not None}


def _encoding(number: Any) -> Any:
    return kinds._MEM_FORMAT_ENCODING(number)


def _joined(*parts: Any) -> str:
    return "/".join(str(part) for part in parts if isinstance(part, str))


def _permitted() -> dict[str, Any]:
    """What a pickle of metadata may use: our classes under PyTorch's names, and what files of tensors may."""
    own = {f"{_HOME}.metadata.{name}": getattr(kinds, name) for name in kinds.__all__}
    paths = {
        f"{module}.{name}": _joined for module in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath")
    }
    return {
        **safe_globals.allowed(),
        **own,
        **paths,
        f"{_HOME}.metadata._MEM_FORMAT_ENCODING": _encoding,
        f"{_HOME}.filesystem._StorageInfo": _StorageInfo,
        "torch.strided": strided,
    }


class FileSystemWriter:
    """Writes checkpoints to a folder.

    Args:
        path: The folder, which all processes see; it is made if it is not there.
        single_file_per_rank: Accepted; has no effect: each process writes one file.
        sync_files: Whether to wait until the disk has the files.
        thread_count: Accepted; has no effect.
        per_thread_copy_ahead: Accepted; has no effect.
        cache_staged_state_dict: Accepted; has no effect.
        overwrite: Whether a checkpoint that is there is replaced.
        serialization_format: None, or the one of ``save``.

    Raises:
        NotImplementedError: ``serialization_format`` asks for another one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: Any = None,
    ) -> None:
        if getattr(serialization_format, "value", serialization_format) not in (None, "torch_save"):
            raise NotImplementedError(f"FileSystemWriter: the format {serialization_format!r} is not there")
        self.path = Path(path)
        self.sync_files, self.overwrite = sync_files, overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin a checkpoint.

        Args:
            checkpoint_id: Another folder.
        """
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether a folder can be made there.

        Args:
            checkpoint_id: The folder.
        """
        if "://" in str(checkpoint_id):
            return False
        return any(os.access(parent, os.W_OK) for parent in Path(checkpoint_id).absolute().parents if parent.exists())

    # What `save` calls. The first process prepares and finishes.

    def prepare(self) -> int:
        """Make the folder.

        Returns:
            The number of this checkpoint's files.

        Raises:
            OSError: It cannot be made.
            RuntimeError: There is a checkpoint, and ``overwrite`` is False.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _METADATA).exists() and not self.overwrite:
            raise RuntimeError(f"{self.path}: a checkpoint already exists, and overwrite is False")
        return 1 + max(
            (int(found[2]) for name in os.listdir(self.path) if (found := _FILE.fullmatch(name))), default=-1
        )

    def file_of(self, rank: int, number: int) -> str:
        """The name of a process's file."""
        return f"__{rank}_{number}.distcp"

    def write(self, name: str, items: Iterable[tuple[MetadataIndex, Any]]) -> dict[MetadataIndex, _StorageInfo]:
        """Write values to a file.

        Args:
            name: The file.
            items: The values, tensors or objects.

        Returns:
            Where each of them lies.

        Raises:
            OSError: It cannot be written: the disk is full, for instance. Nothing is left of it.
        """
        found: dict[MetadataIndex, _StorageInfo] = {}
        target = self.path / name
        try:
            with written_whole(target, durable=self.sync_files) as file:
                start = 0
                for index, value in items:
                    room = io.BytesIO()
                    save_file(value.cpu().contiguous() if isinstance(value, Tensor) else value, room)
                    file.write(room.getbuffer())
                    found[index] = _StorageInfo(name, start, room.tell())
                    start += room.tell()
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror or error}: the checkpoint is not complete, and one that was there before still is; "
                "save it where there is room",
                str(target),
            ) from error
        return found

    def finish(self, metadata: Metadata) -> None:
        """Write ``.metadata``, with which the checkpoint is complete, and remove the files of the one before.

        Args:
            metadata: What the checkpoint has.

        Raises:
            OSError: It cannot be written; then the checkpoint before, if there was one, is still complete.
        """
        data, _ = pickled(metadata, 4)
        with written_whole(self.path / _METADATA, durable=self.sync_files) as file:
            file.write(data)
        used = {info.relative_path for info in metadata.storage_data.values()}
        for name in os.listdir(self.path):
            if _FILE.fullmatch(name) and name not in used:
                # The checkpoint is complete; what cannot be removed goes with the next one.
                with contextlib.suppress(OSError):
                    (self.path / name).unlink(missing_ok=True)

    def discard(self, name: str) -> None:
        """Remove a file of a checkpoint that will not be complete."""
        with contextlib.suppress(OSError):
            (self.path / name).unlink(missing_ok=True)


class FileSystemReader:
    """Reads checkpoints from a folder.

    Args:
        path: The folder, which all processes see.
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin to read.

        Args:
            checkpoint_id: Another folder.
        """
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether there is a complete checkpoint.

        Args:
            checkpoint_id: The folder.
        """
        return (Path(checkpoint_id) / _METADATA).exists()

    def read_metadata(self) -> Metadata:
        """What the checkpoint has.

        Returns:
            The metadata.

        Raises:
            FileNotFoundError: There is no checkpoint, or none that is complete.
            RuntimeError: The file is damaged, or is none of this kind.
        """
        file = self.path / _METADATA
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            there = self.path.is_dir() and any(_FILE.fullmatch(name) for name in os.listdir(self.path))
            raise FileNotFoundError(
                2,
                "the checkpoint is not complete: it has files, and no .metadata, which is written last"
                if there
                else "there is no checkpoint",
                str(file),
            ) from None

        def no_tensors(key: Any) -> Any:
            raise Malformed("metadata has no tensors")

        try:
            found = RestrictedUnpickler(data, _permitted(), no_tensors).load()
        except Exception as error:
            raise RuntimeError(f"{file}: this is no metadata of a checkpoint, or it is damaged: {error}") from error
        try:
            _check(found, file)
        except (AttributeError, TypeError) as error:
            # An object without the attributes that its class has.
            raise RuntimeError(f"{file}: this is no metadata of a checkpoint, or it is damaged: {error}") from error
        return found  # type: ignore[no-any-return]

    def read(self, info: _StorageInfo) -> Any:
        """A value.

        Args:
            info: Where it lies.

        Raises:
            FileNotFoundError: The file is not there.
            RuntimeError: The file ends before, or is damaged.
            Exception: ``pickle.UnpicklingError``: it has objects of classes that are not allowed.
        """
        file = self.path / info.relative_path
        if file.parent != self.path:
            raise RuntimeError(f"{file}: metadata names a file outside of the checkpoint's folder")
        try:
            with open(file, "rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                if info.offset < 0 or info.length < 0 or info.offset + info.length > size:
                    raise RuntimeError(
                        f"{file}: the file has {size} bytes, and metadata names those from {info.offset} to "
                        f"{info.offset + info.length}; it is damaged"
                    )
                opened.seek(info.offset)
                data = opened.read(info.length)
        except FileNotFoundError:
            raise FileNotFoundError(2, "a file of the checkpoint is missing", str(file)) from None
        return load_file(io.BytesIO(data), map_location="cpu", weights_only=True)


def _sizes(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(one) is int and one >= 0 for one in value)


def _check(found: Any, file: Path) -> None:
    """Raise unless metadata has the types that are read from it."""
    right = isinstance(found, Metadata) and isinstance(getattr(found, "state_dict_metadata", None), dict)
    right = right and isinstance(getattr(found, "storage_data", None), dict)
    for index, info in found.storage_data.items() if right else ():
        right = right and isinstance(index, MetadataIndex) and isinstance(info, _StorageInfo)
        right = right and type(vars(index).get("fqn")) is str
        right = right and (vars(index).get("offset") is None or _sizes(index.offset))
        right = right and type(vars(info).get("relative_path")) is str
        right = right and type(vars(info).get("offset")) is int and type(vars(info).get("length")) is int
        if right and info.transform_descriptors:
            raise RuntimeError(f"{file}: files are transformed by {info.transform_descriptors}, which is not there")
    for name, entry in found.state_dict_metadata.items() if right else ():
        right = right and type(name) is str
        if isinstance(entry, kinds.TensorStorageMetadata):
            chunks = vars(entry).get("chunks")
            right = right and _sizes(vars(entry).get("size")) and isinstance(chunks, list)
            right = right and isinstance(getattr(entry.properties, "dtype", None), _core.dtype)
            right = right and all(
                isinstance(c, kinds.ChunkStorageMetadata)
                and _sizes(vars(c).get("offsets"))
                and _sizes(vars(c).get("sizes"))
                and len(c.offsets) == len(c.sizes) == len(entry.size)
                and all(a + b <= n for a, b, n in zip(c.offsets, c.sizes, entry.size, strict=True))
                for c in chunks or ()
            )
        else:
            right = right and isinstance(entry, kinds.BytesStorageMetadata)
    if not right:
        raise RuntimeError(f"{file}: this is no metadata of a checkpoint, or it is damaged")
