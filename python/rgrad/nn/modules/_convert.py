"""The arguments of ``Module.to``."""

from typing import Any

from ... import _core
from ..._core import Tensor, dtype, memory_format
from ..._info import typename


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dtype | None, memory_format | None]:
    """The device, dtype and memory format that the arguments of ``to`` ask for; TypeError for what is neither."""
    known = {"device", "dtype", "non_blocking", "copy", "memory_format", "tensor"}
    for name in kwargs:
        if name not in known:
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
    device, kind, form = kwargs.get("device"), kwargs.get("dtype"), kwargs.get("memory_format")
    if form is not None and not isinstance(form, memory_format):
        raise TypeError(f"to() received an invalid combination of arguments - got memory_format={typename(form)}")
    like = kwargs.get("tensor")
    # The last positional argument that is a bool is non_blocking, which means nothing here.
    for arg in (like, *args):
        if arg is None or isinstance(arg, bool):
            continue
        if isinstance(arg, Tensor):
            device, kind = arg.device, arg.dtype
        elif isinstance(arg, dtype):
            kind = arg
        elif isinstance(arg, (str, int, _core.device)):
            device = arg
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got {typename(arg)}")
    return device, kind, form
