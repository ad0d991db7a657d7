"""What portable code asks of the CPU as a device."""

from . import amp

__all__ = [
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Always True."""
    return True


def device_count() -> int:
    """Always 1."""
    return 1


def current_device() -> str:
    """Always ``"cpu"``."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Do nothing: results are there when they are read."""


def is_initialized() -> bool:
    """Always True."""
    return True


def set_device(device: object) -> None:
    """Do nothing: there is one CPU."""


class Stream:
    """Stands for the order in which the CPU works. It has no effect.

    Args:
        priority: Accepted for PyTorch's sake.
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        """Do nothing."""

    def record_event(self) -> None:
        """Do nothing."""

    def wait_event(self, event: object) -> None:
        """Do nothing."""


_stream = Stream()


def current_stream(device: object = None) -> Stream:
    """The one stream that there is."""
    return _stream


class StreamContext:
    """The context of :func:`stream`. It has no effect.

    Args:
        stream: A stream, or None.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream. It has no effect."""
    return StreamContext(stream)
