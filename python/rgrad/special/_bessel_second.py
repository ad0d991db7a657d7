"""Bessel functions J and Y, and modified ones of the second kind, of orders 0 and 1.

J and Y are, up to 25, sums of Chebyshev polynomials, whose coefficients are computed from the power series (DLMF
10.2.2, 10.8.1) with 60 digits when they are first used, and from there on Hankel's expansion (DLMF 10.17.3). K is, up
to 2, its power series (DLMF 10.31.1), and from there on a sum of Chebyshev polynomials in 1 / x, from its integral
(DLMF 10.32.9). In float64 J and Y are off by at most 2e-13 of the wave's height, and K by 1e-14 of its value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import Apply, floating, of_elements
from ._gamma import polynomial

_EULER = Decimal("0.57721566490153286060651209008240243104215933593992359880576723488486772677766467")
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620900")
# Up to here J and Y are sums of Chebyshev polynomials.
_FAR = 25.0
# Up to here K is its power series.
_NEAR = 2.0


def _chebyshev(values: Callable[[float], float], count: int) -> list[float]:
    """The coefficients of Chebyshev polynomials for a function on -1..1."""
    nodes = [math.cos(math.pi * (k + 0.5) / count) for k in range(count)]
    of = np.array([values(x) for x in nodes])
    angles = np.pi * np.outer(np.arange(count), np.arange(count) + 0.5) / count
    made = 2.0 / count * (np.cos(angles) @ of)
    made[0] *= 0.5
    return [float(c) for c in made]


def _clenshaw(u: Tensor, coefficients: list[float]) -> Tensor:
    """The sum of Chebyshev polynomials at u."""
    twice = 2.0 * u
    a, b = _core.zeros_like(u), _core.zeros_like(u)
    for c in reversed(coefficients[1:]):
        a, b = twice * a - b + c, a
    return u * a - b + coefficients[0]


def _harmonic(k: int) -> Decimal:
    return sum((1 / Decimal(j) for j in range(1, k + 1)), Decimal(0))


@functools.cache
def _near_parts(order: int) -> tuple[list[float], list[float]]:
    """Of (x / 25)^2: J / x^order, and the rest (Y - 2 / pi log(x) J, and for order 1 + 2 / (pi x)) / x^order."""
    with localcontext() as context:
        context.prec = 60
        log2 = Decimal(2).ln()
        steps = 110
        factorials = [Decimal(math.factorial(k)) for k in range(steps + 2)]
        first = [Decimal((-1) ** k) / (factorials[k] * factorials[k + order] * 2**order) for k in range(steps)]
        sums = [_harmonic(k) for k in range(steps + 1)]
        second = [c * (2 * (_EULER - log2) - sums[k] - sums[k + order]) / _PI for k, c in enumerate(first)]

        def at(coefficients: list[Decimal]) -> Callable[[float], float]:
            def value(u: float) -> float:
                q = (Decimal(u) + 1) / 2 * Decimal(_FAR) ** 2 / 4
                made = Decimal(0)
                for c in reversed(coefficients):
                    made = made * q + c
                return float(made)

            return value

        return _chebyshev(at(first), 44), _chebyshev(at(second), 44)


@functools.cache
def _hankel(order: int) -> tuple[list[float], list[float]]:
    """The coefficients of P and of Q, of 1 / x^2 (the latter times x)."""
    made, factor = [], 1.0
    for k in range(1, 25):
        made.append(factor)
        factor *= (4 * order * order - (2 * k - 1) ** 2) / (k * 8.0)
    signed = [(-1) ** (k // 2) * c for k, c in enumerate(made)]
    return signed[::2], signed[1::2]


def _cylinder(x: Tensor, order: int, second: bool) -> Tensor:
    """J, or Y, for x > 0."""
    small = x < _FAR
    inside = _core.where(small, x, _core.ones_like(x))
    outside = _core.where(small, _core.full_like(x, _FAR), x)
    u = 2.0 * (inside / _FAR).square() - 1.0
    first, rest = _near_parts(order)
    low = _clenshaw(u, first)
    if second:
        low = 2.0 / math.pi * inside.log() * low + _clenshaw(u, rest)
    if order:
        low = low * inside
        if second:
            low = low - 2.0 / math.pi / inside
    inverse = 1.0 / outside
    square = inverse * inverse
    P, Q = (polynomial(square, c) for c in _hankel(order))
    Q = Q * inverse
    # The cosine and the sine of x - pi / 4, and of x - 3 pi / 4, from those of x, of which no digit is lost.
    plus, minus = outside.cos() + outside.sin(), outside.sin() - outside.cos()
    cosine, sine = (minus, -plus) if order else (plus, minus)
    wave = P * sine + Q * cosine if second else P * cosine - Q * sine
    high = wave * (inverse / math.pi).sqrt()
    return _core.where(small, low, high)


def _edges(x: Tensor, made: Tensor, at_zero: float, at_infinity: float) -> Tensor:
    """The values of a function that is defined for x > 0."""
    made = _core.where(x == 0, _core.full_like(x, at_zero), made)
    made = _core.where(x == math.inf, _core.full_like(x, at_infinity), made)
    return _core.where((x < 0) | x.isnan(), _core.full_like(x, math.nan), made)


def _j(x: Tensor, order: int) -> Tensor:
    size = x.abs()
    made = _cylinder(size, order, False)
    made = _core.where(size == math.inf, _core.zeros_like(x), made)
    made = _core.where(x.isnan(), x, made)
    return _core.where(x < 0, -made, made) if order else made


def _y(x: Tensor, order: int) -> Tensor:
    safe = _core.where(x > 0, x, _core.ones_like(x))
    return _edges(x, _cylinder(safe, order, True), -math.inf, 0.0)


@functools.cache
def _series_of_k(order: int) -> tuple[list[float], list[float]]:
    """Of x^2 / 4: I / (x / 2)^order, and the part of K without the logarithm."""
    first = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(20)]
    euler = float(_EULER)
    sums = [float(_harmonic(k)) for k in range(22)]
    halves = [0.5 * (sums[k] + sums[k + order]) - euler for k in range(20)]
    return first, [c * h for c, h in zip(first, halves, strict=True)]


@functools.cache
def _far_part_of_k(order: int) -> list[float]:
    """Of 4 / x - 1 for x from 2 up: K times exp(x) sqrt(x)."""

    def value(u: float) -> float:
        x = 2.0 * _NEAR / (u + 1.0)
        step = 0.08
        s = step * np.arange(-400, 401)
        t = s / math.sqrt(x)
        # x (cosh(t) - 1) without cancellation; the trapezoidal rule of an entire function that vanishes fast.
        with np.errstate(over="ignore"):
            inner = np.exp(-2.0 * x * np.sinh(0.5 * t) ** 2) * (np.cosh(t) if order else 1.0)
        return 0.5 * step * math.fsum(np.where(np.isfinite(inner), inner, 0.0))

    return _chebyshev(value, 34)


def _k(x: Tensor, order: int, scaled: bool) -> Tensor:
    """The function, times exp(x) if it is scaled."""
    small = x <= _NEAR
    inside = _core.where(small & (x > 0), x, _core.ones_like(x))
    outside = _core.where(small, _core.full_like(x, _NEAR), x)
    first, rest = _series_of_k(order)
    q = 0.25 * inside * inside
    log = (0.5 * inside).log()
    if order:
        low = 1.0 / inside + 0.5 * inside * (log * polynomial(q, first) - polynomial(q, rest))
    else:
        low = polynomial(q, rest) - log * polynomial(q, first)
    high = _clenshaw(2.0 * _NEAR / outside - 1.0, _far_part_of_k(order)) / outside.sqrt()
    if scaled:
        low = low * inside.exp()
    else:
        # In two steps, since the exponential vanishes before the function does.
        half = (-0.5 * outside).exp()
        high = half * high * half
    return _edges(x, _core.where(small, low, high), math.inf, 0.0)


def _over(x: Tensor, odd: Tensor, limit: float) -> Tensor:
    """A function of order 1 over x, with its limit at 0."""
    zero = x == 0
    return _core.where(zero, _core.full_like(x, limit), odd / _core.where(zero, _core.ones_like(x), x))


_j0: Apply = of_elements("SpecialBesselJ0", lambda x: _j(x, 0), lambda x: -_j1(x))
_j1: Apply = of_elements("SpecialBesselJ1", lambda x: _j(x, 1), lambda x: _j0(x) - _over(x, _j1(x), 0.5))
_y0: Apply = of_elements("SpecialBesselY0", lambda x: _y(x, 0), lambda x: -_y1(x))
_y1: Apply = of_elements("SpecialBesselY1", lambda x: _y(x, 1), lambda x: _y0(x) - _y1(x) / x)
_k0: Apply = of_elements("SpecialModifiedBesselK0", lambda x: _k(x, 0, False), lambda x: -_k1(x))
_k1: Apply = of_elements("SpecialModifiedBesselK1", lambda x: _k(x, 1, False), lambda x: -_k0(x) - _k1(x) / x)
_k0e: Apply = of_elements("SpecialScaledModifiedBesselK0", lambda x: _k(x, 0, True), lambda x: _k0e(x) - _k1e(x))
_k1e: Apply = of_elements(
    "SpecialScaledModifiedBesselK1", lambda x: _k(x, 1, True), lambda x: _k1e(x) - _k0e(x) - _k1e(x) / x
)


@operation("special_bessel_j0", casts=True)
def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Bessel function of the first kind of order 0.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, zero at infinity.

    Example:
        >>> rgrad.special.bessel_j0(rgrad.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 0.7652, 0.2239])
    """
    return _j0(floating(input))


