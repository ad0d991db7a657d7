"""`FloatTensor` and its sisters: the types that PyTorch had for tensors of one dtype on one device."""

from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._runtime.warned import warn_user_once


class _TensorType(type):
    """The type of those types: calls make tensors, and tensors of the dtype are instances."""

    dtype: dtype
    is_cuda = False
    is_sparse = False

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        device = kwargs.pop("device", None)
        if device is not None and _core.device(device).type != "cpu":
            raise RuntimeError(
                f"{cls.__name__}: legacy constructor expects device type: cpu but device type: "
                f"{_core.device(device).type} was passed. Use rgrad.tensor(..., device=...)"
            )
        with _core.device("cpu"):
            made = _core.empty(0, dtype=cls.dtype)
        return made.new(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.device.type == "cpu"


def _made(name: str, of: dtype) -> Any:
    doc = f"""Tensors of dtype ``{str(of).rpartition(".")[2]}`` on the CPU, as PyTorch called them once.

    A call with sizes makes a tensor with values that are not set, one with a sequence, array or tensor of this dtype
    makes a tensor of its values, and one without arguments an empty tensor. Use :func:`rgrad.empty` and
    :func:`rgrad.tensor`.

    Raises:
        RuntimeError: A size is negative, or ``device`` is not the CPU.
        TypeError: The arguments are none of these.
    """
    return _TensorType(name, (), {"__doc__": doc, "__module__": "rgrad", "dtype": of})


FloatTensor = _made("FloatTensor", _core.float32)
DoubleTensor = _made("DoubleTensor", _core.float64)
HalfTensor = _made("HalfTensor", _core.float16)
BFloat16Tensor = _made("BFloat16Tensor", _core.bfloat16)
ByteTensor = _made("ByteTensor", _core.uint8)
CharTensor = _made("CharTensor", _core.int8)
ShortTensor = _made("ShortTensor", _core.int16)
IntTensor = _made("IntTensor", _core.int32)
LongTensor = _made("LongTensor", _core.int64)
BoolTensor = _made("BoolTensor", _core.bool)

_TYPES = {made.__name__: made for made in list(globals().values()) if isinstance(made, _TensorType)}


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by one of the old types; use :func:`rgrad.set_default_dtype`.

    Args:
        t: A type such as :class:`rgrad.FloatTensor`, or its name.

    Raises:
        TypeError: It is no such type, or not one of floats.
    """
    found = _TYPES.get(t.rpartition(".")[2]) if isinstance(t, str) and "cuda" not in t else t
    if not isinstance(found, _TensorType):
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t!r}")
    if not found.dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {t!r}")
    warn_user_once(
        "rgrad.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use rgrad.set_default_dtype() and "
        "rgrad.set_default_device() as alternatives."
    )
    _core.set_default_dtype(found.dtype)
