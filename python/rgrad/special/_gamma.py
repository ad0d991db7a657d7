"""Functions of the gamma function whose signature is more than operands."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from .._operation.composed import floating


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
    return _core._polygamma_of(n, floating(input, "trigamma"))


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
    x = floating(input, "arange_cpu")
    steps = -0.5 * _core.arange(p, dtype=x.dtype, device=x.device)
    made = _core.lgamma(x.unsqueeze(-1) + steps).sum(-1) + p * (p - 1) / 4.0 * math.log(math.pi)
    return made
