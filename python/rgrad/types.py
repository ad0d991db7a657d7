"""Names for annotations, as ``torch.types`` has them."""

import os
from typing import IO, Any, Self, Union

from . import _core
from ._core import Size, Tensor
from ._core import UntypedStorage as Storage
from ._runtime import layouts as _layouts

_device, _dtype = _core.device, _core.dtype
_layout = _layouts.layout
_Number = (int, float, bool)
_int, _float, _bool, _complex, _bytes, _str = int, float, bool, complex, bytes, str
Number = int | float | bool
FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
_size = Size | list[int] | tuple[int, ...]
_symsize = _size
_TensorOrTensors = Tensor | tuple[Tensor, ...]
_TensorOrOptionalTensors = Tensor | tuple[Tensor | None, ...]
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool

__all__ = ["Any", "Device", "FileLike", "Number", "Self", "Size", "Storage", "Tensor", "Union"]
