"""Divergences between two distributions of one class."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..special import digamma, gammaln
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .uniform import Uniform


def _bernoulli(p: Any, q: Any) -> Tensor:
    def part(chance: Tensor, ours: Tensor, other: Tensor, never: Tensor) -> Tensor:
        made = chance * (_core.logsigmoid(ours) - _core.logsigmoid(other))
        return made.masked_fill(never, math.inf).masked_fill(chance == 0, 0)

    ones = part(p.probs, p.logits, q.logits, q.probs == 0)
    return ones + part(1 - p.probs, -p.logits, -q.logits, q.probs == 1)


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    return (p.total_count * _bernoulli(p, q)).masked_fill(p.total_count > q.total_count, math.inf)


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    made = p.probs * (p.logits - q.logits)
    made = made.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    return made.sum(-1)


def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions, 2019.
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    def constant(d: ContinuousBernoulli) -> Tensor:
        return d._cont_bern_log_norm() + _core.logsigmoid(-d.logits)

    return p.mean * (p.logits - q.logits) + constant(p) - constant(q)


def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    ours, other = p.concentration, q.concentration
    mean_logs = digamma(ours) - digamma(ours.sum(-1, keepdim=True))
    return q._log_normalizer(other) - p._log_normalizer(ours) + ((ours - other) * mean_logs).sum(-1)


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    ours, other = p.concentration, q.concentration
    return (
        other * (p.rate / q.rate).log()
        + gammaln(other)
        - gammaln(ours)
        + (ours - other) * digamma(ours)
        + (q.rate - p.rate) * (ours / p.rate)
    )


def _geometric(p: Geometric, q: Geometric) -> Tensor:
    made: Tensor = -p.entropy() - (-q.probs).log1p() / p.probs - q.logits
    return made


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return ratio * (-away / p.scale).exp() + away / q.scale - ratio.log() - 1


def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return _core.xlogy(p.rate, p.rate) - _core.xlogy(p.rate, q.rate) - (p.rate - q.rate)


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return made.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


_RULES: dict[type, Callable[[Any, Any], Tensor]] = {
    Bernoulli: _bernoulli,
    Beta: lambda p, q: _dirichlet(p._dirichlet, q._dirichlet),
    Binomial: _binomial,
    Categorical: _categorical,
    Cauchy: _cauchy,
    ContinuousBernoulli: _continuous_bernoulli,
    Dirichlet: _dirichlet,
    Exponential: _exponential,
    Gamma: _gamma,
    Geometric: _geometric,
    Laplace: _laplace,
    Normal: _normal,
    OneHotCategorical: lambda p, q: _categorical(p._categorical, q._categorical),
    Poisson: _poisson,
    Uniform: _uniform,
}
for _kind, _rule in _RULES.items():
    register_kl(_kind, _kind)(_rule)
