"""What portable code asks of the CPU as a device."""

import os
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .. import _core
from . import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
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


class Event:
    """A mark in the work of the CPU, which is always reached already.

    Args:
        enable_timing: Has no effect.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing

    def query(self) -> bool:
        """Always True."""
        return True

    def record(self, stream: object = None) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def wait(self, stream: object = None) -> None:
        """Do nothing."""


def get_capabilities() -> Mapping[str, Any]:
    """The processor's architecture, its cores, and the instruction set whose kernels run; it is only read.

    Example:
        >>> rgrad.cpu.get_capabilities()["num_logical_cores"] >= 1
        True
    """
    best = _core._get_cpu_capability()
    found = {
        "architecture": platform.machine(),
        "num_logical_cores": os.cpu_count() or 1,
        "avx2": best in ("AVX2", "AVX512"),
        "avx512_f": best == "AVX512",
    }
    return MappingProxyType(found)


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
