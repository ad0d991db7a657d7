"""Dropout."""

from ..._core import Tensor
from .. import functional as F
from .module import Module


class Dropout(Module):
    """In training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Raises ValueError unless ``0 <= p <= 1``. Source: Srivastava et al. 2014.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``; the input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace) if self.training else input

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
