"""``load``."""

from __future__ import annotations

import os
from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .._group import ProcessGroup
from ._nested import Leaf, flattened
from ._parts import overlap, own
from ._saving import states_of
from ._together import Together
from .default_planner import DefaultLoadPlanner, checked
from .filesystem import FileSystemReader
from .metadata import Metadata, MetadataIndex, TensorStorageMetadata
from .stateful import Stateful


def _checked(leaves: dict[str, Leaf], metadata: Metadata, partial: bool) -> None:
    """Raise before anything is written if the state and the checkpoint do not fit.

    Raises:
        RuntimeError: The checkpoint has no such entry, or it is no tensor there.
        ValueError: Shapes differ.
    """
    for name, leaf in leaves.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if partial:
                continue
            near = sorted(metadata.state_dict_metadata)[:5]
            raise RuntimeError(
                f"Missing key in checkpoint state_dict: {name}. It has {len(metadata.state_dict_metadata)} entries, "
                f"the first of which are {near}; DefaultLoadPlanner(allow_partial_load=True) leaves out what is missing"
            )
        value = leaf.value
        if isinstance(value, Tensor) != isinstance(entry, TensorStorageMetadata):
            raise RuntimeError(
                f"load: {name!r} is {'a tensor' if isinstance(value, Tensor) else type(value).__name__} here, and "
                f"{'a tensor' if isinstance(entry, TensorStorageMetadata) else 'another object'} in the checkpoint"
            )
        if isinstance(value, Tensor) and tuple(value.shape) != tuple(entry.size):  # type: ignore[union-attr]
            raise ValueError(
                f"Size mismatch between saved {tuple(entry.size)} and current: {tuple(value.shape)} for {name}"  # type: ignore[union-attr]
            )


@no_grad()
def _fill(name: str, value: Tensor, entry: TensorStorageMetadata, metadata: Metadata, reader: FileSystemReader) -> None:
    """Write to this process's part of a tensor what the parts in the checkpoint have."""
    target, start = own(value)
    filled = 0
    for chunk in entry.chunks:
        shared = overlap((chunk.offsets, chunk.sizes), (start, target.shape))
        if shared is None:
            continue
        info = metadata.storage_data.get(MetadataIndex(name, chunk.offsets))
        if info is None:
            raise RuntimeError(
                f"load: the checkpoint names no file for {name!r} at {tuple(chunk.offsets)}; it is damaged"
            )
        part = reader.read(info)
        if not isinstance(part, Tensor) or tuple(part.shape) != tuple(chunk.sizes):
            raise RuntimeError(
                f"load: {info.relative_path} should have {name!r} of shape {tuple(chunk.sizes)}, got "
                f"{tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__}; it is damaged"
            )
        there, here = shared
        target[here] = part[there].to(target.device, target.dtype)
        filled += part[there].numel()
    if filled < target.numel():
        raise RuntimeError(
            f"load: the checkpoint has {filled} of the {target.numel()} elements of {name!r} that this process needs"
        )


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Read a state from a folder, in place. All processes call it, of any number and with any placements.

    Args:
        state_dict: Tensors, which are written to, other objects, which are replaced, or objects with
            ``load_state_dict()``. Entries of the checkpoint that it does not have are left out.
        checkpoint_id: The folder, which all processes see.
        storage_reader: What reads; by default a :class:`FileSystemReader`.
        planner: Options of what is read.
        process_group: By default that of all processes.
        no_dist: Whether this process reads for itself, without the others.

    Raises:
        CheckpointException: A process could not read: the checkpoint is not there or not complete, an entry is missing
            or has another shape, or a file is damaged. All raise it.
        RuntimeError: Neither ``checkpoint_id`` nor ``storage_reader`` is given.
    """
    planner = checked("load", planner, DefaultLoadPlanner)
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("load: `checkpoint_id` or `storage_reader` must be given")
        storage_reader = FileSystemReader(checkpoint_id)
    elif not isinstance(storage_reader, FileSystemReader):
        raise NotImplementedError(
            f"load: storage_reader must be a FileSystemReader, got {type(storage_reader).__name__}"
        )
    else:
        storage_reader.reset(checkpoint_id)
    reader, together = storage_reader, Together(process_group, no_dist)
    states = states_of(state_dict, "load")
    leaves = flattened(states)

    def look() -> Metadata:
        metadata = reader.read_metadata()
        _checked(leaves, metadata, planner.allow_partial_load)
        return metadata

    read: list[Metadata] = []
    # The metadata itself is not sent.
    together.each("load", lambda: read.append(look()))
    metadata = read[0]

    def fill() -> None:
        for name, leaf in leaves.items():
            entry = metadata.state_dict_metadata.get(name)
            if isinstance(entry, TensorStorageMetadata):
                _fill(name, leaf.value, entry, metadata, reader)
            elif entry is not None:
                info = metadata.storage_data.get(MetadataIndex(name))
                if info is None:
                    raise RuntimeError(f"load: the checkpoint names no file for {name!r}; it is damaged")
                leaf.value = reader.read(info)

    together.each("load", fill)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]
