"""Python's ``multiprocessing`` under PyTorch's name, and :func:`spawn`, which runs a function in several processes.

Tensors are pickled with their values: a process that receives one has a copy, unless the tensor is in shared memory
(:meth:`Tensor.share_memory_`, ``Module.share_memory``). Loaders send batches in shared memory whatever the strategy
below.
"""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from typing import Any

from . import reductions as reductions

# First, since to import it makes the module `spawn` an attribute; from here on it is the function.
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += ["ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessExitedException", "ProcessRaisedException"]
__all__ += ["SpawnContext", "spawn", "start_processes"]
__all__ += _python.__all__

_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that :func:`set_sharing_strategy` takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """What :func:`set_sharing_strategy` was given."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for PyTorch's sake; it changes nothing.

    Raises:
        AssertionError: The name is unknown.
    """
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy = new_strategy


def __getattr__(name: str) -> Any:
    return getattr(_python, name)
