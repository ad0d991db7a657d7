"""PyTorch's module of functions for the seed and the state of random numbers: those of ``rgrad``, and `fork_rng`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _core
from ._core import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

_KINDS = ("cpu", "cuda", "mps", "wgpu", "xpu")


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A block after which random numbers go on as if there had been none in it.

    Args:
        devices: Accepted for PyTorch's sake: one generator serves all devices.
        enabled: False lets the block draw numbers as usual.
        device_type: ``"meta"`` does so, too; otherwise it has no effect.

    Raises:
        RuntimeError: There is no such type of device.

    Example:
        >>> with rgrad.random.fork_rng():
        ...     first = rgrad.rand(2)
        >>> rgrad.equal(first, rgrad.rand(2))
        True
    """
    if device_type == "meta" or not enabled:
        yield
        return
    if device_type is not None and device_type not in _KINDS:
        raise RuntimeError(f"rgrad has no module of `{device_type}`, expected one of {', '.join(_KINDS)}")
    state = _core.get_rng_state()
    try:
        yield
    finally:
        _core.set_rng_state(state)
