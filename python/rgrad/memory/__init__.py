"""Memory of tensors: how much there is on each device, which lines hold it, and how it changes.

:func:`report` lists what is alive, :class:`record` and :func:`snapshot` show how it came to be. What one graph holds
is in :func:`rgrad.autograd.graph.memory_report`. The functions that PyTorch has in ``torch.cuda`` are here under their
names, too.
"""

from collections import OrderedDict
from typing import Any

from .. import _core, wgpu
from ._record import Recording, record, snapshot
from ._report import Buffer, DeviceMemory, LineMemory, MemoryReport, report
from ._snapshot import MemoryEvent, Snapshot
from ._usage import allocated, device_name, peak, reserved, reset_peak

__all__ = [
    "Buffer",
    "DeviceMemory",
    "LineMemory",
    "MemoryEvent",
    "MemoryReport",
    "Recording",
    "Snapshot",
    "allocated",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "peak",
    "record",
    "report",
    "reserved",
    "reset_max_memory_allocated",
    "reset_peak",
    "reset_peak_memory_stats",
    "snapshot",
]

memory_allocated = allocated
max_memory_allocated = peak
reset_peak_memory_stats = reset_peak
reset_max_memory_allocated = reset_peak
memory_reserved = reserved


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that are known to have been reserved: the larger one of :func:`peak` and :func:`reserved`.

    Args:
        device: As for :func:`allocated`.

    Returns:
        The bytes.

    Example:
        >>> rgrad.memory.max_memory_reserved("cpu") >= rgrad.memory.peak("cpu")
        True
    """
    return max(peak(device), reserved(device))


def memory_stats(device: Any = None) -> "OrderedDict[str, int]":
    """The bytes held and reserved, now and at most, under PyTorch's keys.

    Args:
        device: As for :func:`allocated`.

    Returns:
        A dict from "allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current" and
        "reserved_bytes.all.peak" to bytes.

    Example:
        >>> rgrad.memory.memory_stats("cpu")["allocated_bytes.all.current"] == rgrad.memory.allocated("cpu")
        True
    """
    return OrderedDict(
        [
            ("allocated_bytes.all.current", allocated(device)),
            ("allocated_bytes.all.peak", peak(device)),
            ("reserved_bytes.all.current", reserved(device)),
            ("reserved_bytes.all.peak", max_memory_reserved(device)),
        ]
    )


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The text of :func:`report` for one device.

    Args:
        device: As for :func:`allocated`.
        abbreviated: Leave out the lines.

    Returns:
        The text.

    Example:
        >>> rgrad.memory.memory_summary("cpu", abbreviated=True)[:14]
        'Memory on cpu:'
    """
    text = str(report(device_name(device), graphs=False))
    return text.splitlines()[0] if abbreviated else text


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the system, on all devices.

    Example:
        >>> rgrad.memory.empty_cache()
        >>> rgrad.memory.reserved("cpu") - rgrad.memory.allocated("cpu")
        0
    """
    _core.empty_cache()
    if _core._wgpu_installed():
        wgpu.empty_cache()
