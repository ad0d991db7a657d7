"""What changes its name while rgrad stands in PyTorch's place: the version, and names in reprs of dtypes and sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import rgrad

from .. import _core
from .._runtime.layouts import layout
from ..torch_version import TorchVersion

# The release of PyTorch that rgrad follows.
VERSION = "2.13.0"
_PREFIX = "rgrad."

_before: list[tuple[Any, str, Any]] = []


def _put(owner: Any, name: str, value: Any) -> None:
    """Set an attribute, and remember what was there."""
    _before.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _renamed(told: str) -> str:
    return "torch." + told[len(_PREFIX) :] if told.startswith(_PREFIX) else told


def _as_torch(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with texts that begin with PyTorch's name."""

    def renamed(self: Any, *args: Any, **kwargs: Any) -> Any:
        told = method(self, *args, **kwargs)
        return _renamed(told) if isinstance(told, str) else told

    return wraps(method)(renamed)


def take() -> None:
    """Answer as PyTorch: to ``__name__``, ``__version__``, and in the names of dtypes, sizes, types of tensors."""
    _put(rgrad, "__name__", "torch")
    _put(rgrad, "__version__", TorchVersion(VERSION))
    _put(rgrad.version, "__version__", VERSION)
    for kind in (_core.dtype, _core.memory_format, _core.Size, layout):
        _put(kind, "__repr__", _as_torch(kind.__repr__))
    # Libraries tell tensors by the module of their class.
    _put(_core.Tensor, "__module__", "torch")
    _put(_core.Size, "__str__", _core.Size.__repr__)
    _put(_core.Tensor, "type", _as_torch(_core.Tensor.type))


def give_back() -> None:
    """Undo :func:`take`."""
    while _before:
        owner, name, value = _before.pop()
        setattr(owner, name, value)
