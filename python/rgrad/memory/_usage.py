"""How much memory tensors hold on a device."""

from typing import Any

from .. import _core, wgpu

__all__ = ["allocated", "peak", "reserved", "reset_peak"]


def device_name(device: Any) -> str:
    """The name of a device, by default of the one on which tensors are made by default.

    Args:
        device: None, a name, a ``device``, or an index.

    Raises:
        ValueError: Tensors of the device have no memory that is counted.
        RuntimeError: There is no such device.
    """
    chosen = _core.get_default_device() if device is None or isinstance(device, int) else _core.device(device)
    if chosen.type not in ("cpu", "wgpu"):
        raise ValueError(
            f"memory: tensors on {chosen.type} hold no memory that is counted; the devices are cpu and wgpu"
        )
    return str(chosen.type)


def allocated(device: Any = None) -> int:
    """The bytes that tensors hold now on a device.

    Args:
        device: The device, by default the one on which tensors are made by default.

    Returns:
        The bytes that the device's allocator counts.

    Raises:
        ValueError: Tensors of the device have no memory that is counted.

    Example:
        >>> before = rgrad.memory.allocated("cpu")
        >>> x = rgrad.zeros(1000, 1000)
        >>> rgrad.memory.allocated("cpu") - before
        4194304
    """
    return int(_core.memory_allocated() if device_name(device) == "cpu" else wgpu.memory_allocated())


def peak(device: Any = None) -> int:
    """The most bytes that tensors have held at a time since the start, or since :func:`reset_peak`.

    Args:
        device: As for :func:`allocated`.

    Returns:
        The bytes.

    Example:
        >>> rgrad.memory.peak("cpu") >= rgrad.memory.allocated("cpu")
        True
    """
    return int(_core.max_memory_allocated() if device_name(device) == "cpu" else wgpu.max_memory_allocated())


def reset_peak(device: Any = None) -> None:
    """Let :func:`peak` begin anew with the bytes that are held now.

    Args:
        device: As for :func:`allocated`.

    Example:
        >>> rgrad.memory.reset_peak("cpu")
        >>> rgrad.memory.peak("cpu") == rgrad.memory.allocated("cpu")
        True
    """
    if device_name(device) == "cpu":
        _core.reset_peak_memory_stats()
    else:
        wgpu.reset_peak_memory_stats()


def reserved(device: Any = None) -> int:
    """The bytes that tensors hold now and those that are kept for the next ones.

    Args:
        device: As for :func:`allocated`.

    Returns:
        The bytes.

    Example:
        >>> rgrad.memory.empty_cache()
        >>> rgrad.memory.reserved("cpu") == rgrad.memory.allocated("cpu")
        True
    """
    idle = _core._memory_idle() if device_name(device) == "cpu" else _core._wgpu_memory()[2]
    return allocated(device) + int(idle)
