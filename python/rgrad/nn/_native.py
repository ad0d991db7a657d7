"""PyTorch's ``torch._C._nn``: the functions of networks, and how the arguments of ``Module.to`` are read."""

from typing import Any

from .. import _core
from . import functional
from .modules._convert import parse_to


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, the dtype, ``non_blocking`` and the memory format that the arguments of ``to`` ask for.

    Raises:
        TypeError: They are no form of ``to``.
        RuntimeError: ``copy`` is given, or there is no such device.
    """
    device, kind, form = parse_to(args, kwargs)
    non_blocking = kwargs.get("non_blocking", args[-1] if args and isinstance(args[-1], bool) else False)
    return None if device is None else _core.device(device), kind, non_blocking, form


def __getattr__(name: str) -> Any:
    return getattr(functional, name)
