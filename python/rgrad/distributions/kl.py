"""Divergences between distributions (Kullback and Leibler), by pairs of their classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .distribution import Distribution
from .exp_family import ExponentialFamily, _statistics
from .utils import _sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_Rule = Callable[[Any, Any], Any]

# The rules that were registered, and those found for pairs of classes since the last registration.
_KL_REGISTRY: dict[tuple[type, type], _Rule] = {}
_KL_MEMOIZE: dict[tuple[type, type], _Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """Decorate the function of a pair of classes; subclasses use it too, unless there is a closer one.

    Args:
        type_p: The class of the first one.
        type_q: The class of the second one.

    Returns:
        The decorator.

    Raises:
        TypeError: One of them is no class.

    Example:
        >>> class Point(rgrad.distributions.Distribution):
        ...     arg_constraints = {}
        >>> @rgrad.distributions.register_kl(Point, rgrad.distributions.Normal)
        ... def kl_point_normal(p, q):
        ...     return q.mean
        >>> rgrad.distributions.kl_divergence(Point(), rgrad.distributions.Normal(3.0, 1.0))
        tensor(3.)
    """
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        # Any class: libraries register bases of their own that distributions get by multiple inheritance.
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(rule: _Rule) -> _Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        _KL_MEMOIZE.clear()
        return rule

    return decorate


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function of the closest pair of classes, by the class of ``p`` first, or NotImplemented."""
    of_p, of_q = type_p.__mro__, type_q.__mro__
    pairs = [(a, b) for a, b in _KL_REGISTRY if a in of_p and b in of_q]
    if not pairs:
        return NotImplemented
    left = min(pairs, key=lambda pair: (of_p.index(pair[0]), of_q.index(pair[1])))
    right = min(pairs, key=lambda pair: (of_q.index(pair[1]), of_p.index(pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


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
    types = type(p), type(q)
    rule = _KL_MEMOIZE.get(types)
    if rule is None:
        rule = _KL_MEMOIZE[types] = _dispatch_kl(*types)
    if rule is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    made: Tensor = rule(p, q)
    return made


def _infinite_like(tensor: Tensor) -> Tensor:
    """What a divergence is where ``p`` has values that ``q`` never has."""
    return _core.full_like(tensor, math.inf)


def _x_log_x(tensor: Tensor) -> Tensor:
    """``x * log(x)``, which is 0 at 0."""
    return _core.xlogy(tensor, tensor)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer, between two of one family."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            f"divergences: got {type(p).__name__} and {type(q).__name__}"
        )
    of_p, normalizer, means = _statistics(p)
    of_q = q._natural_params
    made = q._log_normalizer(*of_q) - normalizer
    for ours, other, mean in zip(of_p, of_q, means, strict=True):
        # A parameter may have fewer dimensions than a value, as the degrees of freedom of matrices have.
        made = made - _sum_rightmost((other - ours) * mean, ours.dim() - len(p.batch_shape))
    return made
