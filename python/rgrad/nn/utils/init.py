"""Modules without the work of initializing them."""

import inspect
from typing import Any, TypeVar

from ..modules.module import Module

__all__ = ["skip_init"]

M = TypeVar("M", bound=Module)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """A module whose parameters and buffers are memory as it was found.

    Args:
        module_cls: A class that takes ``device``.
        args: Its arguments.
        kwargs: Its arguments by name; ``device`` is where the parameters will be.

    Returns:
        The module.

    Raises:
        RuntimeError: It is no class of modules, or takes no ``device``.

    Example:
        >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
        rgrad.Size([2, 3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    made: M = module_cls(*args, device="meta", **kwargs).to_empty(device=device)
    return made
