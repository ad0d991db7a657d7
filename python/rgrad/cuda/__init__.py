"""What portable code asks of ``cuda``. There are no CUDA devices here, so queries say so and switches have no effect.

The memory functions count what the tensors of rgrad hold: on the device that is named, by default on the one on which
tensors are made by default (:func:`rgrad.set_default_device`). So code that measures its memory measures it here too.
"""

from collections import OrderedDict
from typing import Any, Never

from .. import _core, memory, wgpu
from .._core import Tensor

__all__ = [
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "get_rng_state_all",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state_all",
    "synchronize",
]

from . import amp

__all__ = ["amp", "device_count", "is_available"]


def is_available() -> bool:
    """Always False."""
    return False


def is_initialized() -> bool:
    """Always False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Always False."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def _refuse(name: str) -> Never:
    raise RuntimeError(
        f"cuda.{name}: there are no CUDA devices: rgrad runs on the CPU and, by WebGPU, on GPUs of any vendor. Ask "
        'cuda.is_available() first, or use the device "wgpu" (rgrad.wgpu)'
    )


def init() -> None:
    """Refuse: there is nothing to initialise.

    Raises:
        RuntimeError: Always.
    """
    _refuse("init")


def current_device() -> int:
    """Refuse: there is no current device.

    Raises:
        RuntimeError: Always.
    """
    _refuse("current_device")


def set_device(device: Any) -> None:
    """Do nothing for a negative index, and refuse any other device.

    Raises:
        RuntimeError: The index is not negative.
    """
    index = device if isinstance(device, int) else _core.device(device).index
    if index is None or index >= 0:
        _refuse("set_device")


def get_device_name(device: Any = None) -> str:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    _refuse("get_device_name")


def get_device_properties(device: Any = None) -> Any:
    """Refuse: there is no device.

    Raises:
        RuntimeError: Always.
    """
    _refuse("get_device_properties")


class device:
    """A context that would change the current device. It has no effect.

    Args:
        device: A device or an index.
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def manual_seed_all(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def seed() -> None:
    """Do nothing; :func:`rgrad.seed` seeds every device."""


def seed_all() -> None:
    """Do nothing; :func:`rgrad.seed` seeds every device."""


def get_rng_state_all() -> list[Tensor]:
    """Give the states of the generators of all CUDA devices: an empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Do nothing for an empty list.

    Raises:
        RuntimeError: There are states.
    """
    if list(new_states):
        _refuse("set_rng_state_all")


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done all work that was given to it; without a GPU in use there is nothing to wait for."""
    wgpu.synchronize()


def ipc_collect() -> None:
    """Do nothing."""


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold now on the device (by default on the default device)."""
    return memory.allocated(device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held at a time since :func:`reset_peak_memory_stats`."""
    return memory.peak(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let :func:`max_memory_allocated` begin anew with the bytes that are held now."""
    memory.reset_peak(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Do what :func:`reset_peak_memory_stats` does, under its old name."""
    memory.reset_peak(device)


def memory_reserved(device: Any = None) -> int:
    """The bytes that tensors hold now and those that are kept for the next ones."""
    return memory.reserved(device)


def max_memory_reserved(device: Any = None) -> int:
    """The larger one of :func:`max_memory_allocated` and :func:`memory_reserved`."""
    return memory.max_memory_reserved(device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """The bytes held and reserved, now and at most, under PyTorch's keys."""
    return memory.memory_stats(device)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """What is alive on the device, by the lines that allocated it, as a table (:func:`rgrad.memory.report`)."""
    return memory.memory_summary(device, abbreviated)


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the system, on all devices."""
    _core.empty_cache()
    wgpu.empty_cache()
