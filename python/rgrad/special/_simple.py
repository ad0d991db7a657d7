"""Functions of elements that are a few operations."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import floating, floating_pair, of_elements


def _sinc_value(x: Tensor) -> Tensor:
    zero = x == 0
    angle = _core.where(zero, _core.ones_like(x), x) * math.pi
    return _core.where(zero, _core.ones_like(x), angle.sin() / angle)


def _sinc_slope(x: Tensor) -> Tensor:
    # Near 0 the difference cancels; its series is that of sin and cos.
    near = x.abs() < 0.02
    angle = _core.where(near, _core.ones_like(x), x) * math.pi
    away = (angle.cos() - angle.sin() / angle) / _core.where(near, _core.ones_like(x), x)
    t = _core.where(near, x, _core.zeros_like(x)) * math.pi
    square = t * t
    close = -math.pi * t * (1.0 / 3.0 - square * (1.0 / 30.0 - square * (1.0 / 840.0 - square * (1.0 / 45360.0))))
    return _core.where(near, close, away)


def _entr_value(x: Tensor) -> Tensor:
    made = -x * x.log()
    made = _core.where(x == 0, _core.zeros_like(x), made)
    return _core.where(x < 0, _core.full_like(x, -math.inf), made)


def _xlog1py_value(a: Tensor, b: Tensor) -> Tensor:
    return _core.where((a == 0) & ~b.isnan(), _core.zeros_like(a), a * b.log1p())


def _xlog1py_slope(a: Tensor, b: Tensor) -> Tensor:
    flat = (a == 0) & (b <= -1)
    return _core.where(flat, _core.zeros_like(b), b).log1p()


_sinc_apply = of_elements("Sinc", _sinc_value, _sinc_slope)
_entr_apply = of_elements("SpecialEntr", _entr_value, lambda x: -x.log() - 1.0)
_xlog1py_apply = of_elements("SpecialXlog1Py", _xlog1py_value, _xlog1py_slope, lambda a, b: a / (b + 1.0))


@operation("sinc", casts=True)
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``sin(pi * x) / (pi * x)``, and 1 at 0.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.sinc(rgrad.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    return _sinc_apply(floating(input))


@operation("special_entr", casts=True)
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``-x * log(x)``: 0 at 0, minus infinity below.

    Args:
        input: A tensor; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.special.entr(rgrad.tensor([0.5, 0.0, -1.0]))
        tensor([0.3466, 0.0000,   -inf])
    """
    return _entr_apply(floating(input))


@operation("special_xlog1py", casts=True)
def xlog1py(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Compute ``input * log1p(other)``, and 0 where ``input`` is 0 and ``other`` is not nan.

    Args:
        input: A tensor or a number.
        other: A tensor or a number.
        out: Where the result is written.

    Returns:
        A tensor of the broadcast shape.

    Example:
        >>> rgrad.special.xlog1py(rgrad.tensor([0.0, 2.0]), rgrad.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863])
    """
    return _xlog1py_apply(*floating_pair(input, other))
