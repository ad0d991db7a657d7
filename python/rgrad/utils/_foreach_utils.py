"""Tensors in groups of one device and dtype, for optimizers that call ``_foreach_*``."""

from __future__ import annotations

from typing import Any

from .._core import Tensor, device, dtype

_Groups = dict[tuple[device, dtype], tuple[list[list[Any]], list[int]]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices on which ``_foreach_*`` are faster than a loop: none here, where they are loops."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices whose optimizers fuse their steps."""
    return ["cpu", "wgpu"]


def _device_has_foreach_support(device: device) -> bool:
    """Whether ``_foreach_*`` take tensors of a device."""
    return device.type in ("cpu", "wgpu")


def _has_foreach_support(tensors: list[Tensor], device: device) -> bool:
    """Whether ``_foreach_*`` take these tensors."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> _Groups:
    """Lists of tensors, split into groups by device and dtype of the tensors of the first list.

    Args:
        tensorlistlist: Lists of one length; those behind the first may be empty, and may hold None.
        with_indices: Whether the places in the lists are told, too.

    Returns:
        For each device and dtype the lists, and the places.
    """
    found: _Groups = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, given in zip(lists, tensorlistlist, strict=True):
            if given:
                into.append(given[place])
        if with_indices:
            places.append(place)
    return found
