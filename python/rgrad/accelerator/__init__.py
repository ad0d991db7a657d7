"""The accelerator under PyTorch's names: the GPU that the device "wgpu" uses, if there is one.

A software adapter of WebGPU computes on the CPU and is no accelerator.
"""

from importlib import import_module
from types import ModuleType
from typing import Any, Never, Self

from .. import _core, wgpu
from .. import memory as _memory
from .._runtime.no_device import Refused, answering

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

_ANSWERS = {
    "class Graph": Refused(RuntimeError, "Graph is not supported on device type: wgpu; rgrad.compile records steps"),
    "empty_host_cache()": None,
    "get_device_capability(device=None, /)": Refused(
        NotImplementedError, "accelerator.{name}: WebGPU has no capability number; see rgrad.wgpu.devices()"
    ),
    "get_memory_info(device_index=None, /)": Refused(
        NotImplementedError, "accelerator.{name}: WebGPU does not tell how much memory a device has"
    ),
    "reset_accumulated_memory_stats(device_index=None, /)": None,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS, ("memory",))


def is_available() -> bool:
    """Whether there is a GPU that tensors can be on. It may start the search for adapters."""
    try:
        return wgpu.is_available() and any(not wgpu._adapters.is_software(adapter.info) for adapter in wgpu.devices())
    except RuntimeError:
        return False


def device_count() -> int:
    """1 with a GPU, 0 without."""
    return int(is_available())


def current_accelerator(check_available: bool = False) -> _core.device | None:
    """The device ``"wgpu"``.

    Args:
        check_available: Give None where :func:`is_available` is False.
    """
    return None if check_available and not is_available() else _core.device("wgpu")


def _check(index: Any) -> None:
    if not isinstance(index, int):
        index = _core.device(index).index or 0
    if not is_available():
        raise RuntimeError("rgrad.accelerator: there is no accelerator. Ask accelerator.is_available() first")
    if index > 0:
        raise RuntimeError(f"rgrad.accelerator: invalid device ordinal {index}: there is one device, of index 0")


def current_device_index() -> int:
    """The index of the current device, which is 0.

    Raises:
        RuntimeError: There is no accelerator.
    """
    _check(0)
    return 0


def set_device_index(device: Any, /) -> None:
    """Do nothing for the device 0, and for negative indices.

    Raises:
        RuntimeError: There is no accelerator, or no such device.
    """
    if not (isinstance(device, int) and device < 0):
        _check(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index:
    """A context with another current device. There is only one, so it has no effect.

    Args:
        device: Its index, or None.

    Raises:
        RuntimeError: There is no such device; raised at the start of the context.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> Self:
        if self.idx is not None:
            set_device_index(self.idx)
        return self

    def __exit__(self, *exc: object) -> None:
        return None


def current_stream(device: Any = None, /) -> Never:
    """Refuse: work is done in one order, there are no streams.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError("rgrad.accelerator.current_stream: there are no streams; work on the device is done in order")


def set_stream(stream: Any) -> Never:
    """Refuse: work is done in one order, there are no streams.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError("rgrad.accelerator.set_stream: there are no streams; work on the device is done in order")


def synchronize(device: Any = None, /) -> None:
    """Wait until the GPU has done all work that was given to it.

    Raises:
        RuntimeError: There is no accelerator.
    """
    _check(0 if device is None else device)
    wgpu.synchronize()


def empty_cache() -> None:
    """Give memory of the device that is kept for reuse back to the system."""
    wgpu.empty_cache()


def memory_allocated(device_index: Any = None, /) -> int:
    """The bytes that tensors hold now on the device."""
    return _memory.allocated("wgpu")


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that tensors have held at a time since :func:`reset_peak_memory_stats`."""
    return _memory.peak("wgpu")


def memory_reserved(device_index: Any = None, /) -> int:
    """The bytes that tensors hold now and those that are kept for the next ones."""
    return _memory.reserved("wgpu")


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The larger one of :func:`max_memory_allocated` and :func:`memory_reserved`."""
    return _memory.max_memory_reserved("wgpu")


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """The bytes held and reserved, now and at most, under PyTorch's keys."""
    return _memory.memory_stats("wgpu")


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Let :func:`max_memory_allocated` begin anew with the bytes that are held now."""
    _memory.reset_peak("wgpu")


def get_device_module(device: Any = None) -> ModuleType:
    """Find the module of a device, such as :mod:`rgrad.cpu`.

    Args:
        device: A device or its name; the accelerator if None, and the CPU where there is none.

    Raises:
        RuntimeError: It is neither, or the device has no module.

    Example:
        >>> rgrad.get_device_module("cpu") is rgrad.cpu
        True
    """
    if device is None:
        kind = "wgpu" if is_available() else "cpu"
    elif isinstance(device, _core.device | str):
        kind = _core.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    try:
        return import_module(f"rgrad.{kind}")
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from error
