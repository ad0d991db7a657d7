"""Normalisation without running statistics."""

from ..._core import Tensor
from .. import functional as F
from .module import Module


class LocalResponseNorm(Module):
    """``x / (k + alpha * mean(x²))**beta``, the mean over the channels around each (Krizhevsky et al. 2012).

    Errors are those of :func:`rgrad.nn.functional.local_response_norm`.

    Args:
        size: How many channels are averaged.
        alpha: The factor of the mean.
        beta: The exponent.
        k: What is added.

    Shape:
        ``(N, C, *)``; the output has the shape of the input.

    Example:
        >>> nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(rgrad.ones(1, 3, 1)).flatten()
        tensor([0.3333, 0.2500, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.local_response_norm`."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
