"""From checkpoints in folders to files of ``save``, and the other way."""

from __future__ import annotations

import math
import os
from typing import Any

from ... import _core
from ...serialization import load as load_file
from ...serialization import save as save_file
from ._loading import load
from ._saving import save
from .filesystem import FileSystemReader
from .metadata import Metadata, TensorStorageMetadata

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def _nested(metadata: Metadata, most: int) -> dict[str, Any]:
    """A state of the form that was saved: tensors to be filled, and nothing elsewhere.

    Args:
        metadata: What the checkpoint has.
        most: How many bytes all tensors together may have.
    """
    entries = metadata.state_dict_metadata.values()
    tensors = [entry for entry in entries if isinstance(entry, TensorStorageMetadata)]
    needed = sum(math.prod(entry.size) * entry.properties.dtype.itemsize for entry in tensors)
    if needed > most:
        raise RuntimeError(
            f"dcp_to_torch_save: metadata names tensors of {needed} bytes, and the files have {most}; it is damaged"
        )
    root: dict[str, Any] = {}
    for name, entry in metadata.state_dict_metadata.items():
        path = (metadata.planner_data or {}).get(name, (name,))
        if not isinstance(path, tuple) or not path or not all(type(key) in (str, int) for key in path):
            raise RuntimeError(f"dcp_to_torch_save: the checkpoint has no path of {name!r}; it is damaged")
        here: Any = root
        for key, after in zip(path, (*path[1:], None), strict=True):
            value: Any = {} if isinstance(after, str) else []
            if after is None:
                value = None
                if isinstance(entry, TensorStorageMetadata):
                    value = _core.empty(tuple(entry.size), dtype=entry.properties.dtype, device="cpu")
            if isinstance(here, list):
                # Entries come in order; a place beyond the end would be of a list that was never saved.
                if not isinstance(key, int) or key > len(here):
                    raise RuntimeError(
                        f"dcp_to_torch_save: {name!r} is at {path}, where there is no list; it is damaged"
                    )
                if key == len(here):
                    here.append(value)
            elif key not in here:
                here[key] = value
            here = here[key]
            if after is not None and not isinstance(here, (dict, list)):
                raise RuntimeError(f"dcp_to_torch_save: {name!r} is inside of another entry; the checkpoint is damaged")
    return root


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write a checkpoint to one file that ``rgrad.load`` reads. One process does it, and has the whole state.

    Args:
        dcp_checkpoint_dir: The folder.
        torch_save_path: The file.

    Raises:
        FileNotFoundError: There is no checkpoint, or none that is complete.
        CheckpointException: A file of it is missing or damaged.
        RuntimeError: It is damaged.
    """
    reader = FileSystemReader(dcp_checkpoint_dir)
    metadata = reader.read_metadata()
    state = _nested(metadata, sum(file.stat().st_size for file in reader.path.glob("*.distcp")))
    load(state, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write a file of ``rgrad.save`` or PyTorch to a folder that :func:`load` reads. One process does it.

    Args:
        torch_save_path: The file, a dict.
        dcp_checkpoint_dir: The folder.

    Raises:
        TypeError: The file has no dict.
        FileNotFoundError: There is no such file.
        CheckpointException: The folder cannot be written.
    """
    save(
        load_file(torch_save_path, map_location="cpu", weights_only=True),
        checkpoint_id=dcp_checkpoint_dir,
        no_dist=True,
    )
