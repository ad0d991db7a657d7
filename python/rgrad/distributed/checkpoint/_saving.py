"""``save`` and ``async_save``."""

from __future__ import annotations

import copy
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._tensor.size import Size
from .._group import ProcessGroup
from ..tensor._dtensor import DTensor
from ._nested import Leaf, flattened
from ._parts import own
from ._together import Together
from .api import CheckpointException
from .default_planner import DefaultSavePlanner, checked
from .filesystem import FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .stateful import Stateful

_VERSION = "1.0.0"
# Smaller tensors are written by the first process that has them: statistics of norms, which may differ, are then those
# of one process.
_SMALL = 1 << 16


def states_of(state_dict: Any, name: str) -> dict[str, Any]:
    """The state of each entry.

    Raises:
        TypeError: It is no dict.
    """
    if not isinstance(state_dict, dict):
        raise TypeError(f"{name}: state_dict must be a dict, got {type(state_dict).__name__}")
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


class _Item:
    """What a process could write: sent to the others, so it has no elements."""

    def __init__(self, name: str, leaf: Leaf) -> None:
        value = leaf.value
        self.path = leaf.path
        self.index = MetadataIndex(name)
        self.bytes, self.about = 1000, None
        self.chunk: ChunkStorageMetadata | None = None
        if isinstance(value, Tensor):
            part, start = own(value)
            if part.device.type == "meta":
                raise RuntimeError(f"save: {name!r} is on the meta device and has no elements")
            self.index = MetadataIndex(name, start)
            self.bytes = part.numel() * part.element_size()
            self.chunk = ChunkStorageMetadata(start, Size(part.shape))
            self.about = (str(part.dtype).rpartition(".")[2], tuple(value.shape))


def _items(leaves: dict[str, Leaf]) -> list[_Item]:
    """What this process has. It has nothing of a tensor whose pieces are all elsewhere."""
    found = [_Item(name, leaf) for name, leaf in leaves.items()]
    return [item for item in found if item.about is None or item.bytes or 0 in item.about[1]]


def _written(value: Any) -> Any:
    """What is written of a value: a tensor with no memory beside its elements."""
    return own(value)[0].clone() if isinstance(value, Tensor) else value


def _mine(items: list[list[_Item]], lowest: bool) -> list[set[MetadataIndex]]:
    """What each process writes: what several have, the one with the least to write."""
    owners: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, found in enumerate(items):
        for item in found:
            owners.setdefault(item.index, []).append(rank)
            sizes[item.index] = item.bytes
    loads, written = [0] * len(items), [set[MetadataIndex]() for _ in items]
    # What only one has is counted first.
    for index, ranks in sorted(owners.items(), key=lambda entry: len(entry[1])):
        rank = ranks[0] if lowest or sizes[index] < _SMALL else min(ranks, key=lambda one: loads[one])
        loads[rank] += sizes[index]
        written[rank].add(index)
    return written


def _metadata(items: list[list[_Item]], dtypes: dict[str, Any]) -> Metadata:
    entries: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    seen: set[MetadataIndex] = set()
    for item in (item for found in items for item in found):
        name = item.index.fqn
        paths.setdefault(name, item.path)
        if item.chunk is None:
            entries.setdefault(name, BytesStorageMetadata())
            continue
        assert item.about is not None
        kind, shape = item.about
        entry = entries.setdefault(name, TensorStorageMetadata(TensorProperties(dtypes[kind]), Size(shape), []))
        if not isinstance(entry, TensorStorageMetadata) or tuple(entry.size) != shape:
            raise ValueError(
                f"save: {name!r} must have one shape in all processes, got "
                f"{tuple(getattr(entry, 'size', ()))} and {shape}"
            )
        if item.index not in seen:
            seen.add(item.index)
            entry.chunks.append(item.chunk)
    return Metadata(entries, paths, {}, None, _VERSION)


def write(
    leaves: dict[str, Leaf], writer: FileSystemWriter, planner: DefaultSavePlanner, together: Together
) -> Metadata:
    """Write values; all processes do it together.

    Raises:
        CheckpointException: A process has failed.
    """
    items = together.each("save", lambda: _items(leaves))
    first = together.rank == 0
    numbers = together.each("save", lambda: writer.prepare() if first else 0)
    file = writer.file_of(together.place(together.rank), numbers[0])
    mine = _mine(items, planner.dedup_save_to_lowest_rank)[together.rank]
    try:
        found = together.each(
            "save",
            lambda: writer.write(
                file,
                (
                    (item.index, _written(leaves[item.index.fqn].value))
                    for item in items[together.rank]
                    if item.index in mine
                ),
            ),
        )
    except BaseException:
        writer.discard(file)
        raise

    def finish() -> Metadata:
        kinds = {item.about[0]: getattr(_core, item.about[0]) for part in items for item in part if item.about}
        metadata = _metadata(items, kinds)
        metadata.storage_data = {index: info for part in found for index, info in part.items()}
        metadata.storage_meta = StorageMeta(str(writer.path), writer.save_id)
        if first:
            writer.finish(metadata)
        return metadata

    try:
        return together.each("save", finish)[together.rank]
    except CheckpointException as error:
        # Without the first process there is no metadata; after any other error there may be, and it names the files.
        if together.place(0) in error.failures:
            writer.discard(file)
        raise


