"""Everything that is alive, by the lines that allocated it."""

from typing import Any, NamedTuple

from .. import _core
from .._runtime.lines import Line, line_of, module_of, number, percent, table
from ..autograd._owners import GraphOwner, graph_owners
from . import _usage

__all__ = ["Buffer", "DeviceMemory", "LineMemory", "MemoryReport", "report"]


class Buffer(NamedTuple):
    """A buffer that is alive.

    Attributes:
        device: The name of its device.
        key: What identifies the buffer on its device while it lives.
        bytes: What the allocator counts.
        line: The line that allocated it.
        module: The module whose forward did, where :func:`rgrad.memory.record` was running; else None.

    Example:
        >>> x = rgrad.zeros(8000, 4000)
        >>> rgrad.memory.report("cpu").devices["cpu"].buffers[0].bytes
        134217728
    """

    device: str
    key: int
    bytes: int
    line: Line
    module: str | None


class LineMemory(NamedTuple):
    """The buffers of one line.

    Attributes:
        line: The line.
        bytes: Their bytes together.
        buffers: Their number.

    Example:
        >>> x, y = (rgrad.zeros(1000, 1000) for _ in range(2))
        >>> rgrad.memory.report("cpu").devices["cpu"].lines[0].buffers
        2
    """

    line: Line
    bytes: int
    buffers: int


class DeviceMemory:
    """What is alive on one device.

    Args:
        device: The name of the device.

    Attributes:
        device: The name of the device.
        allocated: The bytes that the device's allocator counts. They are the sum of ``lines`` and ``small``.
        small: The bytes in buffers below 64 KB that were not recorded.
        peak: The most bytes at a time.
        reserved: ``allocated`` and what is kept for the next tensors.
        buffers: Every other buffer, the largest first.
        lines: The buffers by line, the largest first.

    Example:
        >>> found = rgrad.memory.report("cpu").devices["cpu"]
        >>> found.allocated == sum(entry.bytes for entry in found.lines) + found.small
        True
    """

    def __init__(self, device: str) -> None:
        self.device = device
        while True:
            before = _usage.allocated(device)
            rows = [row for row in _core._live_memory() if row[0] == device]
            # Another thread may allocate in between.
            if _usage.allocated(device) == before:
                break
        rows.sort(key=lambda row: (-row[2], row[4]))
        self.allocated = before
        self.peak = _usage.peak(device)
        self.reserved = _usage.reserved(device)
        self.buffers = [Buffer(name, key, size, line_of(site), module_of(site)) for name, key, size, site, _ in rows]
        self.small = before - sum(b.bytes for b in self.buffers)
        lines: dict[Line, list[int]] = {}
        for b in self.buffers:
            lines.setdefault(b.line, []).append(b.bytes)
        self.lines = [LineMemory(line, sum(sizes), len(sizes)) for line, sizes in lines.items()]
        self.lines.sort(key=lambda entry: -entry.bytes)

    def __str__(self) -> str:
        rows = [
            [number(entry.bytes), percent(entry.bytes, self.allocated), number(entry.buffers), str(entry.line)]
            for entry in self.lines
        ]
        if self.small:
            rows.append([number(self.small), percent(self.small, self.allocated), "", "smaller than 64 KB each"])
        head = (
            f"Memory on {self.device}: {number(self.allocated)} bytes allocated, {number(self.peak)} at most, "
            f"{number(self.reserved)} with what is kept for reuse"
        )
        return head + "\n" + table(("bytes", "share", "buffers", "line"), rows, left=(3,)) if rows else head


class MemoryReport:
    """What :func:`rgrad.memory.report` returns. As text it is a table for each device and the graphs that are alive.

    Args:
        devices: The names of the devices.
        graphs: Whether to look for what keeps graphs alive.

    Attributes:
        devices: The report of each device, by its name.
        graphs: What keeps graphs alive, the largest graph first.

    Example:
        >>> w = rgrad.ones(3, requires_grad=True)
        >>> held_loss = (w * w).sum()
        >>> found = rgrad.memory.report("cpu")
        >>> found.allocated == found.devices["cpu"].allocated > 0, len(found.graphs) > 0
        (True, True)
    """

    def __init__(self, devices: list[str], graphs: bool) -> None:
        self.devices = {device: DeviceMemory(device) for device in devices}
        self.graphs: list[GraphOwner] = graph_owners() if graphs else []

    @property
    def allocated(self) -> int:
        """The bytes of all devices together."""
        return sum(d.allocated for d in self.devices.values())

    def __str__(self) -> str:
        parts = [str(d) for d in self.devices.values()]
        if self.graphs:
            shown = [f"  {owner}" for owner in self.graphs[:10]]
            if len(self.graphs) > 10:
                shown.append(f"  and {number(len(self.graphs) - 10)} more")
            parts.append("\n".join(["Graphs that are kept alive", *shown]))
        return "\n".join(parts)

    __repr__ = __str__


def report(device: Any = None, *, graphs: bool = True) -> MemoryReport:
    """Report the memory that is alive.

    Buffers of 64 KB and more always know the line that allocated them. The others are one sum, unless
    :func:`rgrad.memory.record` was running when they were made. Memory of somebody else (NumPy arrays that tensors
    share) is not the allocator's and not in the report.

    Args:
        device: The device; by default every device in use.
        graphs: Whether to look for the variables that keep graphs alive, which takes time with the number of Python
            objects.

    Returns:
        The report: print it, or read its attributes. Its bytes are the allocator's.

    Raises:
        ValueError: Tensors of the device have no memory that is counted.
        RuntimeError: There is no such device.

    Example:
        >>> x = rgrad.zeros(1000, 1000)
        >>> r = rgrad.memory.report("cpu")
        >>> r.devices["cpu"].lines[0].bytes >= 4_000_000
        True
    """
    if device is not None:
        devices = [_usage.device_name(device)]
    else:
        devices = ["cpu", "wgpu"] if _core._wgpu_installed() else ["cpu"]
    return MemoryReport(devices, graphs)
