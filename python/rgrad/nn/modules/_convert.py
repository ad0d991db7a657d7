"""The arguments of ``Module.to``."""

from typing import Any

from ... import _core
from ..._core import Tensor, dtype, memory_format
from ..._runtime.info import typename

# The positional arguments, by what the first of them is.
_LIKE_TENSOR = ("tensor", "non_blocking", "copy")
_DTYPE = ("dtype", "non_blocking", "copy")
_DEVICE = ("device", "dtype", "non_blocking", "copy")
_KINDS: dict[str, Any] = {
    "tensor": Tensor,
    "device": (str, int, _core.device),
    "dtype": dtype,
    "non_blocking": bool,
    "copy": bool,
    "memory_format": memory_format,
}


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dtype | None, memory_format | None]:
    """The device, dtype and memory format that the arguments of ``to`` ask for.

    Raises:
        TypeError: They are no form of ``to``.
        RuntimeError: ``copy`` is given: a module is changed in place.
    """
    first = args[0] if args else kwargs.get("tensor")
    form = _LIKE_TENSOR if isinstance(first, Tensor) else _DTYPE if isinstance(first, dtype) else _DEVICE
    given = dict(zip(form, args, strict=False))
    names = {*form, "memory_format"}
    for name in kwargs:
        if name not in _KINDS:
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
    fits = len(args) <= len(form) and not (given.keys() & kwargs.keys()) and kwargs.keys() <= names
    given.update(kwargs)
    for name, value in given.items():
        optional = name in ("device", "dtype", "memory_format") and value is None
        is_number = name == "device" and isinstance(value, bool)
        fits = fits and (optional or (isinstance(value, _KINDS[name]) and not is_number))
    if not fits:
        said = ", ".join([*map(typename, args), *(f"{name}={typename(value)}" for name, value in kwargs.items())])
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({said}), expected (device, dtype, "
            "non_blocking), (dtype, non_blocking) or (tensor, non_blocking), and memory_format by name"
        )
    if "copy" in given:
        raise RuntimeError(".to() does not accept copy argument")
    like = given.get("tensor")
    if like is not None:
        return like.device, like.dtype, given.get("memory_format")
    return given.get("device"), given.get("dtype"), given.get("memory_format")
