"""How tensors and storages travel between processes, as functions that give what rebuilds them."""

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .._core import Tensor
from .._files import sharing
from .._tensor.parameter import Parameter
from .._tensor.untyped_storage import UntypedStorage

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]


def reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Give a function and its arguments, which make a tensor again in the process that gets them.

    A tensor in shared memory (:meth:`Tensor.share_memory_`) is made over the same memory, another one of a copy.

    Args:
        tensor: A tensor.

    Returns:
        The function and the arguments. They are pickled while processes are started or through their queues.

    Raises:
        RuntimeError: The tensor is in shared memory and has a history, which no other process has.

    Example:
        >>> rebuild, args = rgrad.multiprocessing.reductions.reduce_tensor(rgrad.ones(2))
        >>> rebuild(*args)
        tensor([1., 1.])
    """
    made = sharing.reduced(tensor)
    return made[0], made[1]


def _rebuild_storage(memory: Tensor) -> UntypedStorage:
    """The storage of bytes that came from another process."""
    return UntypedStorage._of(memory)


def reduce_storage(storage: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """As :func:`reduce_tensor`, for a storage. Its memory is moved to shared memory first, as in PyTorch.

    Args:
        storage: An untyped storage on the CPU.

    Raises:
        RuntimeError: The storage is on another device.

    Example:
        >>> rebuild, args = rgrad.multiprocessing.reductions.reduce_storage(rgrad.ones(2).untyped_storage())
        >>> rebuild(*args).nbytes()
        8
    """
    storage.share_memory_()
    return _rebuild_storage, (storage._raw(),)


def init_reductions() -> None:
    """Let ``multiprocessing`` pickle tensors so. It is done already, when :mod:`rgrad` is imported."""
    for kind in (Tensor, Parameter):
        ForkingPickler.register(kind, sharing.reduced)
