"""Divergences between distributions (Kullback and Leibler)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ._continuous import Normal, Uniform
from ._discrete import Bernoulli, Categorical
from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_RULES: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """Decorate the function of a pair of distributions.

    Args:
        type_p: The class of the first one.
        type_q: The class of the second one.

    Returns:
        The decorator.

    Raises:
        TypeError: One of them is no class of distributions.
    """
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(rule: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _RULES[type_p, type_q] = rule
        return rule

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Compute the mean of ``log(p / q)`` under ``p``.

    Args:
        p: A distribution.
        q: A distribution.

    Returns:
        Shape ``batch_shape``.

    Raises:
        NotImplementedError: There is no function for this pair.

    Example:
        >>> Normal = rgrad.distributions.Normal
        >>> rgrad.distributions.kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5000)
    """
    for of_p in type(p).__mro__:
        for of_q in type(q).__mro__:
            if (of_p, of_q) in _RULES:
                return _RULES[of_p, of_q](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
    )


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return _core.where((q.low > p.low) | (q.high < p.high), _core.full_like(made, math.inf), made)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    size = p.high - p.low
    spread = (math.sqrt(2 * math.pi) * q.scale / size).log()
    return spread + 0.5 * (size.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / q.scale.pow(2)


@register_kl(Normal, Uniform)
def _normal_uniform(p: Normal, q: Uniform) -> Tensor:
    return _core.full_like(p.loc + q.low, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    def part(a: Tensor, of_p: Tensor, of_q: Tensor) -> Tensor:
        made = a * (of_p - of_q)
        return _core.where(a == 0, _core.zeros_like(made), made)

    softplus = _core.softplus
    made = part(p.probs, -softplus(-p.logits), -softplus(-q.logits))
    made = made + part(1 - p.probs, -softplus(p.logits), -softplus(q.logits))
    impossible = ((q.probs == 0) & (p.probs != 0)) | ((q.probs == 1) & (p.probs != 1))
    return _core.where(impossible, _core.full_like(made, math.inf), made)


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    made = p.probs * (p.logits - q.logits)
    made = _core.where((q.probs == 0).expand(made.shape), _core.full_like(made, math.inf), made)
    made = _core.where((p.probs == 0).expand(made.shape), _core.zeros_like(made), made)
    return made.sum(-1)
