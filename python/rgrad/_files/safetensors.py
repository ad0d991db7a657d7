"""Reading ``.safetensors`` files: a header in JSON, and the elements of tensors one after the other, little endian.

The elements are mapped, so those that nobody looks at are not read. What the header says is compared with the file
first: the tensors must fill it, without holes and without overlaps.
"""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor.untyped_storage import mapped_bytes
from .archive_reader import as_damage
from .rebuild import MOST_DIMENSIONS, NotHere

#: The most bytes of a header that the format allows.
_MOST_HEADER = 100_000_000
_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}


def load_file(path: str | os.PathLike[str], map_location: Any = None) -> dict[str, Tensor]:
    """All tensors of a file.

    Args:
        path: The path.
        map_location: The device to put them on; None for the CPU.

    Raises:
        RuntimeError: The file is damaged, or ``map_location`` is a dict or a function.
        NotImplementedError: It has a tensor of a dtype that rgrad has not.
        EOFError: It is empty.
        OSError: It cannot be read.
    """
    if isinstance(map_location, dict) or (callable(map_location) and not isinstance(map_location, _core.device)):
        raise RuntimeError(
            "load: a .safetensors file names no devices, so map_location must be a device or its name, not "
            f"{type(map_location).__name__}"
        )
    size = os.stat(path).st_size
    if not size:
        raise EOFError(f"load: {os.fspath(path)} is empty")
    raw = mapped_bytes(path, False, size)
    with as_damage(os.fspath(path)):
        header, start = _header(raw, size)
        return {name: _tensor(raw, start, what, map_location) for name, what in header.items()}


def _header(raw: Tensor, size: int) -> tuple[dict[str, Any], int]:
    """What describes the tensors, and where their bytes begin."""
    values: Any = raw.numpy()
    data = memoryview(values)
    length = int.from_bytes(data[:8], "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise ValueError(f"the header is said to have {length} bytes, the file has {size}")
    found = json.loads(bytes(data[8 : 8 + length]))
    if type(found) is not dict:
        raise ValueError("the header is no object of JSON")
    found.pop("__metadata__", None)
    place = 0
    for name, what in sorted(found.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = what["data_offsets"]
        if type(begin) is not int or type(end) is not int or begin != place or end < begin:
            raise ValueError(f"tensor {name[:60]!r} lies at {begin} to {end}, expected it to begin at {place}")
        place = end
    if place != size - 8 - length:
        raise ValueError(f"the tensors end at byte {place}, the file has {size - 8 - length} bytes for them")
    return found, 8 + length


def _tensor(raw: Tensor, start: int, what: dict[str, Any], device: Any) -> Tensor:
    kind, shape, (begin, end) = what["dtype"], what["shape"], what["data_offsets"]
    if kind not in _DTYPES:
        raise NotHere(f"load: the file has a tensor of dtype {str(kind)[:60]}, which rgrad does not read")
    dtype = getattr(_core, _DTYPES[kind])
    if type(shape) is not list or len(shape) > MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"a tensor has shape {str(shape)[:200]}")
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(
            f"a tensor of {kind} {shape} needs {math.prod(shape) * dtype.itemsize} bytes, got {end - begin}"
        )
    if begin == end:
        return _core.empty(shape, dtype=dtype, device=device)
    part = raw[start + begin : start + end]
    if part.storage_offset() % dtype.itemsize:
        part = part.clone()
    if sys.byteorder == "big":
        part = part.clone()
        part.numpy().view(f"uint{8 * (4 if kind == 'C64' else dtype.itemsize)}").byteswap(inplace=True)
    found = part.view(dtype).reshape(shape)
    return found.detach() if device is None else found.to(device)
