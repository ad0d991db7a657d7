"""The gamma function and what belongs to it."""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import Apply, floating, floating_pair, of_elements

# Bernoulli's numbers of even index, from B2.
_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)


def polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    """Horner's rule; the constant comes first."""
    made = _core.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        made = made * x + c
    return made


STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI[:9], 1)]


def _positive_zeta(s: Tensor, q: Tensor, terms: int = 10) -> Tensor:
    """Hurwitz's zeta function for q > 0 by the formula of Euler and Maclaurin."""
    made = _core.zeros_like(q)
    for k in range(terms):
        made = made + (q + float(k)).pow(-s)
    a = q + float(terms)
    power = a.pow(-s)
    made = made + a * power / (s - 1.0) + 0.5 * power
    factor, factorial = s * power / a, 2.0
    for j, b in enumerate(_BERNOULLI, 1):
        made = made + factor * (b / factorial)
        factor = factor * ((s + (2.0 * j - 1.0)) * (s + 2.0 * j)) / (a * a)
        factorial *= (2 * j + 1) * (2 * j + 2)
    # Far terms are 0 times infinity where the power is 0.
    return _core.where(power == 0, _core.where(q.isinf(), _core.zeros_like(q), q.pow(-s)), made)


# From here down zeta adds up term by term.
_LOWEST = -4096.0


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    negative = (q < 0) & (q > _LOWEST)
    steps = int((-q[negative].min()).ceil().item()) if q.device.type != "meta" and bool(negative.any()) else 0
    made, y = _core.zeros_like(q), q
    for _ in range(steps):
        below = y < 0
        made = made + _core.where(below, y.pow(-s), _core.zeros_like(y))
        y = _core.where(below, y + 1.0, y)
    made = made + _positive_zeta(s, _core.where(y > 0, y, _core.ones_like(y)))
    nan, inf = _core.full_like(q, math.nan), _core.full_like(q, math.inf)
    made = _core.where((q < 0) & ((s != s.floor()) | (q <= _LOWEST)), nan, made)
    made = _core.where((q <= 0) & (q == q.floor()), inf, made)
    made = _core.where(s == 1, inf, _core.where(s < 1, nan, made))
    return _core.where(q.isnan() | s.isnan(), nan, made)


def _cotangent_derivative(n: int) -> list[float]:
    """The coefficients of the n-th derivative of cot(u) as a polynomial in cot(u)."""
    made = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(made)][1:]
        made = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return made


def _polygamma_value(n: int, x: Tensor) -> Tensor:
    sign = 1.0 if n % 2 else -1.0
    negative = x < 0
    y = _core.where(negative, 1.0 - x, x)
    order = _core.full_like(y, n + 1.0)
    values = sign * (_positive_zeta(order, y) * math.gamma(n + 1) if n < 170 else y * math.inf)
    part = x - _core.round(x)
    cotangent = 1.0 / _core.tan(math.pi * part)
    mirrored = -sign * values - math.pi ** (n + 1) * polynomial(cotangent, _cotangent_derivative(n))
    made = _core.where(negative, mirrored, values)
    return _core.where((x <= 0) & (x == x.floor()), _core.full_like(x, sign * math.inf), made)


def _polygamma(n: int, x: Tensor) -> Tensor:
    if n == 0:
        return _digamma_apply(x)
    apply = _ORDERS.get(n)
    if apply is None:
        apply = of_elements("Polygamma", lambda x: _polygamma_value(n, x), lambda x: _polygamma(n + 1, x))
        _ORDERS[n] = apply
    return apply(x)


_ORDERS: dict[int, Callable[..., Tensor]] = {1: of_elements("Polygamma", "trigamma", lambda x: _polygamma(2, x))}
_digamma_apply = of_elements("Digamma", "digamma", lambda x: _polygamma(1, x))
_lgamma_apply = of_elements("Lgamma", "lgamma", _digamma_apply)
_zeta_apply: Apply = of_elements("SpecialZeta", _zeta, "zeta", lambda s, q: -s * _zeta_apply(s + 1.0, q))


@operation("lgamma", casts=True)
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the logarithm of the magnitude of the gamma function.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0 and at the negative integers.

    Example:
        >>> rgrad.lgamma(rgrad.tensor([0.5, 1.0, 5.0]))
        tensor([0.5724, 0.0000, 3.1781])
    """
    return _lgamma_apply(floating(input))


@operation("digamma", casts=True)
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the derivative of the logarithm of the gamma function.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, infinite at 0 and nan at the negative integers.

    Example:
        >>> rgrad.digamma(rgrad.tensor([1.0, 0.5]))
        tensor([-0.5772, -1.9635])
    """
    return _digamma_apply(floating(input))


@operation("polygamma", casts=True)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the ``n``-th derivative of :func:`digamma`.

    Args:
        n: The order, 0 or more.
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Raises:
        RuntimeError: ``n`` is negative.

    Example:
        >>> rgrad.polygamma(1, rgrad.tensor([1.0, 0.5]))
        tensor([1.6449, 4.9348])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(n, floating(input))


@operation("special_zeta", casts=True)
def zeta(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Compute Hurwitz's zeta function, the sum of ``(other + k) ** -input`` over ``k`` from 0.

    Args:
        input: The exponent, more than 1: a tensor or a number.
        other: A tensor or a number; there is a gradient for it alone.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Example:
        >>> rgrad.special.zeta(rgrad.tensor([2.0, 4.0]), 1)
        tensor([1.6449, 1.0823])
    """
    return _zeta_apply(*floating_pair(input, other))


@operation("mvlgamma", casts=True)
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """Compute the logarithm of the multivariate gamma function of dimension ``p``.

    Args:
        input: A tensor; integers become floats.
        p: The dimension, 1 or more.
        out: Where the result is written.

    Returns:
        A tensor of the same shape, nan or infinite at elements up to ``(p - 1) / 2``.

    Raises:
        RuntimeError: ``p`` is less than 1.

    Example:
        >>> rgrad.mvlgamma(rgrad.tensor([3.0]), 2)
        tensor([1.5502])
    """
    if input.dtype == _core.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = floating(input)
    steps = -0.5 * _core.arange(p, dtype=x.dtype, device=x.device)
    made = _lgamma_apply(x.unsqueeze(-1) + steps).sum(-1) + p * (p - 1) / 4.0 * math.log(math.pi)
    return made
