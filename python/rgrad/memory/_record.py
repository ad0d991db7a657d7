"""Recording allocations and frees."""

from typing import TYPE_CHECKING

from .. import _core
from ._snapshot import Snapshot

if TYPE_CHECKING:
    from ..nn.modules._running_modules import RunningModules
    from ._modules import Named

__all__ = ["Recording", "record", "snapshot"]

_last: "Recording | None" = None


class Recording:
    """What :class:`record` yields. It can be read in the block and after it.

    Example:
        >>> with rgrad.memory.record() as recording:
        ...     x = rgrad.zeros(1000, 1000)
        >>> recording.peak == recording.snapshot().peak
        True
    """

    def __init__(self) -> None:
        self._end: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """What was recorded: until now in the block, all of it after the block.

        Returns:
            The timeline.
        """
        if self._end is not None:
            return self._end
        return Snapshot.now()

    @property
    def peak(self) -> int:
        """The most bytes at a time, all devices together."""
        return self.snapshot().peak

    def peak_by(self, by: str = "line") -> list[tuple[str, int]]:
        """What was held when the most bytes were held, as :meth:`Snapshot.peak_by`.

        Args:
            by: "line", "module" or "device".

        Returns:
            Names and bytes, the largest first.
        """
        return self.snapshot().peak_by(by)

    def __str__(self) -> str:
        return str(self.snapshot())

    def _finish(self) -> None:
        self._end = Snapshot.now()


class record:
    """A block in which every allocation and free is recorded, with its line and module.

    It concerns all threads and devices. In the block :func:`report` knows the lines of small memory, too. An allocation
    and its free cost some 300 ns more.

    Args:
        modules: Whether to record which module of a model allocates. Modules then run with hooks.
        max_entries: The latest so many allocations and frees are kept.

    Yields:
        A :class:`Recording`; ``print`` it, or see :meth:`Recording.snapshot`.

    Raises:
        RuntimeError: Memory is being recorded already.
        ValueError: ``max_entries`` is not positive.

    Example:
        >>> with rgrad.memory.record() as recording:
        ...     x = rgrad.ones(8000, 4000)
        ...     y = x.sum(0)
        >>> recording.peak_by("line")[0][1] >> 20
        128
    """

    def __init__(self, *, modules: bool = True, max_entries: int = 1_000_000) -> None:
        if isinstance(max_entries, bool) or not isinstance(max_entries, int):
            raise TypeError(f"memory.record: max_entries must be an int, not {type(max_entries).__name__}")
        if max_entries < 1:
            raise ValueError(f"memory.record: max_entries must be positive, not {max_entries}")
        self.modules = modules
        self.max_entries = max_entries
        self._recording: Recording | None = None
        self._names: RunningModules[Named] | None = None

    def __enter__(self) -> Recording:
        global _last
        _core._start_memory_recording(self.max_entries, self.modules)
        if self.modules:
            from ._modules import module_names

            self._names = module_names()
        self._recording = _last = Recording()
        return self._recording

    def __exit__(self, *exc: object) -> None:
        try:
            if self._recording is not None:
                self._recording._finish()
        finally:
            _core._stop_memory_recording()
            if self._names is not None:
                self._names.stop()


def snapshot() -> Snapshot:
    """What the recording that runs has seen until now, or the last one until its end.

    Returns:
        The timeline, with pictures.

    Raises:
        RuntimeError: Nothing was recorded.

    Example:
        >>> with rgrad.memory.record():
        ...     x = rgrad.ones(1000, 1000)
        >>> rgrad.memory.snapshot().svg("line").startswith("<svg")
        True
    """
    if _last is None:
        raise RuntimeError("memory.snapshot: nothing was recorded; run the code in `with rgrad.memory.record():` first")
    return _last.snapshot()
