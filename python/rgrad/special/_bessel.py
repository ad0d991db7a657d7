"""Modified Bessel functions of the first kind, of orders 0 and 1."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import Apply, floating, of_elements


def _ratio(x: Tensor, odd: Tensor, limit: float) -> Tensor:
    """A function of order 1 over x, with its limit at 0."""
    zero = x == 0
    return _core.where(zero, _core.full_like(x, limit), odd / _core.where(zero, _core.ones_like(x), x))


_i0_apply: Apply = of_elements("I0", "i0", lambda x: _i1_apply(x))  # noqa: PLW0108
_i0e_apply: Apply = of_elements("SpecialI0E", "i0e", lambda x: _i1e_apply(x) - x.sgn() * _i0e_apply(x))
_i1_apply: Apply = of_elements("SpecialI1", "i1", lambda x: _i0_apply(x) - _ratio(x, _i1_apply(x), 0.5))
_i1e_apply: Apply = of_elements(
    "SpecialI1E",
    "i1e",
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
