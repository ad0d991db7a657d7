"""Transforms of numbers, each for itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Size, Tensor
from .._runtime.info import finfo
from . import constraints
from ._transform_base import Transform, _Same
from .distribution import Distribution
from .utils import _sum_rightmost, broadcast_all, lazy_property


class ExpTransform(_Same):
    """The function ``exp(x)``.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.ExpTransform()(rgrad.tensor(0.0))
        tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """The function ``x ** exponent`` of positive numbers.

    Args:
        exponent: The exponent: a tensor or a number.
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.PowerTransform(2.0)(rgrad.tensor(3.0))
        tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def _is_equal(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _core.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, but neither 0 nor 1."""
    info = finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1 - info.eps)


class SigmoidTransform(_Same):
    """The function ``1 / (1 + exp(-x))``; the inverse is the logit.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.SigmoidTransform()(rgrad.tensor(0.0))
        tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _core.logsigmoid(x) + _core.logsigmoid(-x)


class SoftplusTransform(_Same):
    """The function ``log(1 + exp(x))``, which is ``x`` above 20.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.SoftplusTransform()(rgrad.tensor(0.0))
        tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _core.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _core.logsigmoid(x)


class TanhTransform(_Same):
    """The function ``tanh(x)``.

    Outputs that are rounded to 1 have no inverse; a cache gives the input in its place.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.TanhTransform()(rgrad.tensor(0.0))
        tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # 1 - tanh(x)**2 = 4 * exp(-2 * x) * sigmoid(2 * x)**2, without a difference that cancels
        return 2 * (math.log(2) - x + _core.logsigmoid(2 * x))


class AbsTransform(_Same):
    """The function ``abs(x)``, whose inverse gives the nonnegative number.

    Args:
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.AbsTransform()(rgrad.tensor(-2.0))
        tensor(2.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _equal(a: Tensor | float, b: Tensor | float) -> bool:
    return bool((a == b).all()) if isinstance(a, Tensor) or isinstance(b, Tensor) else a == b  # type: ignore[union-attr]


class AffineTransform(Transform):
    """The function ``loc + scale * x``.

    Args:
        loc: What is added: a tensor or a number.
        scale: The factor: a tensor or a number.
        event_dim: How many of the last dimensions make one value.
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> rgrad.distributions.AffineTransform(1.0, 2.0)(rgrad.tensor(3.0))
        tensor(7.)
    """

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def _is_equal(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            # Before the sum, since each element of a value has its factor.
            made = self.scale.abs().log().expand(_core.broadcast_shapes(self.scale.shape, x.shape))
        else:
            made = _core.full_like(x, math.log(abs(self.scale)) if self.scale else -math.inf)
        return _sum_rightmost(made, self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _core.broadcast_shapes(shape, *(getattr(v, "shape", ()) for v in (self.loc, self.scale)))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution.

    Args:
        distribution: The distribution.
        cache_size: 1 to keep the last pair of input and output.

    Example:
        >>> normal = rgrad.distributions.Normal(0.0, 1.0)
        >>> rgrad.distributions.CumulativeDistributionTransform(normal)(rgrad.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _arguments = ("distribution",)

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
