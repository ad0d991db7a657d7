"""Kinds of tensors that PyTorch has and rgrad has not: each question about them has the answer False."""

from __future__ import annotations

from .._core import Tensor

#: The attributes of ``Tensor``, each with what it asks.
ABSENT_KINDS = {
    "is_ipu": "is on an IPU",
    "is_maia": "is on a MAIA device",
    "is_mkldnn": "has a layout of oneDNN",
    "is_mps": "is on a device of Metal",
    "is_mtia": "is on an MTIA device",
    "is_nested": "is a nested one",
    "is_quantized": "is quantized",
    "is_vulkan": "is on a Vulkan device of PyTorch",
    "is_xla": "is on an XLA device",
    "is_xpu": "is on an XPU",
}


def install() -> None:
    """Give ``Tensor`` the attributes."""
    for name, asked in ABSENT_KINDS.items():
        setattr(Tensor, name, property(_never, doc=f"Whether the tensor {asked}: always False."))


def _never(tensor: Tensor) -> bool:
    return False
