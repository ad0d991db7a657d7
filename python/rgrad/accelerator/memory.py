"""The memory functions of :mod:`rgrad.accelerator` under their module's name."""

from .._runtime.no_device import answering

_NAMES = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.accelerator"))
