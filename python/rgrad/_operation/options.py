"""The options that functions in Python share with the native ones that make tensors, checked as those check them."""

from typing import Any, NamedTuple

from .. import _core
from .._runtime.layouts import layout as layout_type
from .._runtime.layouts import strided

# Python's types that stand for dtypes.
_PYTHON = {bool: _core.bool, int: _core.int64, float: _core.float64, complex: _core.complex128}


class Options(NamedTuple):
    """Checked options; None where none is given.

    Attributes:
        dtype: The dtype.
        device: The device.
        requires_grad: Whether a gradient is wanted.
    """

    dtype: Any
    device: Any
    requires_grad: bool


def _refuse(function: str, argument: str, wanted: str, value: Any) -> TypeError:
    return TypeError(f"{function}(): argument '{argument}' must be {wanted}, not {type(value).__name__}")


def checked_dtype(function: str, dtype: Any) -> Any:
    """The dtype, or that of one of Python's types of numbers; None stays None.

    Raises:
        TypeError: It is something else.
    """
    if dtype is None or isinstance(dtype, _core.dtype):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    raise _refuse(function, "dtype", "rgrad.dtype", dtype)


def checked_options(
    function: str,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: Any = None,
) -> Options:
    """The options of a function that makes a tensor.

    Args:
        function: Its name, for messages.
        dtype: A dtype, one of Python's types of numbers, or None.
        layout: None or the strided layout.
        device: A device, its name, an index, or None.
        pin_memory: A truth value, which has no effect, or None.
        requires_grad: A truth value, or None for False.

    Raises:
        NotImplementedError: It is another layout.
        TypeError: An argument is of another type.
    """
    if layout is not None:
        if not isinstance(layout, layout_type):
            raise _refuse(function, "layout", "rgrad.layout", layout)
        if layout is not strided:
            raise NotImplementedError(
                f"{function}() is not implemented for the layout {layout}: new tensors are strided"
            )
    if device is not None and (isinstance(device, bool) or not isinstance(device, (str, int, _core.device))):
        raise _refuse(function, "device", "rgrad.device", device)
    for name, value in (("pin_memory", pin_memory), ("requires_grad", requires_grad)):
        if value is not None and not isinstance(value, bool):
            raise _refuse(function, name, "bool", value)
    return Options(checked_dtype(function, dtype), device, bool(requires_grad))
