"""The memory of tensors as NumPy arrays of a type that every NumPy has.

bfloat16 and complex32, which NumPy has not, are the integers that their bits are.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor


def kind_of(dtype: str) -> str:
    """The name of NumPy's type in which elements of a dtype are kept."""
    return {"bfloat16": "uint16", "complex32": "uint32"}.get(dtype, dtype)


def array_of(tensor: Tensor) -> Any:
    """The elements of a tensor as they lie in memory of the CPU; bfloat16 as uint16, complex32 as uint32.

    The tensor has no history, and is no lazy conjugate or negative.
    """
    if tensor.dtype == _core.complex32:
        return tensor.view(_core.int32).numpy().view("uint32")
    if tensor.dtype != _core.bfloat16:
        return tensor.numpy()
    import numpy as np

    # A bfloat16 is the upper half of a float32.
    flat = tensor.float().numpy()
    return (flat.reshape(-1).view(np.uint32) >> 16).astype(np.uint16).reshape(flat.shape)


def lazy_bits(tensor: Tensor) -> list[str]:
    """What a lazy conjugate or negative does to the elements in memory, by name."""
    return ["conj"] * tensor.is_conj() + ["neg"] * tensor.is_neg()


def with_lazy_bits(tensor: Tensor, names: list[str]) -> Tensor:
    """The elements of ``tensor`` read lazily as ``names`` says, without history."""
    for name in names:
        tensor = (tensor.conj() if name == "conj" else tensor._neg_view()).detach()
    return tensor


def in_memory(tensor: Tensor) -> Tensor:
    """The elements as they lie in memory, without lazy conjugation and negation and without history."""
    return with_lazy_bits(tensor.detach(), lazy_bits(tensor))


def tensor_of(array: Any, dtype: str) -> Tensor:
    """The tensor that ``array_of`` was given, in memory of its own or that of the array."""
    if dtype == "complex32":
        return _core.from_numpy(array.view("int32")).view(_core.complex32)
    if dtype != "bfloat16":
        return _core.from_numpy(array)
    import numpy as np

    wide: Any = np.left_shift(array.reshape(-1).astype(np.uint32), 16)
    return _core.from_numpy(wide.view(np.float32).reshape(array.shape)).to(_core.bfloat16)
