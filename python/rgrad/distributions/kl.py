"""Divergences between distributions (Kullback and Leibler)."""

from __future__ import annotations

import math
import warnings
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


def _rule(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor] | None:
    """The function of the closest pair of classes, by the class of ``p`` first."""
    of_p, of_q = type_p.__mro__, type_q.__mro__
    pairs = [(a, b) for a, b in _RULES if a in of_p and b in of_q]
    if not pairs:
        return None
    left = min(pairs, key=lambda pair: (of_p.index(pair[0]), of_q.index(pair[1])))
    right = min(pairs, key=lambda pair: (of_q.index(pair[1]), of_p.index(pair[0])))
    if _RULES[left] is not _RULES[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _RULES[left]


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
    rule = _rule(type(p), type(q))
    if rule is not None:
        return rule(p, q)
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
    return _core.full_like(p.loc, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    def part(made: Tensor, never_p: Tensor, never_q: Tensor) -> Tensor:
        made = _core.where(never_q, _core.full_like(made, math.inf), made)
        return _core.where(never_p, _core.zeros_like(made), made)

    softplus = _core.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return part(ones, p.probs == 0, q.probs == 0) + part(zeros, p.probs == 1, q.probs == 1)


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    made = p.probs * (p.logits - q.logits)
    made = _core.where((q.probs == 0).expand(made.shape), _core.full_like(made, math.inf), made)
    made = _core.where((p.probs == 0).expand(made.shape), _core.zeros_like(made), made)
    return made.sum(-1)
