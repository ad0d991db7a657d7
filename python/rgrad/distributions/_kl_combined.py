"""Divergences of distributions that are made of others."""

from __future__ import annotations

from .._core import Tensor
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:  # type: ignore[type-arg]
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "No KL(p || q) is implemented for Independent distributions of different reinterpreted_batch_ndims: got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(HalfNormal, HalfNormal)
@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """The same bijection on both sides changes nothing, and neither does the same half of symmetric distributions."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "No KL(p || q) is implemented for transformed distributions with different transforms or event shapes: got "
            f"{p.transforms} and {q.transforms}, {p.event_shape} and {q.event_shape}"
        )
    return kl_divergence(p.base_dist, q.base_dist)
