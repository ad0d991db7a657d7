"""Dropout."""

from ..._core import Tensor
from .. import functional as F
from .module import Module


class Dropout(Module):
    """In training, zeroes each element with probability ``p`` and multiplies the others by ``1 / (1 - p)``.

    In evaluation mode it gives its input back (Srivastava et al. 2014).

    Args:
        p: The probability.
        inplace: Write the result into the input.

    Raises:
        ValueError: ``p`` is not in ``[0, 1]``.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> layer = nn.Dropout(0.2)
        >>> layer(rgrad.ones(1000)).unique()
        tensor([0.0000, 1.2500])
        >>> layer.eval()(rgrad.ones(3))
        tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Give ``input`` with elements dropped, and ``input`` itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace) if self.training else input

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
