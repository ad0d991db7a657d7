"""The incomplete gamma functions."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import floating_pair, of_elements
from ._gamma import STIRLING, lgamma, polynomial

# More terms than float64 needs where the argument is below 10^6 times the order; both sums stop earlier.
_MOST = 20000


def _lower_series(a: Tensor, x: Tensor) -> Tensor:
    """The sum of x^k / ((a + 1) ... (a + k)), for x < a + 1."""
    term = _core.ones_like(x)
    made, k = term, 0.0
    while k < _MOST:
        for _ in range(16):
            k += 1.0
            term = term * (x / (a + k))
            made = made + term
        if not bool((term > made * 1e-17).any()):
            break
    return made


def _upper_fraction(a: Tensor, x: Tensor) -> Tensor:
    """Legendre's continued fraction by Lentz's method, for x >= a + 1: it converges to Gamma(a, x) e^x x^-a."""
    b = x + 1.0 - a
    c = _core.full_like(x, 1e300)
    d = 1.0 / b
    made, k = d, 0.0
    while k < _MOST:
        for _ in range(16):
            k += 1.0
            step = -k * (k - a)
            b = b + 2.0
            d = 1.0 / _nonzero(step * d + b)
            c = _nonzero(b + step / c)
            change = d * c
            made = made * change
        if not bool(((change - 1.0).abs() > 1e-16).any()):
            break
    return made


def _nonzero(x: Tensor) -> Tensor:
    return _core.where(x == 0, _core.full_like(x, 1e-300), x)


def _log_of_ratio(a: Tensor, x: Tensor) -> Tensor:
    """The value of a log(x) - x - lgamma(a + 1), without cancellation for large a."""
    plain = a * x.log() - x - lgamma(a + 1.0)
    large = a > 9.0
    n = _core.where(large, a, _core.full_like(a, 10.0))
    inverse = 1.0 / n
    t = (x - n) / n
    near = t.abs() < 0.3
    small = _core.where(near, t, _core.zeros_like(t))
    # log(1 + t) - t, by a series where it cancels.
    series = small * small * polynomial(small, [(-1.0) ** (k + 1) / (k + 2) for k in range(34)])
    far = (x / n).log() - t
    rest = -0.5 * (2.0 * math.pi * n).log() - inverse * polynomial(inverse * inverse, STIRLING)
    return _core.where(large, n * _core.where(near, series, far) + rest, plain)


def _values(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    inside = (a > 0) & (x > 0) & ~a.isinf() & ~x.isinf()
    below = inside & (x < a + 1.0)
    above = inside & ~below
    ones = _core.ones_like(x)
    low_a, low_x = _core.where(below, a, ones), _core.where(below, x, ones)
    low = _log_of_ratio(low_a, low_x).exp() * _lower_series(low_a, low_x)
    high_a, high_x = _core.where(above, a, ones), _core.where(above, x, 2.0 * ones)
    high = _log_of_ratio(high_a, high_x).exp() * high_a * _upper_fraction(high_a, high_x)
    made = _core.where(below, 1.0 - low if upper else low, high if upper else 1.0 - high)
    zero, one = (ones, 0.0 * ones) if upper else (0.0 * ones, ones)
    made = _core.where(x == 0, zero, made)
    made = _core.where(a == 0, one, made)
    made = _core.where(x == math.inf, one, made)
    made = _core.where(a == math.inf, zero, made)
    bad = (a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
    return _core.where(bad, _core.full_like(x, math.nan), made)


def _density(a: Tensor, x: Tensor) -> Tensor:
    return ((a - 1.0) * x.log() - x - lgamma(a)).exp()


_gammainc_apply = of_elements("Igamma", lambda a, x: _values(a, x, False), "igamma: input", _density)
_gammaincc_apply = of_elements(
    "Igammac", lambda a, x: _values(a, x, True), "igammac: input", lambda a, x: -_density(a, x)
)


@operation("special_gammainc", casts=True)
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the lower incomplete gamma function of ``input`` at ``other``, divided by the gamma function.

    Args:
        input: The order, 0 or more.
        other: The upper end of the integral, 0 or more; there is a gradient for it alone.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Example:
        >>> rgrad.special.gammainc(rgrad.tensor([1.0]), rgrad.tensor([2.0]))
        tensor([0.8647])
    """
    return _gammainc_apply(*floating_pair(input, other))


@operation("special_gammaincc", casts=True)
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the upper incomplete gamma function of ``input`` at ``other``, divided by the gamma function.

    Args:
        input: The order, 0 or more.
        other: The lower end of the integral, 0 or more; there is a gradient for it alone.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Example:
        >>> rgrad.special.gammaincc(rgrad.tensor([1.0]), rgrad.tensor([2.0]))
        tensor([0.1353])
    """
    return _gammaincc_apply(*floating_pair(input, other))


igamma = gammainc
igammac = gammaincc
