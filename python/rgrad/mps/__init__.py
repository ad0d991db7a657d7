"""What portable code asks of ``mps``: Apple's GPUs are reached through the device "wgpu" here."""

from typing import Never

from .._runtime.no_device import Refused, answering

_NO_METAL = Refused(RuntimeError, "mps.{name}: MPS is not available. Apple's GPUs are reached as rgrad.device('wgpu')")
_NO_DEVICE = Refused(
    RuntimeError, "Cannot execute mps.{name}() without MPS backend. Apple's GPUs are reached as rgrad.device('wgpu')"
)
_ANSWERS = {
    "class Event": _NO_DEVICE,
    "compile_shader(source)": _NO_METAL,
    "get_rng_state(device='mps')": _NO_DEVICE,
    "load_metallib(source)": _NO_METAL,
    "set_per_process_memory_fraction(fraction)": _NO_DEVICE,
    "set_rng_state(new_state, device='mps')": _NO_DEVICE,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS, ("event", "profiler"))


def is_available() -> bool:
    """Always False; see :mod:`rgrad.wgpu`."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing; :func:`rgrad.manual_seed` seeds every device."""


def _refuse(name: str) -> Never:
    raise RuntimeError(f"Cannot execute {name}() without MPS backend. Apple's GPUs are reached as rgrad.device('wgpu')")


def synchronize() -> None:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("deviceSynchronize")


def empty_cache() -> None:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("emptyCache")


def current_allocated_memory() -> int:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("getCurrentAllocatedMemory")


def driver_allocated_memory() -> int:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("getDriverAllocatedMemory")


def recommended_max_memory() -> int:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("getRecommendedMaxMemory")


def seed() -> None:
    """Refuse; see :mod:`rgrad.wgpu`.

    Raises:
        RuntimeError: Always.
    """
    _refuse("getDefaultGenerator")
