"""What a recording has seen: events, totals over time, the peak by line or module."""

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from .. import _core
from .._runtime.lines import Line, line_of, module_of, number, percent, table
from .._runtime.whole_files import text_written_whole
from . import _picture, _usage

__all__ = ["MemoryEvent", "Snapshot"]

_OLDER = "older or unknown"


class MemoryEvent(NamedTuple):
    """An allocation or a free.

    Attributes:
        seconds: The time since the recording began.
        action: "alloc" or "free".
        device: The name of the device.
        key: What identifies the buffer on its device while it lives.
        bytes: What the allocator counts.
        line: The line that allocated it, also of a free; "unknown line" for small memory that is older.
        module: The module whose forward allocated it, or None.

    Example:
        >>> with rgrad.memory.record() as recording:
        ...     x = rgrad.zeros(1000, 1000)
        >>> [(e.action, e.bytes) for e in recording.snapshot().events]
        [('alloc', 4194304)]
    """

    seconds: float
    action: str
    device: str
    key: int
    bytes: int
    line: Line
    module: str | None


# Seconds, device, key, bytes, site, whether it is a free: as the core gives it, but for the time.
_Row = tuple[float, str, int, int, int, bool]


def _by_line(device: str, site: int) -> str:
    return str(line_of(site)) if site else _OLDER


def _by_module(device: str, site: int) -> str:
    if not site:
        return _OLDER
    return module_of(site) or "outside of modules"


def _by_device(device: str, site: int) -> str:
    return device


_GROUPS: dict[str, Callable[[str, int], str]] = {"line": _by_line, "module": _by_module, "device": _by_device}


