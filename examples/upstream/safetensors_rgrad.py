"""The file ``safetensors/rgrad.py`` as it may be offered to the package safetensors: tensors of rgrad as they are.

It has the functions of that package's other modules. Until it is there, copy it into a project, or put rgrad in torch's
place (``rgrad.compat.install()``) and use ``safetensors.torch``.
"""

import os
from collections.abc import Mapping
from typing import Any

from safetensors import TensorSpec, deserialize, serialize, serialize_file

import rgrad
from rgrad import Tensor, nn

# The format's names of dtypes.
_DTYPES = {
    "F64": rgrad.float64,
    "F32": rgrad.float32,
    "F16": rgrad.float16,
    "BF16": rgrad.bfloat16,
    "I64": rgrad.int64,
    "I32": rgrad.int32,
    "I16": rgrad.int16,
    "I8": rgrad.int8,
    "U64": rgrad.uint64,
    "U32": rgrad.uint32,
    "U16": rgrad.uint16,
    "U8": rgrad.uint8,
    "BOOL": rgrad.bool,
    "C64": rgrad.complex64,
}


def _described(tensors: Mapping[str, Tensor], alive: list[Tensor]) -> dict[str, TensorSpec]:
    """What safetensors is told of each tensor; ``alive`` keeps the memory that it reads."""
    owners: dict[int, str] = {}
    described = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected rgrad.Tensor but received {type(tensor)}")
        if not tensor.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}`. Call .contiguous() before")
        memory = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
        if memory and memory in owners:
            raise RuntimeError(f"Some tensors share memory: `{owners[memory]}` and `{name}`. Save one, or clones")
        owners[memory] = name
        values = tensor.detach().cpu().resolve_conj().resolve_neg()
        alive.append(values)
        described[name] = TensorSpec(
            dtype=str(values.dtype).rpartition(".")[2],
            shape=list(values.shape),
            data_ptr=values.data_ptr(),
            data_len=values.nbytes,
        )
    return described


def save(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors.

    Args:
        tensors: Contiguous tensors, each with memory of its own.
        metadata: Texts for the header.

    Returns:
        The bytes.

    Raises:
        RuntimeError: Two tensors share memory.
        ValueError: A value is no tensor, or not contiguous.
    """
    alive: list[Tensor] = []
    return bytes(serialize(_described(tensors, alive), metadata=metadata))


def save_file(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """As :func:`save`, into a file."""
    alive: list[Tensor] = []
    serialize_file(_described(tensors, alive), filename, metadata=metadata)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file.

    Args:
        data: The bytes.

    Returns:
        Tensors with memory of their own.
    """
    found = {}
    for name, what in deserialize(data):
        dtype, shape = _DTYPES[what["dtype"]], what["shape"]
        empty = not len(what["data"])
        values = rgrad.empty(0, dtype=dtype) if empty else rgrad.frombuffer(bytearray(what["data"]), dtype=dtype)
        found[name] = values.reshape(shape)
    return found


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, whose bytes are mapped: a part of a tensor reads that part of the file.

    Args:
        filename: The path.
        device: The device to put them on.

    Returns:
        The tensors.
    """
    found: dict[str, Tensor] = rgrad.load(filename, map_location=device)
    return found


def save_model(model: nn.Module, filename: str, metadata: dict[str, str] | None = None) -> None:
    """Save the state of a model. Of names for the same tensor the first in the alphabet is written.

    Args:
        model: The model.
        filename: The path.
        metadata: Texts for the header, to which the names that are left out are added.
    """
    kept: dict[int, str] = {}
    said = dict(metadata or {})
    tensors = {}
    for name, tensor in sorted(model.state_dict().items()):
        memory = tensor.data_ptr()
        if tensor.numel() and memory in kept and tensor.shape == tensors[kept[memory]].shape:
            said[name] = kept[memory]
            continue
        kept[memory] = name
        tensors[name] = tensor.contiguous()
    save_file(tensors, filename, said)


def load_model(
    model: nn.Module, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu"
) -> tuple[list[str], list[str]]:
    """Load what :func:`save_model` wrote.

    Args:
        model: The model.
        filename: The path.
        strict: Refuse a file with other names.
        device: The device to read to.

    Returns:
        The names that the file lacks, and those that the model lacks.

    Raises:
        RuntimeError: ``strict`` is set, and there are such names.
    """
    state = load_file(filename, device)
    own = model.state_dict()
    filled = {id_of: name for name in sorted(own) if name in state for id_of in [own[name].data_ptr()]}
    missing = [name for name in own if name not in state and own[name].data_ptr() not in filled]
    unexpected = [name for name in state if name not in own]
    if strict and (missing or unexpected):
        raise RuntimeError(f"Error(s) in loading state_dict: missing keys {missing}, unexpected keys {unexpected}")
    model.load_state_dict(state, strict=False)
    return missing, unexpected
