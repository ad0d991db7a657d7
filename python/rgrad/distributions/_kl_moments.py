"""Divergences between distributions of different classes.

They are the cross entropy less the entropy: ``-E log q - H(p)``. The logarithm of ``q`` is linear in a few functions of
its values, and so the cross entropy needs only the means of these under ``p``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from ..special import digamma, gammaln
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import _infinite_like, _x_log_x, register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant


@dataclass(frozen=True)
class _Moments:
    """Means of functions of ``x`` under ``p``. What is not needed by any pair is not there."""

    mean: Callable[[Any], Tensor] = lambda p: p.mean
    variance: Callable[[Any], Tensor] = lambda p: p.variance
    log: Callable[[Any], Tensor] | None = None
    # Of exp(-x / scale).
    falling: Callable[[Any, Tensor], Tensor] | None = None
    # Where mean and variance are finite.
    has_mean: Callable[[Any], Tensor] | None = None
    has_variance: Callable[[Any], Tensor] | None = None


def _mean_of_log(low: Tensor, high: Tensor) -> Tensor:
    """Of numbers that are uniform between two ends."""
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


def _beta_log(p: Beta) -> Tensor:
    return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)


def _uniform_falling(p: Uniform, scale: Tensor) -> Tensor:
    size = (p.high - p.low) / scale
    return (-p.low / scale).exp() * -(-size).expm1() / size


_OF: dict[type, _Moments] = {
    Beta: _Moments(log=_beta_log),
    ContinuousBernoulli: _Moments(),
    Exponential: _Moments(
        log=lambda p: -euler_constant - p.rate.log(),
        falling=lambda p, scale: p.rate * scale / (p.rate * scale + 1),
    ),
    Gamma: _Moments(
        log=lambda p: digamma(p.concentration) - p.rate.log(),
        falling=lambda p, scale: (-p.concentration * (p.rate * scale).reciprocal().log1p()).exp(),
    ),
    Gumbel: _Moments(),
    Laplace: _Moments(),
    Normal: _Moments(falling=lambda p, scale: (0.5 * (p.scale / scale).pow(2) - p.loc / scale).exp()),
    Pareto: _Moments(
        mean=lambda p: p.alpha * p.scale / (p.alpha - 1),
        variance=lambda p: p.scale.pow(2) * p.alpha / ((p.alpha - 1).pow(2) * (p.alpha - 2)),
        log=lambda p: p.scale.log() + p.alpha.reciprocal(),
        has_mean=lambda p: p.alpha > 1,
        has_variance=lambda p: p.alpha > 2,
    ),
    Uniform: _Moments(log=lambda p: _mean_of_log(p.low, p.high), falling=_uniform_falling),
}


# The cross entropies, by the class of `q`; `p` is one of `_OF`, with its moments.
def _to_beta(p: Uniform, m: _Moments, q: Beta) -> Tensor:
    logs, rest = _mean_of_log(p.low, p.high), _mean_of_log(1 - p.high, 1 - p.low)
    normalizer = q._log_normalizer(q.concentration1, q.concentration0)
    return normalizer - (q.concentration1 - 1) * logs - (q.concentration0 - 1) * rest


def _to_continuous_bernoulli(p: Any, m: _Moments, q: ContinuousBernoulli) -> Tensor:
    made: Tensor = -p.mean * q.logits - _core.logsigmoid(-q.logits) - q._cont_bern_log_norm()
    return made


def _to_exponential(p: Any, m: _Moments, q: Exponential) -> Tensor:
    return q.rate * m.mean(p) - q.rate.log()


def _to_gamma(p: Any, m: _Moments, q: Gamma) -> Tensor:
    assert m.log is not None
    normalizer = gammaln(q.concentration) - q.concentration * q.rate.log()
    return normalizer - (q.concentration - 1) * m.log(p) + q.rate * m.mean(p)


def _to_gumbel(p: Any, m: _Moments, q: Gumbel) -> Tensor:
    assert m.falling is not None
    return q.scale.log() + (m.mean(p) - q.loc) / q.scale + (q.loc / q.scale).exp() * m.falling(p, q.scale)


def _to_laplace(p: Normal, m: _Moments, q: Laplace) -> Tensor:
    away = (p.loc - q.loc) / p.scale
    # The mean distance: of a folded normal distribution.
    distance = math.sqrt(2 / math.pi) * (-0.5 * away * away).exp() + away * _core.erf(away * math.sqrt(0.5))
    return (2 * q.scale).log() + p.scale * distance / q.scale


def _to_normal(p: Any, m: _Moments, q: Normal) -> Tensor:
    spread = (m.variance(p) + (m.mean(p) - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return q.scale.log() + 0.5 * math.log(2 * math.pi) + spread


def _to_pareto(p: Uniform, m: _Moments, q: Pareto) -> Tensor:
    return (q.alpha + 1) * _mean_of_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()


def _to_uniform(p: Any, m: _Moments, q: Uniform) -> Tensor:
    return (q.high - q.low).log()


_TO: dict[type, Callable[[Any, _Moments, Any], Tensor]] = {
    Beta: _to_beta,
    ContinuousBernoulli: _to_continuous_bernoulli,
    Exponential: _to_exponential,
    Gamma: _to_gamma,
    Gumbel: _to_gumbel,
    Laplace: _to_laplace,
    Normal: _to_normal,
    Pareto: _to_pareto,
    Uniform: _to_uniform,
}
# The ends of supports within which values of `p` must lie.
_ENDS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda d: (0, 1),
    ContinuousBernoulli: lambda d: (0, 1),
    Exponential: lambda d: (0, math.inf),
    Gamma: lambda d: (0, math.inf),
    Pareto: lambda d: (d.scale, math.inf),
    Uniform: lambda d: (d.low, d.high),
}
_FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_POSITIVE = (Exponential, Gamma)
_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
# A support that is never within that of `q`; for each class the parameter that has the shape of the batch.
_INFINITE: dict[type, tuple[str, tuple[type, ...]]] = {
    Beta: ("concentration1", (Pareto,)),
    ContinuousBernoulli: ("probs", (Pareto,)),
    Exponential: ("rate", (*_BOUNDED, Pareto)),
    Gamma: ("concentration", (*_BOUNDED, Pareto)),
    Gumbel: ("loc", (*_BOUNDED, *_POSITIVE, Pareto)),
    Laplace: ("loc", (*_BOUNDED, *_POSITIVE, Pareto)),
    Normal: ("loc", (*_BOUNDED, *_POSITIVE, Pareto)),
    Pareto: ("scale", _BOUNDED),
    Poisson: ("rate", (Bernoulli, Binomial)),
}


def _by_moments(p: Any, q: Any, of: type, to: type) -> Tensor:
    m = _OF[of]
    made: Tensor = _TO[to](p, m, q) - p.entropy()
    exists = m.has_variance if to is Normal else m.has_mean
    if exists is not None:
        made = made.masked_fill(~exists(p), math.inf)
    if Uniform in (of, to) and to in _ENDS:
        (low, high), (least, most) = _ENDS[of](p), _ENDS[to](q)
        made = made.masked_fill((low < least) | (high > most), math.inf)
    return made


def _infinite(p: Any, q: Any, name: str) -> Tensor:
    return _infinite_like(getattr(p, name))


def _register() -> None:
    for of, others in _FINITE.items():
        for to in others:
            register_kl(of, to)(partial(_by_moments, of=of, to=to))
    for of, (name, others) in _INFINITE.items():
        for to in others:
            register_kl(of, to)(partial(_infinite, name=name))


_register()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    # The factorials of 0 and 1 are 1.
    return q.rate - p.mean * q.rate.log() - p.entropy()


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return away + ratio * euler_constant + (gammaln(1 + ratio) - away).exp() - ratio.log() - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _paretos(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    made = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return made.masked_fill(p.scale < q.scale, math.inf)
