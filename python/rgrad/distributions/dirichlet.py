"""Dirichlet's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime.info import finfo
from ..autograd.function import Function, once_differentiable
from ..special import digamma, gammaln
from . import constraints
from ._parametric import Parametric
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient of concentrations from that of their samples.

    Each class alone has a beta distribution. What it gains the others lose in the proportions that they have.
    """
    total = concentration.sum(-1, keepdim=True).expand_as(concentration)
    gained = grad_output - (x * grad_output).sum(-1, keepdim=True)
    return _core._dirichlet_grad(x, concentration, total) * gained


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = _core._sample_dirichlet(concentration)
        # Neither 0 nor 1, where densities may be infinite.
        info = finfo(x.dtype)
        x = x.clamp(min=info.tiny, max=1 - info.eps / 2)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad)


class Dirichlet(Parametric, ExponentialFamily):
    """The distribution of probabilities of classes.

    Args:
        concentration: The weights of the classes along the last dimension, more than 0.
        validate_args: Check parameters and values.

    Raises:
        ValueError: There is no dimension, or a weight is not positive.

    Example:
        >>> rgrad.distributions.Dirichlet(rgrad.ones(3)).log_prob(rgrad.tensor([0.2, 0.3, 0.5]))
        tensor(0.6931)
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True
    _state = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        # With weights below 1 alone each corner has an infinite density; the first is given.
        corners = (self.concentration < 1).all(-1, keepdim=True)
        first = _core.zeros_like(above)
        first[..., 0] = 1
        return _core.where(corners, first, above / above.sum(-1, keepdim=True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        made: Tensor = _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))
        return made

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return _core.xlogy(self.concentration - 1, value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        weights = self.concentration
        total = weights.sum(-1)
        return (
            self._log_normalizer(weights)
            + (total - weights.shape[-1]) * digamma(total)
            - ((weights - 1) * digamma(weights)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return gammaln(x).sum(-1) - gammaln(x.sum(-1))
