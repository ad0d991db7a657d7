"""Exponential families: densities that are the exponential of a product of parameters and statistics."""

from __future__ import annotations

from .._core import Tensor, is_grad_enabled
from ..autograd.backward import grad
from ..autograd.grad_mode import enable_grad
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions with the density ``exp(<t(x), theta> - F(theta) + k(x))``.

    A subclass gives the natural parameters ``theta``, the log normalizer ``F`` and the mean of the carrier measure
    ``k``; the entropy follows from them (Nielsen and Nock, Entropies and cross-entropies of exponential families,
    2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """The natural parameters: tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """The logarithm of the normalizer of natural parameters."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        """The mean of the carrier measure, whose gradient is not needed."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Compute the entropy with the derivative of the log normalizer.

        Returns:
            Shape ``batch_shape``.
        """
        params, normalizer, means = _statistics(self)
        made = normalizer - self._mean_carrier_measure
        for param, mean in zip(params, means, strict=True):
            made = made - _sum_rightmost(param * mean, param.dim() - len(self.batch_shape))
        return made


def _statistics(d: ExponentialFamily) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """The natural parameters, the log normalizer, and the means of the statistics, which are its derivatives.

    They are connected with the parameters of the distribution where these have gradients.
    """
    given = list(d._natural_params)
    wanted = is_grad_enabled() and any(p.requires_grad for p in given)
    with enable_grad():
        params = [p if wanted and p.requires_grad else p.detach().requires_grad_() for p in given]
        normalizer = d._log_normalizer(*params)
        means = list(grad(normalizer.sum(), params, create_graph=wanted))
    if not wanted:
        params, normalizer = [p.detach() for p in params], normalizer.detach()
    return params, normalizer, means
