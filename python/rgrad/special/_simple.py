"""The function sinc, a few operations."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import of_elements


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


# Of complex numbers; real ones have a kernel.
_sinc_apply = of_elements("Sinc", _sinc_value, _sinc_slope, holomorphic=True)


@operation("sinc", casts=True)
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``sin(pi * x) / (pi * x)``, and 1 at 0.

    Args:
        input: A tensor, real or complex; integers become floats.
        out: Where the result is written.

    Returns:
        A tensor of the same shape.

    Example:
        >>> rgrad.sinc(rgrad.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    return _sinc_apply(input) if input.is_complex() else _core._sinc(input)
