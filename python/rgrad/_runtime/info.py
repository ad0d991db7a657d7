"""Limits of number types, and names of types."""

from typing import Any

from .. import _core
from .._core import Tensor, dtype


def is_tensor(obj: object) -> bool:
    """Whether ``obj`` is a :class:`rgrad.Tensor` (a subclass counts)."""
    return isinstance(obj, Tensor)


def typename(obj: Any) -> str:
    """The qualified name of the type of ``obj``; for a tensor the name of its kind (``rgrad.FloatTensor``)."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = obj if isinstance(obj, type) or not hasattr(obj, "__class__") else type(obj)
    module = getattr(cls, "__module__", "")
    name = getattr(cls, "__qualname__", getattr(cls, "__name__", str(cls)))
    return name if module in ("", "builtins", "__builtin__", None) else f"{module}.{name}"


# Bits of significand (without the hidden one), largest and smallest exponent; IEEE 754 and bfloat16.
_FLOAT_FORMATS = {
    "float64": (64, 52, 1023, -1022),
    "float32": (32, 23, 127, -126),
    "float16": (16, 10, 15, -14),
    "bfloat16": (16, 7, 127, -126),
}

# Those without infinities: eps, largest, smallest and smallest normal number (Open Compute Project, OFP8 and MX).
_EIGHT_BITS = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}


def _short_name(of: dtype) -> str:
    return str(of).rpartition(".")[2]


class finfo:
    """Limits of a floating point dtype, as ``numpy.finfo``; of a complex one, those of its parts.

    Args:
        type: The dtype; without it, the default dtype.

    Raises:
        TypeError: The dtype is neither floating point nor complex.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        name = _short_name(_core.get_default_dtype() if type is None else type)
        if isinstance(type, dtype) and type.is_complex:
            name = _short_name(type.to_real())
        if name in _EIGHT_BITS:
            self.bits, self.dtype, self.resolution = 8, name, 1.0
            self.eps, self.max, self.min, self.smallest_normal = _EIGHT_BITS[name]
            self.tiny = self.smallest_normal
            return
        if name not in _FLOAT_FORMATS:
            raise TypeError(f"finfo() requires a floating point input type, got {type}. Use iinfo to handle '{name}'")
        self.bits, digits, top, bottom = _FLOAT_FORMATS[name]
        self.dtype = name
        self.eps = 2.0**-digits
        self.max = (2.0 - self.eps) * 2.0**top
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0**bottom
        # Decimal digits that survive: floor(digits * log10(2)).
        self.resolution = float(f"1e-{int(digits * 0.30102999566398120)}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype, as ``numpy.iinfo``.

    Raises:
        TypeError: The dtype is no integer dtype.
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        name = _short_name(type)
        if not isinstance(type, dtype) or type.is_floating_point or type.is_complex or type == _core.bool:
            raise TypeError(f"iinfo() requires an integer input type, got {type}. Use finfo to handle '{name}'")
        self.bits = 8 * type.itemsize
        self.dtype = name
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
