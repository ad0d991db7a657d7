"""Divergences between normal distributions of vectors, whose covariances are full or of low rank.

That of two distributions of ``n`` numbers, with covariances ``P`` and ``Q`` and means that differ by ``d``, is half of
``log det(Q) - log det(P) + trace(Q^-1 P) + d.T @ Q^-1 @ d - n``. A covariance is a factor times its transpose, and for
one of low rank a diagonal besides.
"""

from __future__ import annotations

from itertools import product

from .. import _core
from .._core import Tensor
from ..linalg import solve_triangular
from .kl import register_kl
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _log_diagonal


def _squares(matrix: Tensor) -> Tensor:
    return matrix.pow(2).sum((-2, -1))


class _Full:
    def __init__(self, d: MultivariateNormal) -> None:
        self.factor, self.diagonal = d._unbroadcasted_scale_tril, None

    def log_det(self) -> Tensor:
        return 2 * _log_diagonal(self.factor)

    def form(self, x: Tensor) -> Tensor:
        return _batch_mahalanobis(self.factor, x)

    def trace(self, factor: Tensor) -> Tensor:
        """The trace of the inverse times a factor and its transpose."""
        return _squares(solve_triangular(self.factor, factor, upper=False))

    def trace_of_diagonal(self, diagonal: Tensor) -> Tensor:
        return self.trace(_core.diag_embed(diagonal.sqrt()))


class _LowRank:
    def __init__(self, d: LowRankMultivariateNormal) -> None:
        self.factor, self.diagonal, self.capacitance = d._parts()

    def log_det(self) -> Tensor:
        return _batch_lowrank_logdet(self.factor, self.diagonal, self.capacitance)

    def form(self, x: Tensor) -> Tensor:
        return _batch_lowrank_mahalanobis(self.factor, self.diagonal, x, self.capacitance)

    def _half(self) -> Tensor:
        """What the inverse lacks from that of the diagonal, as the product of this's transpose and this."""
        return solve_triangular(self.capacitance, self.factor.mT / self.diagonal.unsqueeze(-2), upper=False)

    def trace(self, factor: Tensor) -> Tensor:
        return _squares(factor * self.diagonal.rsqrt().unsqueeze(-1)) - _squares(self._half() @ factor)

    def trace_of_diagonal(self, diagonal: Tensor) -> Tensor:
        lacking = _squares(self._half() * diagonal.sqrt().unsqueeze(-2))
        return (diagonal / self.diagonal).sum(-1) - lacking


def _divergence(
    p: MultivariateNormal | LowRankMultivariateNormal, q: MultivariateNormal | LowRankMultivariateNormal
) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed: "
            f"got {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    ours, other = (_Full(d) if isinstance(d, MultivariateNormal) else _LowRank(d) for d in (p, q))
    trace = other.trace(ours.factor)
    if ours.diagonal is not None:
        trace = trace + other.trace_of_diagonal(ours.diagonal)
    return 0.5 * (other.log_det() - ours.log_det() + trace + other.form(q.loc - p.loc) - p.event_shape[0])


for _pair in product((MultivariateNormal, LowRankMultivariateNormal), repeat=2):
    register_kl(*_pair)(_divergence)