def _writer(name: str, given: Any, checkpoint_id: Any) -> FileSystemWriter:
    if given is None:
        if checkpoint_id is None:
            raise RuntimeError(f"{name}: `checkpoint_id` or `storage_writer` must be given")
        return FileSystemWriter(checkpoint_id)
    if not isinstance(given, FileSystemWriter):
        raise NotImplementedError(f"{name}: storage_writer must be a FileSystemWriter, got {type(given).__name__}")
    given.reset(checkpoint_id)
    return given


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state to a folder, each process its part. All processes call it.

    The folder is PyTorch's: its ``load`` reads it, and any number of processes does. It is a checkpoint when its file
    ``.metadata`` is there, which is written last; until then one that was in the folder before is whole.

    Args:
        state_dict: Tensors, DTensors, numbers and other objects in nested dicts and lists, or objects with a
            ``state_dict()``. Of what several processes have, one writes its own.
        checkpoint_id: The folder, which all processes see.
        storage_writer: What writes; by default a :class:`FileSystemWriter`.
        planner: Options of what is written.
        process_group: By default that of all processes.
        no_dist: Whether this process writes for itself, without the others.
        use_collectives: Accepted; has no effect.

    Returns:
        What was written.

    Raises:
        CheckpointException: A process could not write, for instance because its disk is full. All raise it.
        RuntimeError: Neither ``checkpoint_id`` nor ``storage_writer`` is given.

    Example:
        >>> import tempfile
        >>> import rgrad.distributed.checkpoint as dcp
        >>> folder = tempfile.mkdtemp()
        >>> _ = dcp.save({"step": 3, "w": rgrad.ones(2)}, checkpoint_id=folder)
        >>> state = {"step": 0, "w": rgrad.zeros(2)}
        >>> dcp.load(state, checkpoint_id=folder)
        >>> state
        {'step': 3, 'w': tensor([1., 1.])}
    """
    planner = checked("save", planner, DefaultSavePlanner)
    writer = _writer("save", storage_writer, checkpoint_id)
    leaves = flattened(states_of(state_dict, "save"))
    return write(leaves, writer, planner, Together(process_group, no_dist))


_background: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def _copied(leaves: dict[str, Leaf]) -> dict[str, Leaf]:
    """The values as they are now."""
    made: dict[str, Any] = {}
    for name, leaf in leaves.items():
        value = leaf.value
        if isinstance(value, DTensor):
            made[name] = DTensor(own(value)[0].cpu().clone(), value._spec)
        else:
            made[name] = value.detach().cpu().clone() if isinstance(value, Tensor) else copy.deepcopy(value)
    return {name: Leaf(made, name, leaf.path) for name, leaf in leaves.items()}


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata]:
    """As :func:`save`, in a thread, with the values as they are now. One save runs after the other.

    The processes agree through the group in that thread. It must not be the group that training uses meanwhile, whose
    collectives would come in another order in each process: give ``new_group()``.

    Args:
        state_dict: As for :func:`save`; it may be changed when this returns.
        checkpoint_id: The folder.
        storage_writer: What writes.
        planner: Options of what is written.
        process_group: A group of its own, if there are several processes.
        async_checkpointer_type: Accepted; has no effect: a thread writes.
        async_stager: Accepted; has no effect: the values are copied at once.
        no_dist: Whether this process writes for itself.
        use_collectives: Accepted; has no effect.

    Returns:
        A future with what was written. Its ``result()`` raises what :func:`save` raises.

    Raises:
        ValueError: There are several processes, and no group of its own is given.
        RuntimeError: Neither ``checkpoint_id`` nor ``storage_writer`` is given.
    """
    global _background
    planner = checked("async_save", planner, DefaultSavePlanner)
    together = Together(process_group, no_dist)
    if process_group is None and together.size > 1:
        raise ValueError(
            "async_save: with several processes process_group must be a group of its own: new_group() makes one"
        )
    writer = _writer("async_save", storage_writer, checkpoint_id)
    leaves = _copied(flattened(states_of(state_dict, "async_save")))
    with _lock:
        if _background is None:
            _background = ThreadPoolExecutor(1, "rgrad.distributed.checkpoint")
    return _background.submit(write, leaves, writer, planner, together)
