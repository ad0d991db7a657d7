"""The inverse of the error function, and the normal distribution's functions."""

from __future__ import annotations

import math

from .. import _core
from .._checked import operation
from .._composed import Apply, floating, of_elements
from .._core import Tensor
from ._gamma import polynomial

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2 = math.sqrt(2.0)
# erfcx(x) = sum of (-1)^k (2k - 1)!! / (2 x^2)^k / (x sqrt(pi)) for large x (Abramowitz, Stegun 7.1.23).
_FAR = [1.0]
for _k in range(1, 24):
    _FAR.append(-_FAR[-1] * (2 * _k - 1) / 2.0)


def _inverse_of_complement(q: Tensor, p: Tensor, turns: int) -> Tensor:
    """The x of 0 or more with ``erfc(x) = q`` and ``erf(x) = p``; q and p add up to 1, and each has its own digits.

    Winitzki's approximation and Halley's steps, which triple the digits.
    """
    log = (q * (1.0 + p)).log()
    a = 0.147
    middle = 2.0 / (math.pi * a) + 0.5 * log
    x = ((middle * middle - log / a).sqrt() - middle).sqrt()
    x = _core.where(p < 1e-3, p * (0.5 * _SQRT_PI), x)
    for _ in range(turns):
        error = _core.where(p < 0.5, _core.erf(x) - p, q - _core.erfc(x))
        u = error * (0.5 * _SQRT_PI) * (x * x).clamp(max=709.0).exp()
        x = x - u / (1.0 + x * u)
    return x


def _erfinv(y: Tensor) -> Tensor:
    size = y.abs()
    inside = _core.where(size < 1, size, _core.zeros_like(size))
    made = _core.copysign(_inverse_of_complement(1.0 - inside, inside, 3), y)
    made = _core.where(size == 1, y * math.inf, made)
    return _core.where((size > 1) | y.isnan(), _core.full_like(y, math.nan), made)


def _ndtri(p: Tensor) -> Tensor:
    low = p < 0.5
    tail = _core.where(low, p, 1.0 - p)
    valid = (tail > 0) & (tail <= 0.5)
    q = _core.where(valid, 2.0 * tail, _core.ones_like(p))
    made = _SQRT_2 * _inverse_of_complement(q, 1.0 - q, 6)
    made = _core.where(low, -made, made)
    made = _core.where(p == 0, _core.full_like(p, -math.inf), _core.where(p == 1, _core.full_like(p, math.inf), made))
    return _core.where((p < 0) | (p > 1) | p.isnan(), _core.full_like(p, math.nan), made)


def _erfcx(x: Tensor) -> Tensor:
    size = x.abs()
    near = _core.where(size < 10.0, size, _core.zeros_like(size))
    # exp(x^2) in two factors, the square of the first exactly.
    coarse = (near * 256.0).round() / 256.0
    square = (coarse * coarse).exp() * ((near - coarse) * (near + coarse)).exp()
    far = _core.where(size < 10.0, _core.full_like(size, 10.0), size)
    inverse = 1.0 / far
    tail = polynomial(inverse * inverse, _FAR) * inverse / _SQRT_PI
    made = _core.where(size < 10.0, square * _core.erfc(near), tail)
    coarse = (x * 256.0).round() / 256.0
    mirrored = 2.0 * ((coarse * coarse).exp() * ((x - coarse) * (x + coarse)).exp()) - made
    mirrored = _core.where(size > 30.0, _core.full_like(x, math.inf), mirrored)
    made = _core.where(x < 0, mirrored, made)
    return _core.where(x.isnan(), x, made)


def _log_ndtr(x: Tensor) -> Tensor:
    t = x / _SQRT_2
    low = x < -1.0
    below = _erfcx(_core.where(low, -t, _core.zeros_like(t))).log() - math.log(2.0) - t * t
    above = (-0.5 * _core.erfc(_core.where(low, _core.zeros_like(t), t))).log1p()
    return _core.where(low, _core.where(x == -math.inf, x, below), above)


_erfinv_apply: Apply = of_elements("Erfinv", _erfinv, lambda x: (_erfinv_apply(x) ** 2).exp() * (0.5 * _SQRT_PI))
_ndtri_apply: Apply = of_elements(
    "SpecialNdtri", _ndtri, lambda p: (0.5 * _ndtri_apply(p) ** 2).exp() * math.sqrt(2.0 * math.pi)
)
_erfcx_apply: Apply = of_elements("SpecialErfcx", _erfcx, lambda x: 2.0 * x * _erfcx_apply(x) - 2.0 / _SQRT_PI)
_log_ndtr_apply: Apply = of_elements(
    "SpecialLogNdtr", _log_ndtr, lambda x: math.sqrt(2.0 / math.pi) / _erfcx_apply(x * -(0.5**0.5))
)


@operation("erfinv", casts=True)
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse of the error function.

    Args:
        input: A tensor of elements from -1 to 1; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at -1 and 1 and nan outside.

    Example:
        >>> rgrad.erfinv(rgrad.tensor([0.0, 0.5, -1.0]))
        tensor([0.0000, 0.4769,   -inf])
    """
    return _erfinv_apply(floating(input))


@operation("special_erfcx", casts=True)
def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``exp(input ** 2) * erfc(input)``, which neither overflows nor vanishes for large elements.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.erfcx(rgrad.tensor([0.0, 10.0]))
        tensor([1.0000, 0.0561])
    """
    return _erfcx_apply(floating(input))


@operation("special_ndtr", casts=True)
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the area under the normal density up to each element.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.ndtr(rgrad.tensor([-1.0, 0.0, 1.0]))
        tensor([0.1587, 0.5000, 0.8413])
    """
    return 0.5 * _core.erfc(floating(input) * -(0.5**0.5))


@operation("special_ndtri", casts=True)
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse of :func:`ndtr`.

    Args:
        input: A tensor of elements from 0 to 1; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0 and 1 and nan outside.

    Example:
        >>> rgrad.special.ndtri(rgrad.tensor([0.0, 0.25, 0.5]))
        tensor([   -inf, -0.6745,  0.0000])
    """
    return _ndtri_apply(floating(input))


@operation("special_log_ndtr", casts=True)
def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the logarithm of :func:`ndtr`, accurate where that vanishes.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.log_ndtr(rgrad.tensor([-30.0, 0.0]))
        tensor([-454.3212,   -0.6931])
    """
    return _log_ndtr_apply(floating(input))
