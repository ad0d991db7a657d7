"""The memory of tensors as NumPy arrays of a type that every NumPy has: bfloat16 as the integers that its bits are."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor


def array_of(tensor: Tensor) -> Any:
    """The elements of a tensor on the CPU without history; bfloat16 as uint16."""
    if tensor.dtype != _core.bfloat16:
        return tensor.numpy()
    import numpy as np

    # A bfloat16 is the upper half of a float32.
    flat = tensor.float().numpy()
    return (flat.reshape(-1).view(np.uint32) >> 16).astype(np.uint16).reshape(flat.shape)


def tensor_of(array: Any, dtype: str) -> Tensor:
    """The tensor that ``array_of`` was given, in memory of its own or that of the array."""
    if dtype != "bfloat16":
        return _core.from_numpy(array)
    import numpy as np

    wide: Any = np.left_shift(array.reshape(-1).astype(np.uint32), 16)
    return _core.from_numpy(wide.view(np.float32).reshape(array.shape)).to(_core.bfloat16)
