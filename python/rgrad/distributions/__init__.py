"""Probability distributions: the normal and the uniform one, those of truth values and classes, and divergences."""

from . import constraints as constraints
from ._continuous import Normal as Normal
from ._continuous import Uniform as Uniform
from ._discrete import Bernoulli as Bernoulli
from ._discrete import Categorical as Categorical
from .distribution import Distribution as Distribution
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Normal",
    "Uniform",
    "constraints",
    "kl_divergence",
    "register_kl",
]
