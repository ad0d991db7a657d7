"""``rgrad.Stream`` and ``rgrad.Event``: the CPU works in one order, so a stream of it has nothing to wait for."""

from __future__ import annotations

from typing import Any, Never, Self

from .. import _core


def _place(name: str, device: Any) -> Any:
    place = _core.device(device)
    if place.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"{name}: there are no streams of {str(place)!r}; work on a device is done in order. Expected 'cpu'; "
            f"synchronize() of the device's module waits for all work"
        )
    return place


class Stream:
    """An order of work. That of the CPU is the one in which the program runs; other devices have none to choose.

    Args:
        device: "cpu" or "meta".
        priority: Has no effect.

    Raises:
        RuntimeError: Another device is asked for, or none, and there is no accelerator with streams.

    Example:
        >>> with rgrad.Stream("cpu") as stream:
        ...     y = rgrad.ones(2)
        >>> stream.query()
        True
    """

    device: Any
    stream_id: int = 0

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Self:
        if device is None:
            raise RuntimeError(
                f"{cls.__name__}: there is no accelerator with streams. Give a device: {cls.__name__}('cpu')"
            )
        made = object.__new__(cls)
        made.device = _place(cls.__name__, device)
        return made

    def query(self) -> bool:
        """Whether all work of the stream is done: always True."""
        return True

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: what is before an event is done."""

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: the other stream's work is done."""

    def record_event(self, event: Any = None) -> Never:
        """Refuse: nothing is measured.

        Args:
            event: An event, or None for a new one.

        Raises:
            RuntimeError: Always.
        """
        _no_events(self.device)

    def is_capturing(self) -> bool:
        """Whether work is recorded in place of being done: never."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash((Stream, self.device))

    def __repr__(self) -> str:
        return f"rgrad.Stream device_type={self.device.type}, stream_id={self.stream_id}"


class Event:
    """A mark in a stream. It can be made and asked; no device records it, :mod:`rgrad.utils.benchmark` measures times.

    Args:
        device: "cpu" or "meta".
        enable_timing: Has no effect.
        blocking: Has no effect.
        interprocess: Has no effect.

    Raises:
        RuntimeError: Another device is asked for.
    """

    device: Any
    event_id: int = 0

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = _place(type(self).__name__, "cpu" if device is None else device)

    def record(self, stream: Any = None) -> None:
        """Refuse: nothing is measured.

        Args:
            stream: A stream.

        Raises:
            RuntimeError: Always.
        """
        _no_events(self.device)

    def wait(self, stream: Any = None) -> None:
        """Do nothing: what is before it is done."""

    def query(self) -> bool:
        """Whether all work before it is done: always True."""
        return True

    def synchronize(self) -> None:
        """Do nothing: all work before it is done."""

    def elapsed_time(self, end_event: Any) -> float:
        """Refuse: no event can be recorded.

        Args:
            end_event: Another event.

        Raises:
            ValueError: Always.
        """
        raise ValueError("Both events must be recorded before calculating elapsed time.")


def _no_events(device: Any) -> Never:
    raise RuntimeError(f"{device.type} backend doesn't support events; rgrad.utils.benchmark measures times")


Stream.__module__ = Event.__module__ = "rgrad"
