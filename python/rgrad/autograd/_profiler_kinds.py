"""The small types of profiles: kinds of devices and of activities, stretches of time, kernels."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel of a device that an operation launched.

    Attributes:
        name: Its name.
        device: The number of the device.
        duration: Microseconds.

    Example:
        >>> rgrad.autograd.profiler_util.Kernel("mul", 0, 1.5).duration
        1.5
    """

    name: str
    device: int
    duration: float


class DeviceType(IntEnum):
    """Where an event ran: on the host (``CPU``), or on a device of wgpu (``PrivateUse1``)."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class ProfilerActivity(IntEnum):
    """What a profiler is asked to record: events of the host (``CPU``), and what devices run (every other member)."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5

    def __repr__(self) -> str:
        return f"<ProfilerActivity.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


class Interval:
    """A stretch of time.

    Args:
        start: Microseconds.
        end: Microseconds.

    Example:
        >>> rgrad.autograd.profiler_util.Interval(1.0, 3.5).elapsed_us()
        2.5
    """

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start
