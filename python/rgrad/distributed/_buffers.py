"""Bytes of tensors for messages, and tensors of messages."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..autograd.graph import increment_version
from ._mpi import Bytes


class Lent:
    """A tensor's elements in host memory, one after the other: the tensor's own memory where that is possible.

    Args:
        tensor: On any device, of any layout and dtype.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        plain = tensor.detach()
        if plain.device.type != "cpu":
            plain = plain.cpu()
        self.flat = plain.resolve_conj().resolve_neg().contiguous().reshape(-1)
        self.shared = tensor.device.type == "cpu" and self.flat.data_ptr() == tensor.data_ptr()

    @property
    def bytes(self) -> Bytes:
        """Its memory."""
        return bytes_of(self.flat)

    def written(self) -> None:
        """What was written to the memory becomes the tensor's elements."""
        if self.shared:
            if not self.tensor.is_inference():
                increment_version(self.tensor)
        else:
            with no_grad():
                self.tensor.detach().copy_(self.flat.reshape(self.tensor.shape))


def bytes_of(flat: Tensor) -> Bytes:
    """The memory of a tensor of one dimension."""
    array: Any = flat.view(_core.uint8).numpy()
    return array  # type: ignore[no-any-return]


def room_for(count: int, dtype: Any) -> Tensor:
    """Memory for so many elements."""
    return _core.empty([count], dtype=dtype, device="cpu", requires_grad=False)


def name_of(dtype: Any) -> str:
    """The name of a dtype without its module."""
    return str(dtype).rpartition(".")[2]


def put(target: Tensor, flat: Tensor) -> None:
    """Copy elements into a tensor of any shape."""
    with no_grad():
        target.detach().copy_(flat.reshape(target.shape))