class Snapshot:
    """What :func:`rgrad.memory.snapshot` returns. As text it is the table of the peak by line.

    Args:
        rows: The events as the core gives them.
        start: The bytes before the first event, by device and number of the call site.
        left_out: How many older events there were.

    Attributes:
        allocated: The bytes at the end, by device.
        left_out: How many of the oldest events are missing, because there were more than ``max_entries``.

    Example:
        >>> with rgrad.memory.record() as recording:
        ...     x = rgrad.zeros(1000, 1000)
        ...     del x
        >>> snapshot = recording.snapshot()
        >>> snapshot.peak - snapshot.timeline[-1][1]
        4194304
    """

    def __init__(self, rows: list[_Row], start: dict[tuple[str, int], int], left_out: int) -> None:
        self._rows = rows
        self._start = start
        self.left_out = left_out
        self.allocated: dict[str, int] = {}
        for (device, _), size in start.items():
            self.allocated[device] = self.allocated.get(device, 0) + size
        for _, device, _, size, _, freed in rows:
            self.allocated[device] = self.allocated.get(device, 0) + (-size if freed else size)

    @classmethod
    def now(cls) -> "Snapshot":
        """What the recording that runs has seen.

        Returns:
            The snapshot.

        Raises:
            RuntimeError: None runs.
        """
        devices = ["cpu", "wgpu"] if _core._wgpu_installed() else ["cpu"]
        while True:
            found = _core._memory_recording()
            if found is None:
                raise RuntimeError("memory: no recording runs")
            live = _core._live_memory()
            held = {device: _usage.allocated(device) for device in devices}
            again = _core._memory_recording()
            # Another thread may allocate in between.
            if again is not None and (len(again[1]), again[2]) == (len(found[1]), found[2]):
                break
        _, events, left_out = found
        # The state at the first event: that of now, with every event undone. Memory without an entry is older.
        start: dict[tuple[str, int], int] = {}
        for device, _, size, site, _ in live:
            start[device, site] = start.get((device, site), 0) + size
            held[device] = held.get(device, 0) - size
        for device, size in held.items():
            start[device, 0] = start.get((device, 0), 0) + size
        for _, device, _, size, site, freed in events:
            start[device, site] = start.get((device, site), 0) + (size if freed else -size)
        rows = [(time / 1e9, device, key, size, site, freed) for time, device, key, size, site, freed in events]
        return cls(rows, start, left_out)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def events(self) -> list[MemoryEvent]:
        """Every allocation and free, in order."""
        return [
            MemoryEvent(time, "free" if freed else "alloc", device, key, size, line_of(site), module_of(site))
            for time, device, key, size, site, freed in self._rows
        ]

    def _totals(self) -> Iterator[tuple[float, int]]:
        total = sum(self._start.values())
        yield 0.0, total
        for time, _, _, size, _, freed in self._rows:
            total += -size if freed else size
            yield time, total

    @property
    def timeline(self) -> list[tuple[float, int]]:
        """Seconds since the start and bytes on all devices, at the start and after each event."""
        return list(self._totals())

    @cached_property
    def _peak(self) -> tuple[int, int]:
        """The most bytes, and after how many events they were held first."""
        at, most = 0, -1
        for k, (_, total) in enumerate(self._totals()):
            if total > most:
                at, most = k, total
        return most, at

    @property
    def peak(self) -> int:
        """The most bytes at a time, all devices together."""
        return self._peak[0]

    def groups(self, by: str, events: int) -> dict[str, int]:
        """The bytes after so many events, by line, module or device.

        Args:
            by: "line", "module" or "device".
            events: The number of events.

        Returns:
            The bytes of each group.

        Raises:
            ValueError: Memory is not grouped by that.
        """
        name = _group(by)
        found: dict[str, int] = {}
        for (device, site), size in self._start.items():
            key = name(device, site)
            found[key] = found.get(key, 0) + size
        for _, device, _, size, site, freed in self._rows[:events]:
            key = name(device, site)
            found[key] = found.get(key, 0) + (-size if freed else size)
        return found

    def peak_by(self, by: str = "line") -> list[tuple[str, int]]:
        """What was held when the most bytes were held.

        Args:
            by: "line", "module" or "device".

        Returns:
            Names and bytes, the largest first. The bytes add up to :attr:`peak`.

        Raises:
            ValueError: Memory is not grouped by that.
        """
        at = self.groups(by, self._peak[1])
        return sorted(((name, size) for name, size in at.items() if size), key=lambda pair: -pair[1])

    def svg(self, by: str = "line", *, top: int = 8, width: int = 900, height: int = 420) -> str:
        """Draw the bytes over time as stacked areas.

        Args:
            by: "line", "module" or "device".
            top: So many groups have an area of their own, those that held most at a time; the rest is one.
            width: The picture's width in pixels, at least 300.
            height: Its height, at least 200.

        Returns:
            The text of an SVG.

        Raises:
            ValueError: Memory is not grouped by that, or the picture is too small.
        """
        name = _group(by)
        if width < 300 or height < 200 or top < 1:
            raise ValueError(
                f"memory.Snapshot.svg: got width {width}, height {height}, top {top}; the picture is at least "
                "300 x 200 pixels and shows at least one group"
            )
        start: dict[str, int] = {}
        for (device, site), size in self._start.items():
            key = name(device, site)
            start[key] = start.get(key, 0) + size
        changes = [
            (time, name(device, site), -size if freed else size) for time, device, _, size, site, freed in self._rows
        ]
        return _picture.stacked_areas(start, changes, f"Memory by {by}", top, width, height)

    def save(self, path: "str | os.PathLike[str]", by: str = "line", **options: int) -> None:
        """Write the picture to a file.

        Args:
            path: The file, by custom with the ending ".svg".
            by: "line", "module" or "device".
            **options: Those of :meth:`svg`.
        """
        with text_written_whole(path) as file:
            file.write(self.svg(by, **options))

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        rows = [[number(size), percent(size, self.peak), name] for name, size in self.peak_by("line")]
        seconds = self._rows[-1][0] if self._rows else 0.0
        head = (
            f"{number(self.peak)} bytes at the peak; {number(len(self._rows))} allocations and frees in {seconds:.3f} s"
        )
        if self.left_out:
            head += f", {number(self.left_out)} older ones left out"
        return head + "\n" + table(("bytes", "share", "line"), rows, left=(2,))

    __repr__ = __str__


def _group(by: str) -> Callable[[str, int], str]:
    if by not in _GROUPS:
        raise ValueError(f"memory.Snapshot: memory is grouped by 'line', 'module' or 'device', not {by!r}")
    return _GROUPS[by]
