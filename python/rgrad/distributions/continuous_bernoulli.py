"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._parametric import OfProbabilities
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(OfProbabilities, ExponentialFamily):
    """The distribution on 0 to 1 whose density is proportional to ``probs**x * (1 - probs)**(1 - x)``.

    Loaiza-Ganem and Cunningham, The continuous Bernoulli, 2019. In terms of the logits ``t`` it is an exponential
    distribution that is cut off: the density is ``t * exp(t * x) / expm1(t)``.

    Args:
        probs: The parameter, which is no mean, between 0 and 1: a tensor or a number.
        logits: The logarithm of its odds, in its place.
        lims: Between these values of ``probs`` series around 0.5 are used.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Both or neither are given, or ``probs`` is outside of 0 to 1.

    Example:
        >>> rgrad.distributions.ContinuousBernoulli(0.5).log_prob(rgrad.tensor(0.3))
        tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}  # noqa: RUF012
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _state = (*OfProbabilities._state, "_lims")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        self._lims = lims
        if logits is None:
            # Before they are clamped: all that is clamped is valid.
            if validate_args is not None and not constraints.all_inside(constraints.unit_interval.check(self._param)):
                raise ValueError(f"The parameter probs has invalid values. Expected 0 to 1, got {self._param}")
            self.__dict__["probs"] = self._param = clamp_probs(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _slope(self) -> tuple[Tensor, Tensor]:
        """Where the closed forms hold, and the logits there, with a harmless number elsewhere."""
        outside = self._outside_unstable_region()
        return outside, _core.where(outside, self.logits, math.log(self._lims[0] / (1 - self._lims[0])))

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the normalizing constant, ``t / tanh(t / 2)``."""
        outside, t = self._slope()
        square = (self.probs - 0.5).pow(2)
        near = math.log(2) + (4 / 3 + 104 / 45 * square) * square
        return _core.where(outside, (t / (0.5 * t).tanh()).log(), near)

    @property
    def mean(self) -> Tensor:
        outside, t = self._slope()
        x = self.probs - 0.5
        return _core.where(outside, -1 / (-t).expm1() - 1 / t, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        outside, t = self._slope()
        square = (self.probs - 0.5).pow(2)
        near = 1 / 12 - (1 / 15 - 128 / 945 * square) * square
        return _core.where(outside, 1 / t.pow(2) - self.probs * (1 - self.probs) / (0.5 * t).tanh().pow(2), near)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_core.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        made = _core.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - made

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        outside, t = self._slope()
        x = value.clamp(0, 1)
        # expm1(t * x) / expm1(t), which overflows for a large t.
        size = t.abs()
        raised = _core.where(t > 0, size * (x - 1), _core.zeros_like(x * size)).exp()
        return _core.where(outside, raised * (-size * x).expm1() / (-size).expm1(), x)

    def icdf(self, value: Tensor) -> Tensor:
        outside, t = self._slope()
        # log1p(value * expm1(t)) / t, which overflows for a large t.
        bent = _core.logaddexp((-value).log1p(), value.log() + t) / t
        return _core.where(outside, bent, value)

    def entropy(self) -> Tensor:
        return -self.mean * self.logits - self._cont_bern_log_norm() - _core.logsigmoid(-self.logits)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """The logarithm of ``expm1(x) / x``."""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        t = _core.where(outside, x, self._lims[0] - 0.5)
        near = 0.5 * x + x.pow(2) / 24 - x.pow(4) / 2880
        return _core.where(outside, (t.expm1() / t).log(), near)
