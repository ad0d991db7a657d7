"""The memory functions of :mod:`rgrad.mtia` under their module's name."""

from .._runtime.no_device import answering

_NAMES = ["max_memory_allocated", "memory_allocated", "memory_stats", "reset_peak_memory_stats"]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.mtia"))
