"""Converting the weights of convolutions alone to a memory format."""

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

_Module = TypeVar("_Module", bound=Module)


def _converted(module: _Module, kinds: tuple[type[Module], ...], memory_format: Any) -> _Module:
    for inner in module.modules():
        if isinstance(inner, kinds):
            weight: Any = inner.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: _Module, memory_format: Any) -> _Module:
    """Convert the weights of all :class:`Conv2d` and :class:`ConvTranspose2d` in a module to a memory format.

    Args:
        module: The module; other parameters stay as they are.
        memory_format: Such as ``rgrad.channels_last``.

    Returns:
        The module.

    Example:
        >>> net = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 2), rgrad.channels_last)
        >>> net.weight.is_contiguous(memory_format=rgrad.channels_last)
        True
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: _Module, memory_format: Any) -> _Module:
    """Convert the weights of all :class:`Conv3d` and :class:`ConvTranspose3d` in a module to a memory format.

    Args:
        module: The module; other parameters stay as they are.
        memory_format: Such as ``rgrad.channels_last_3d``.

    Returns:
        The module.

    Example:
        >>> net = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(3, 4, 2), rgrad.channels_last_3d)
        >>> net.weight.is_contiguous(memory_format=rgrad.channels_last_3d)
        True
    """
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)
