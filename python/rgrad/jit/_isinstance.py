"""Types of values with what is in them, as TorchScript tells them apart."""

import types
import typing
from typing import Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, what it contains included: ``isinstance(x, dict[str, Tensor])``.

    Args:
        obj: The value.
        target_type: A class, a list, dict or tuple with types in it, ``Optional``, ``Union``, or a tuple of types.

    Raises:
        RuntimeError: A container has no types of what it contains, such as ``list``.
    """
    if type(target_type) is tuple:
        return any(isinstance(obj, one) for one in target_type)
    if target_type is None:
        return obj is None
    if target_type is Any:
        return True
    if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple, typing.Optional, typing.Union):  # noqa: UP006
        name = getattr(target_type, "__name__", str(target_type))
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
        )
    origin, inside = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, None if one is type(None) else one) for one in inside)
    if origin is list:
        return type(obj) is list and all(isinstance(one, inside[0]) for one in obj)
    if origin is dict:
        return type(obj) is dict and all(isinstance(k, inside[0]) and isinstance(v, inside[1]) for k, v in obj.items())
    if origin is tuple:
        if type(obj) is not tuple:
            return False
        if len(inside) == 2 and inside[1] is Ellipsis:
            return all(isinstance(one, inside[0]) for one in obj)
        return len(obj) == len(inside) and all(isinstance(one, kind) for one, kind in zip(obj, inside, strict=True))
    return _of_class(obj, target_type)


def _of_class(obj: Any, cls: Any) -> bool:
    import builtins

    return builtins.isinstance(obj, cls)
