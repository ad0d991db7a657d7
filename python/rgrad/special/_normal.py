"""The inverse of the error function, and the normal distribution's functions."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import Apply, floating, of_elements

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2 = math.sqrt(2.0)

_erfinv_apply: Apply = of_elements("Erfinv", "erfinv", lambda x: (_erfinv_apply(x) ** 2).exp() * (0.5 * _SQRT_PI))
_ndtri_apply: Apply = of_elements(
    "SpecialNdtri", "ndtri", lambda p: (0.5 * _ndtri_apply(p) ** 2).exp() * math.sqrt(2.0 * math.pi)
)
_erfcx_apply: Apply = of_elements("SpecialErfcx", "erfcx", lambda x: 2.0 * x * _erfcx_apply(x) - 2.0 / _SQRT_PI)
_log_ndtr_apply: Apply = of_elements(
    "SpecialLogNdtr", "log_ndtr", lambda x: math.sqrt(2.0 / math.pi) / _erfcx_apply(x * -(0.5**0.5))
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
        tensor([-454.3213,   -0.6931])
    """
    return _log_ndtr_apply(floating(input))
