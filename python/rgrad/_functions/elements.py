"""Functions of elements in Python: integers, bits of floats, powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core, return_types
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import elements_on_host, into, pair, type_name
from .._operation.options import checked_options
from .._runtime.warned import warn_user


@operation("positive")
def positive(input: Tensor) -> Tensor:
    """Give the tensor itself.

    Args:
        input: A tensor of numbers.

    Raises:
        RuntimeError: Its elements are truth values.

    Example:
        >>> rgrad.positive(rgrad.tensor([1, -2]))
        tensor([ 1, -2])
    """
    if input.dtype == _core.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@operation("isreal")
def isreal(input: Tensor) -> Tensor:
    """Tell which elements are real: all but complex numbers whose imaginary part is not 0.

    Args:
        input: A tensor.

    Returns:
        A bool tensor of the same shape.

    Example:
        >>> rgrad.isreal(rgrad.tensor([1, 1 + 1j, 2 + 0j]))
        tensor([ True, False,  True])
    """
    return _core.imag(input) == 0 if input.is_complex() else _core.ones_like(input, dtype=_core.bool)


@operation("signbit")
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tell whether the sign bit of each element is set; it is for -0.0.

    Args:
        input: A tensor.
        out: Where the result is written.

    Returns:
        A bool tensor of the same shape.

    Example:
        >>> rgrad.signbit(rgrad.tensor([1.0, -0.0, -2.0]))
        tensor([False,  True,  True])
    """
    x = input.detach()
    if x.is_complex():
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if x.dtype == _core.bool:
        made = _core.zeros_like(x)
    else:
        made = _core.copysign(_core.ones_like(x), x) < 0 if x.dtype.is_floating_point else x < 0
    return made


@operation("heaviside")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Give 0 for negative elements, 1 for positive ones, and an element of ``values`` at 0.

    It has no derivative.

    Args:
        input: A tensor.
        values: A tensor of the same dtype that is broadcast with it.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        RuntimeError: The dtypes differ, or are complex.

    Example:
        >>> rgrad.heaviside(rgrad.tensor([-1.0, 0.0, 2.0]), rgrad.tensor([0.5]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    if input.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return _core._heaviside(input, values)


def _integers(name: str, input: Any, other: Any) -> tuple[Tensor, Tensor]:
    a, b = pair(input, other)
    if a.dtype == _core.bool or a.dtype.is_floating_point or a.dtype.is_complex:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(a.dtype)}'")
    return a, b


_gcd = elements_on_host("Gcd", np.gcd)
_lcm = elements_on_host("Lcm", np.lcm)


def _next_bfloat16(x: Any, y: Any) -> Any:
    """The next numbers of bfloat16, given as float32: the upper bits count in order."""
    bits = [(v.view(np.int32) >> 16) for v in (x, y)]
    at, to = (np.where(b < 0, -(b & 0x7FFF), b) for b in bits)
    made = at + np.sign(to - at)
    sign = np.where((made < 0) | ((made == 0) & (at < 0)), 0x8000, 0)
    found = ((np.abs(made) | sign).astype(np.uint32) << 16).view(np.float32)
    return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), np.where(at == to, y, found))


def _differ(x: Tensor, other: Tensor) -> Tensor:
    return (x != other).to(x.dtype)


_nextafter_float16 = elements_on_host("Nextafter", np.nextafter, _differ)
_nextafter_bfloat16 = elements_on_host("Nextafter", lambda x, y: _next_bfloat16(x.copy(), y.copy()), _differ)


@operation("gcd", casts=True)
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the greatest common divisors of integers.

    Args:
        input: A tensor of integers.
        other: A tensor of integers.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        NotImplementedError: The tensors have no integers.

    Example:
        >>> rgrad.gcd(rgrad.tensor([4, 9]), rgrad.tensor([6, 15]))
        tensor([2, 3])
    """
    return _gcd(*_integers("gcd", input, other))


@operation("lcm", casts=True)
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the least common multiples of integers.

    Args:
        input: A tensor of integers.
        other: A tensor of integers.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        NotImplementedError: The tensors have no integers.

    Example:
        >>> rgrad.lcm(rgrad.tensor([4, 9]), rgrad.tensor([6, 15]))
        tensor([12, 45])
    """
    return _lcm(*_integers("lcm", input, other))


