"""Native methods whose names are those of methods in Python, for what rgrad itself asks of tensors.

This module is imported before `Tensor` gets the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

# `rgrad` has the class of this name that is written in Python.
_core.UntypedStorage.__module__ = "rgrad._core"


def _native(name: str) -> Any:
    """The native method of a name. What has taken its place keeps it, for a package that is imported again."""
    found = vars(Tensor)[name]
    return getattr(found, "native", found)


#: The native storage of a tensor: address, size and number of its memory.
memory_of: Callable[[Tensor], Any] = _native("untyped_storage")
#: Let a tensor use the memory of another one.
set_to: Callable[..., Tensor] = _native("set_")
