"""Orthogonal polynomials, by their recurrences (Abramowitz, Stegun 22.7). They have no derivatives, as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import floating_pair, of_elements
from ..autograd.grad_mode import no_grad

_Step = Callable[[float, Tensor, Tensor, Tensor], Tensor]


def _recurrence(name: str, first: Callable[[Tensor], Tensor], step: _Step) -> Callable[..., Tensor]:
    """A function of elements and degrees: 1, ``first``, and then each from the two before it."""

    def value(x: Tensor, n: Tensor) -> Tensor:
        n = n.trunc()
        top = int(n.max().item()) if n.numel() and x.device.type != "meta" else 0
        before, last = _core.ones_like(x), first(x)
        made = _core.where(n == 0, before, _core.where(n == 1, last, _core.zeros_like(x)))
        for k in range(1, top):
            before, last = last, step(float(k), x, last, before)
            made = _core.where(n == k + 1, last, made)
        return _core.where(x.isnan() & (n > 0), _core.full_like(x, math.nan), made)

    return of_elements(name, value, None, None)


def _named(name: str, apply: Callable[..., Tensor], what: str) -> Callable[..., Tensor]:
    def made(input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None) -> Tensor:
        with no_grad():
            return apply(*floating_pair(input, n))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""Compute {what} of degree ``n``.

    Args:
        input: The argument: a tensor or a number.
        n: The degree; the result is 0 for negative degrees.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.
    """
    return operation(f"special_{name}", casts=True)(made)


def _twice(k: float, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return 2.0 * x * last - before


chebyshev_polynomial_t = _named(
    "chebyshev_polynomial_t", _recurrence("ChebyshevT", lambda x: x, _twice), "Chebyshev's polynomial of the first kind"
)
chebyshev_polynomial_u = _named(
    "chebyshev_polynomial_u",
    _recurrence("ChebyshevU", lambda x: 2.0 * x, _twice),
    "Chebyshev's polynomial of the second kind",
)
chebyshev_polynomial_v = _named(
    "chebyshev_polynomial_v",
    _recurrence("ChebyshevV", lambda x: 2.0 * x - 1.0, _twice),
    "Chebyshev's polynomial of the third kind",
)
chebyshev_polynomial_w = _named(
    "chebyshev_polynomial_w",
    _recurrence("ChebyshevW", lambda x: 2.0 * x + 1.0, _twice),
    "Chebyshev's polynomial of the fourth kind",
)


def _shifted(x: Tensor) -> Tensor:
    return 2.0 * x - 1.0


def _twice_shifted(k: float, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return 2.0 * _shifted(x) * last - before


shifted_chebyshev_polynomial_t = _named(
    "shifted_chebyshev_polynomial_t",
    _recurrence("ShiftedChebyshevT", _shifted, _twice_shifted),
    "Chebyshev's polynomial of the first kind at ``2 * input - 1``",
)
shifted_chebyshev_polynomial_u = _named(
    "shifted_chebyshev_polynomial_u",
    _recurrence("ShiftedChebyshevU", lambda x: 2.0 * _shifted(x), _twice_shifted),
    "Chebyshev's polynomial of the second kind at ``2 * input - 1``",
)
shifted_chebyshev_polynomial_v = _named(
    "shifted_chebyshev_polynomial_v",
    _recurrence("ShiftedChebyshevV", lambda x: 2.0 * _shifted(x) - 1.0, _twice_shifted),
    "Chebyshev's polynomial of the third kind at ``2 * input - 1``",
)
shifted_chebyshev_polynomial_w = _named(
    "shifted_chebyshev_polynomial_w",
    _recurrence("ShiftedChebyshevW", lambda x: 2.0 * _shifted(x) + 1.0, _twice_shifted),
    "Chebyshev's polynomial of the fourth kind at ``2 * input - 1``",
)
hermite_polynomial_h = _named(
    "hermite_polynomial_h",
    _recurrence("HermiteH", lambda x: 2.0 * x, lambda k, x, last, before: 2.0 * x * last - 2.0 * k * before),
    "the physicists' Hermite polynomial",
)
hermite_polynomial_he = _named(
    "hermite_polynomial_he",
    _recurrence("HermiteHe", lambda x: x, lambda k, x, last, before: x * last - k * before),
    "the probabilists' Hermite polynomial",
)
laguerre_polynomial_l = _named(
    "laguerre_polynomial_l",
    _recurrence(
        "LaguerreL",
        lambda x: 1.0 - x,
        lambda k, x, last, before: ((2.0 * k + 1.0 - x) * last - k * before) / (k + 1.0),
    ),
    "Laguerre's polynomial",
)
legendre_polynomial_p = _named(
    "legendre_polynomial_p",
    _recurrence(
        "LegendreP", lambda x: x, lambda k, x, last, before: ((2.0 * k + 1.0) * x * last - k * before) / (k + 1.0)
    ),
    "Legendre's polynomial",
)