@operation("nextafter", casts=True)
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Give the next float from ``input`` towards ``other``. The derivative is that of ``input``.

    Args:
        input: A tensor of floats.
        other: A tensor of floats.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        NotImplementedError: The tensors have other elements.

    Example:
        >>> rgrad.nextafter(rgrad.tensor([1.0]), rgrad.tensor([2.0])) > 1
        tensor([True])
    """
    a, b = pair(input, other)
    if not a.dtype.is_floating_point:
        raise NotImplementedError(f"\"nextafter_cpu\" not implemented for '{type_name(a.dtype)}'")
    if a.dtype == _core.bfloat16:
        return _nextafter_bfloat16(a.float(), b.float()).to(a.dtype)
    if a.dtype == _core.float16:
        return _nextafter_float16(a, b)
    return _core._nextafter(a, b)


def _is_complex(x: Any) -> bool:
    return x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex)


@operation("float_power")
def float_power(input: Tensor | float, exponent: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Compute powers in float64; in complex128, if one operand is complex.

    Args:
        input: A tensor or a number.
        exponent: A tensor or a number.
        out: Where the result is written: float64 or complex128.

    Returns:
        A float64 tensor of the broadcast shape.

    Raises:
        RuntimeError: ``out`` has another dtype.

    Example:
        >>> rgrad.float_power(rgrad.tensor([2, 3]), 2)
        tensor([4., 9.], dtype=rgrad.float64)
    """
    kind = _core.complex128 if _is_complex(input) or _is_complex(exponent) else _core.float64
    base, power = (x.to(kind) if isinstance(x, Tensor) else x for x in (input, exponent))
    return _core.pow(base, power)


@operation("float_power_")
def float_power_(input: Tensor, exponent: Tensor | float) -> Tensor:
    """Write powers that are computed in float64 to a float64 tensor.

    Args:
        input: A float64 tensor.
        exponent: A tensor or a number.

    Returns:
        The tensor.

    Raises:
        RuntimeError: It has another dtype.

    Example:
        >>> rgrad.tensor([2.0, 3.0], dtype=rgrad.float64).float_power_(2)
        tensor([4., 9.], dtype=rgrad.float64)
    """
    if input.dtype != _core.float64:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype} but the operation's result requires dtype Double"
        )
    power = exponent.to(_core.float64) if isinstance(exponent, Tensor) else exponent
    return input.pow_(power)


@operation("frexp")
def frexp(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> return_types.frexp:
    """Split floats into fractions and powers of 2: ``input = mantissa * 2 ** exponent``.

    Args:
        input: A tensor of floats.
        out: Two tensors that the results are written to.

    Returns:
        ``(mantissa, exponent)``: magnitudes from 0.5 to 1, and int32.

    Raises:
        RuntimeError: The tensor has no floats.

    Example:
        >>> rgrad.frexp(rgrad.tensor([3.0, 0.25])).exponent
        tensor([ 2, -1], dtype=rgrad.int32)
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa = _core._frexp_mantissa(input)
    exponent = _core._frexp_exponent(input.detach()).to(_core.int32)
    return return_types.frexp(mantissa, exponent)


@operation("fill")
def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Give a tensor of the same shape and dtype with one number everywhere.

    Args:
        input: A tensor.
        value: A number, or a tensor without dimensions, which has a gradient.

    Returns:
        A new tensor.

    Example:
        >>> rgrad.fill(rgrad.ones(2), 3)
        tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value.dim():
            raise RuntimeError(
                f"fill only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions."
            )
    return input.clone().fill_(value)


@operation("is_signed")
def is_signed(input: Tensor) -> bool:
    """Tell whether the dtype of a tensor has negative numbers.

    Args:
        input: A tensor.

    Example:
        >>> rgrad.is_signed(rgrad.tensor([1]))
        True
    """
    return bool(input.is_signed())


def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Give the numbers from ``start`` to ``end``, both included; :func:`rgrad.arange` is preferred.

    Args:
        start: The first number.
        end: The last number that may occur.
        step: The distance of neighbours.
        out: Where the result is written.
        dtype: The dtype, by default the default dtype.
        layout: Has no effect.
        device: The device.
        pin_memory: Has no effect.
        requires_grad: Whether a gradient is wanted.

    Returns:
        A vector.

    Raises:
        RuntimeError: ``step`` is 0, or leads away from ``end``, or an end is not finite.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     rgrad.range(1, 4)
        tensor([1., 2., 3., 4.])
    """
    warn_user(
        "rgrad.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use rgrad.arange, which produces values in [start, end)."
    )
    dtype, device, requires_grad = checked_options("range", dtype, layout, device, pin_memory, requires_grad)
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"range(): argument 'out' must be Tensor, not {type(out).__name__}")
    if end is None:
        raise TypeError("range() missing 1 required positional argument: 'end'")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    kind = _core.get_default_dtype() if dtype is None else dtype
    if kind.is_complex or kind == _core.bool:
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{type_name(kind)}'")
    places = _core.arange(count, dtype=_core.float64, device="cpu") * step + start
    made = places.to(kind).to(_core.get_default_device() if device is None else device)
    return into(out, made, "range").requires_grad_(requires_grad)
