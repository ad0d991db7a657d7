"""Streams, events and graphs of CUDA devices, which there are not: what needs one says so."""

from typing import Any, Never, Self

from .._runtime import streams
from .._runtime.no_device import refuse

__all__ = [
    "CUDAGraph",
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "graph",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "set_stream",
    "stream",
]


class Stream(streams.Stream):
    """A queue of work of a CUDA device. There is none.

    Raises:
        RuntimeError: It is made.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Self:
        refuse("Stream")


class Event(streams.Event):
    """A mark in a stream. It can be made and not be recorded; :mod:`rgrad.utils.benchmark` measures times.

    Args:
        enable_timing: Whether it measures times.
        blocking: Whether waiting for it sleeps.
        interprocess: Whether other processes may have it.
        external: Whether graphs see it as a node.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        super().__init__("cpu")
        self.enable_timing = enable_timing

    def record(self, stream: Any = None) -> None:
        """Refuse: there is no stream.

        Raises:
            RuntimeError: Always.
        """
        refuse("Event.record")

    def wait(self, stream: Any = None) -> None:
        """Refuse: there is no stream.

        Raises:
            RuntimeError: Always.
        """
        refuse("Event.wait")


class StreamContext:
    """The context of :func:`stream`.

    Args:
        stream: None.

    Raises:
        RuntimeError: It is not None.
    """

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None:
            refuse("StreamContext")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream. None has no effect.

    Raises:
        RuntimeError: It is not None.
    """
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Do nothing for None.

    Raises:
        RuntimeError: It is not None.
    """
    StreamContext(stream)


def current_stream(device: Any = None) -> Never:
    """Refuse: there is no stream.

    Raises:
        RuntimeError: Always.
    """
    refuse("current_stream")


def default_stream(device: Any = None) -> Never:
    """Refuse: there is no stream.

    Raises:
        RuntimeError: Always.
    """
    refuse("default_stream")


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured: always False."""
    return False


class CUDAGraph:
    """Work of a CUDA device to be done again. There is none.

    Raises:
        RuntimeError: It is made.
    """

    def __new__(cls, keep_graph: bool = False) -> Self:
        refuse("CUDAGraph")


class graph:
    """A context that captures work of a CUDA device. There is none.

    Raises:
        RuntimeError: It is made.
    """

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        refuse("graph")


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> Never:
    """Refuse: there is no device whose work could be captured.

    Raises:
        RuntimeError: Always.
    """
    refuse("make_graphed_callables")
