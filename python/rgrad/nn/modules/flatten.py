"""Reshaping as modules."""

from collections.abc import Sequence

from ..._core import Tensor
from ._text import options
from .module import Module


class Flatten(Module):
    """Joins consecutive dimensions into one.

    Args:
        start_dim: The first dimension; by default all but the batch are joined.
        end_dim: The last dimension.

    Shape:
        Input: ``(*, S_start, ..., S_end, *)``; output: ``(*, S_start ... S_end, *)``.

    Example:
        >>> nn.Flatten()(rgrad.ones(2, 3, 4)).shape
        rgrad.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Give ``input`` with its dimensions joined: a view where strides allow it."""
        return input.flatten(self.start_dim, self.end_dim)

    extra_repr = options("start_dim", "end_dim")


class Unflatten(Module):
    """Splits one dimension into several.

    Args:
        dim: The dimension.
        unflattened_size: The sizes that it is split into; one of them may be -1.

    Raises:
        TypeError: ``unflattened_size`` is no tuple of ints.

    Shape:
        Input: ``(*, S_dim, *)``; output: ``(*, U1, ..., Un, *)``, where the product of the U is S_dim.

    Example:
        >>> nn.Unflatten(1, (2, -1))(rgrad.ones(5, 6)).shape
        rgrad.Size([5, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Give a view of ``input`` with its dimension split."""
        return input.unflatten(self.dim, self.unflattened_size)

    extra_repr = options("dim", "unflattened_size")
