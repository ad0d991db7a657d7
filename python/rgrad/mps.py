"""What portable code asks of ``mps``: Apple's GPUs are reached through the device "wgpu" here."""

from typing import Never


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
