"""Modified Bessel functions of the first kind, of orders 0 and 1."""

from __future__ import annotations

import math

from .. import _core
from .._checked import operation
from .._composed import Apply, floating, of_elements
from .._core import Tensor
from ._gamma import polynomial

# Up to here the power series in x^2 / 4, from here up the asymptotic one in 1 / x (Abramowitz, Stegun 9.6.10, 9.7.1).
_MEETING = 20.0


def _power_series(order: int) -> list[float]:
    return [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(38)]


def _asymptotic_series(order: int) -> list[float]:
    made, factor = [], 1.0
    for k in range(1, 30):
        made.append(factor)
        factor *= -(4 * order * order - (2 * k - 1) ** 2) / (k * 8.0)
    return made


_SERIES = [(_power_series(order), _asymptotic_series(order)) for order in (0, 1)]


def _scaled(x: Tensor, order: int, scaled: bool) -> Tensor:
    """The function, times exp(-abs(x)) if it is scaled."""
    near, far = _SERIES[order]
    size = x.abs()
    small = size < _MEETING
    inside = _core.where(small, size, _core.zeros_like(size))
    outside = _core.where(small, _core.full_like(size, _MEETING), size)
    low = polynomial(inside * inside * 0.25, near)
    if order:
        low = low * (inside * 0.5)
    high = polynomial(1.0 / outside, far) / (2.0 * math.pi * outside).sqrt()
    if scaled:
        low = low * (-inside).exp()
    else:
        # In two steps, since the exponential overflows before the function does.
        half = (0.5 * outside).exp()
        high = half * high * half
    made = _core.where(small, low, high)
    made = _core.where(size == math.inf, 1.0 / size if scaled else size, made)
    return _core.where(x < 0, -made, made) if order else made


def _ratio(x: Tensor, odd: Tensor, limit: float) -> Tensor:
    """A function of order 1 over x, with its limit at 0."""
    zero = x == 0
    return _core.where(zero, _core.full_like(x, limit), odd / _core.where(zero, _core.ones_like(x), x))


_i0_apply: Apply = of_elements("I0", lambda x: _scaled(x, 0, False), lambda x: _i1_apply(x))  # noqa: PLW0108
_i0e_apply: Apply = of_elements(
    "SpecialI0E", lambda x: _scaled(x, 0, True), lambda x: _i1e_apply(x) - x.sgn() * _i0e_apply(x)
)
_i1_apply: Apply = of_elements(
    "SpecialI1", lambda x: _scaled(x, 1, False), lambda x: _i0_apply(x) - _ratio(x, _i1_apply(x), 0.5)
)
_i1e_apply: Apply = of_elements(
    "SpecialI1E",
    lambda x: _scaled(x, 1, True),
    lambda x: _i0e_apply(x) - x.sgn() * _i1e_apply(x) - _ratio(x, _i1e_apply(x), 0.5),
)


@operation("i0", casts=True)
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the modified Bessel function of the first kind of order 0.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.i0(rgrad.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 1.2661, 2.2796])
    """
    return _i0_apply(floating(input))


@operation("special_i0e", casts=True)
def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute :func:`i0` times ``exp(-abs(input))``.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.i0e(rgrad.tensor([0.0, 1.0]))
        tensor([1.0000, 0.4658])
    """
    return _i0e_apply(floating(input))


@operation("special_i1", casts=True)
def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the modified Bessel function of the first kind of order 1.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.i1(rgrad.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5652])
    """
    return _i1_apply(floating(input))


@operation("special_i1e", casts=True)
def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute :func:`i1` times ``exp(-abs(input))``.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.i1e(rgrad.tensor([0.0, 1.0]))
        tensor([0.0000, 0.2079])
    """
    return _i1e_apply(floating(input))
