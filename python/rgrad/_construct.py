"""The legacy constructor ``Tensor(...)``: sizes or data, always of the default float dtype."""

from typing import Any

from . import _core

__all__ = ["legacy"]


def legacy(*args: Any) -> Any:
    """Make what ``Tensor(*args)`` stands for: an uninitialised tensor of these sizes, or one holding this data."""
    dtype = _core.get_default_dtype()
    if not args:
        return _core.empty(0, dtype=dtype)
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, _core.Size):
            return _core.empty(data, dtype=dtype)
        return _core.tensor(data, dtype=dtype)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return _core.empty(args, dtype=dtype)
    raise TypeError(f"new(): expected sizes (integers) or data (a sequence or array), got {len(args)} arguments {args!r}")
