"""The dtypes of PyTorch that no tensor of rgrad has. They are names to compare with, and errors name them."""

from __future__ import annotations

from typing import Any


class NamedDtype:
    """A dtype without tensors. Each has a class of its own, whose name errors show.

    Raises:
        TypeError: It is called.
    """

    is_complex = False
    is_floating_point: bool
    itemsize: int

    def __new__(cls, *args: Any, **kwargs: Any) -> NamedDtype:
        raise TypeError(f"cannot create '{cls.__name__}' instances: it is a name of PyTorch, and no tensor has it")

    def __repr__(self) -> str:
        return f"rgrad.{type(self).__name__}"

    def __reduce__(self) -> str:
        return type(self).__name__


def _made(name: str, itemsize: int = 1) -> NamedDtype:
    values = {"itemsize": itemsize, "is_floating_point": name.startswith("float"), "__module__": "rgrad"}
    made: NamedDtype = object.__new__(type(name, (NamedDtype,), values))
    return made


float8_e4m3fn = _made("float8_e4m3fn")
float8_e4m3fnuz = _made("float8_e4m3fnuz")
float8_e5m2 = _made("float8_e5m2")
float8_e5m2fnuz = _made("float8_e5m2fnuz")
float8_e8m0fnu = _made("float8_e8m0fnu")
float4_e2m1fn_x2 = _made("float4_e2m1fn_x2")
int1 = _made("int1")
int2 = _made("int2")
int3 = _made("int3")
int4 = _made("int4")
int5 = _made("int5")
int6 = _made("int6")
int7 = _made("int7")
uint1 = _made("uint1")
uint2 = _made("uint2")
uint3 = _made("uint3")
uint4 = _made("uint4")
uint5 = _made("uint5")
uint6 = _made("uint6")
uint7 = _made("uint7")
bits8 = _made("bits8")
bits1x8 = _made("bits1x8")
bits2x4 = _made("bits2x4")
bits4x2 = _made("bits4x2")
qint8 = _made("qint8")
quint8 = _made("quint8")
quint2x4 = _made("quint2x4")
quint4x2 = _made("quint4x2")
bits16 = _made("bits16", 2)
qint32 = _made("qint32", 4)
