"""Distances as modules."""

from ..._core import Tensor
from .. import functional as F
from .module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along ``dim``.

    Args:
        dim: The dimension of the vectors.
        eps: The smallest norm that is divided by.

    Shape:
        Inputs: any, broadcast; output: without ``dim``.

    Example:
        >>> nn.CosineSimilarity()(rgrad.tensor([[1.0, 0.0]]), rgrad.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.cosine_similarity`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        p: The order of the norm.
        eps: Added to each difference.
        keepdim: Keep the last dimension, with size 1.

    Shape:
        Inputs: ``(N, D)`` or ``(D)``; output: ``(N)`` or ``()``.

    Example:
        >>> nn.PairwiseDistance()(rgrad.tensor([[3.0, 0.0]]), rgrad.tensor([[0.0, 4.0]]))
        tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.pairwise_distance`."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
