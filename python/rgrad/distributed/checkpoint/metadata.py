"""What a checkpoint's ``.metadata`` says: which tensors there are, and in which files their parts lie.

The classes have PyTorch's names and attributes, so the pickle of them is PyTorch's file.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import _core
from ..._runtime.layouts import strided
from ..._tensor.size import Size

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor.

    Args:
        offsets: Where it begins in the whole tensor.
        sizes: Its shape.
    """

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties:
    """What a tensor is beside its shape.

    Args:
        dtype: Its dtype.
        layout: Always ``rgrad.strided``.
        requires_grad: Whether it requires a gradient.
        memory_format: Always that of contiguous tensors.
        pin_memory: Always False.
    """

    dtype: Any = _core.float32
    layout: Any = strided
    requires_grad: bool = False
    memory_format: Any = _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        return self.dtype, self.layout, self.requires_grad, self.memory_format, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, self.memory_format, self.pin_memory = state


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint.

    Args:
        properties: Its dtype.
        size: Its shape.
        chunks: The parts in which it was written.
    """

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is no tensor."""


@dataclass
class StorageMeta:
    """Where and when a checkpoint was written.

    Args:
        checkpoint_id: The folder.
        save_id: A name of the call of ``save``.
        load_id: A name of a call of ``load``.
        modules: Nothing.
    """

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint has.

    Args:
        state_dict_metadata: By name, what there is.
        planner_data: By name, the keys on the way to it.
        storage_data: By :class:`MetadataIndex`, in which file and where it lies.
        storage_meta: Where and when it was written.
        version: That of the form of this data.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True, init=False)
class MetadataIndex:
    """A part of a tensor, or an object.

    Args:
        fqn: The name.
        offset: Where the part begins; None for objects.
        index: Which part it is, as a hint.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        for name, value in (("fqn", fqn), ("offset", None if offset is None else Size(offset)), ("index", index)):
            object.__setattr__(self, name, value)
