"""Memory shared with other libraries through DLPack."""

import enum
from typing import Any

from .._core import Tensor, _from_dlpack, device

__all__ = ["DLDeviceType", "from_dlpack"]


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of devices. rgrad shares memory of the host, and copies that of wgpu to it."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A tensor as a capsule of DLPack 0.8; most libraries' ``from_dlpack`` take the tensor itself.

    Args:
        tensor: A tensor of any shape, without history.

    Returns:
        A capsule, which :func:`from_dlpack` takes once.

    Raises:
        BufferError: The tensor requires grad, or is not on the CPU.

    Example:
        >>> capsule = rgrad.utils.dlpack.to_dlpack(rgrad.arange(3))
        >>> rgrad.from_dlpack(capsule)
        tensor([0, 1, 2])
    """
    return tensor.__dlpack__()


def from_dlpack(ext_tensor: Any, *, device: "device | str | None" = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array; each sees writes to the other.

    Memory that its library calls read-only is shared, and refuses in-place operations.

    Args:
        ext_tensor: An array with the methods ``__dlpack__`` and ``__dlpack_device__``, or a capsule.
        device: Where the tensor is to be; by default where the array is.
        copy: Whether to copy; by default only if it is necessary.

    Returns:
        A tensor of the same shape, strides and dtype.

    Raises:
        AssertionError: ``device`` or ``copy`` is given with a capsule.
        RuntimeError: The capsule has been taken already, or its device, dtype or strides are none of rgrad's.
        TypeError: ``ext_tensor`` is neither.
        ValueError: ``copy`` is False, but ``device`` is another.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(3)
        >>> rgrad.from_dlpack(array)[0] = 1
        >>> float(array[0])
        1.0
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if type(ext_tensor).__name__ != "PyCapsule":
            raise TypeError(
                f"from_dlpack: expected an array with a method __dlpack__ or a capsule, got {type(ext_tensor).__name__}"
            )
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _from_dlpack(ext_tensor)
    where = tuple(ext_tensor.__dlpack_device__())
    moves = device is not None and where != _number(device)
    if moves and copy is False:
        raise ValueError(
            f"cannot move DLPack tensor from device {where} to {device} without copying. Set copy=None or copy=True."
        )
    wants: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        wants["copy"] = copy
    if where[0] == DLDeviceType.kDLWebGPU:
        # The memory of such a device has no address: what can be shared is a copy on the host.
        wants["dl_device"], moves = (DLDeviceType.kDLCPU, 0), True
        device = "wgpu" if device is None else device
    # Older libraries take fewer arguments.
    for dropped in ("", "max_version", "copy", "dl_device"):
        wants.pop(dropped, None)
        try:
            capsule = ext_tensor.__dlpack__(**wants)
            break
        except TypeError:
            if dropped == "dl_device":
                raise
    made = _from_dlpack(capsule)
    if moves:
        return made.to(device)
    return made.clone() if copy and "copy" not in wants else made


def _number(given: "device | str") -> tuple[DLDeviceType, int]:
    """DLPack's number of a device of rgrad."""
    kind = device(given).type
    if kind == "wgpu":
        return DLDeviceType.kDLWebGPU, 0
    if kind == "cpu":
        return DLDeviceType.kDLCPU, 0
    raise ValueError(f"from_dlpack: DLPack has no device {kind}")