@operation("special_bessel_j1", casts=True)
def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Bessel function of the first kind of order 1.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, zero at infinity.

    Example:
        >>> rgrad.special.bessel_j1(rgrad.tensor([0.0, 1.0, 2.0]))
        tensor([0.0000, 0.4401, 0.5767])
    """
    return _j1(floating(input))


@operation("special_bessel_y0", casts=True)
def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Bessel function of the second kind of order 0.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, ``-inf`` at 0, nan below.

    Example:
        >>> rgrad.special.bessel_y0(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([-0.4445,  0.0883,  0.5104])
    """
    return _y0(floating(input))


@operation("special_bessel_y1", casts=True)
def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Bessel function of the second kind of order 1.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, ``-inf`` at 0, nan below.

    Example:
        >>> rgrad.special.bessel_y1(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([-1.4715, -0.7812, -0.1070])
    """
    return _y1(floating(input))


@operation("special_modified_bessel_k0", casts=True)
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the modified Bessel function of the second kind of order 0.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0, nan below.

    Example:
        >>> rgrad.special.modified_bessel_k0(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([0.9244, 0.4210, 0.1139])
    """
    return _k0(floating(input))


@operation("special_modified_bessel_k1", casts=True)
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the modified Bessel function of the second kind of order 1.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0, nan below.

    Example:
        >>> rgrad.special.modified_bessel_k1(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([1.6564, 0.6019, 0.1399])
    """
    return _k1(floating(input))


@operation("special_scaled_modified_bessel_k0", casts=True)
def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute :func:`modified_bessel_k0` times ``exp(input)``.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0, nan below.

    Example:
        >>> rgrad.special.scaled_modified_bessel_k0(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([1.5241, 1.1445, 0.8416])
    """
    return _k0e(floating(input))


@operation("special_scaled_modified_bessel_k1", casts=True)
def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute :func:`modified_bessel_k1` times ``exp(input)``.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0, nan below.

    Example:
        >>> rgrad.special.scaled_modified_bessel_k1(rgrad.tensor([0.5, 1.0, 2.0]))
        tensor([2.7310, 1.6362, 1.0335])
    """
    return _k1e(floating(input))
