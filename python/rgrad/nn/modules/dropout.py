"""Dropout."""

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .._docs import described
from ._text import options
from .module import Module

_TEXT = """
    In evaluation mode it gives its input back.

    Args:
        p: The probability.
        inplace: Write the result into the input.

    Raises:
        ValueError: ``p`` is not in ``[0, 1]``.

    Shape:
        {shape}; the output has the shape of the input.
"""


class _DropoutNd(Module):
    _function: Any

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Give ``input`` with parts dropped, and ``input`` itself in evaluation mode."""
        made: Tensor = self._function(input, self.p, self.training, self.inplace)
        return made

    extra_repr = options("p", "inplace")


@described(_TEXT, shape="Any shape")
class Dropout(_DropoutNd):
    """In training, zeroes each element with probability ``p`` and multiplies the others by ``1 / (1 - p)``.

    The source is Srivastava et al. 2014.

    Example:
        >>> layer = nn.Dropout(0.2)
        >>> layer(rgrad.ones(1000)).unique()
        tensor([0.0000, 1.2500])
        >>> layer.eval()(rgrad.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Give ``input`` with elements dropped, and ``input`` itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace) if self.training else input


@described(_TEXT, shape="``(N, C, L)`` or ``(C, L)``")
class Dropout1d(_DropoutNd):
    """In training, zeroes whole channels with probability ``p`` and multiplies the others by ``1 / (1 - p)``.

    Example:
        >>> nn.Dropout1d().eval()(rgrad.ones(2, 3, 4)).unique()
        tensor([1.])
    """

    _function = staticmethod(F.dropout1d)


@described(_TEXT, shape="``(N, C, H, W)`` or ``(N, C, L)``")
class Dropout2d(_DropoutNd):
    """In training, zeroes whole channels of images with probability ``p`` and scales the others by ``1 / (1 - p)``.

    Example:
        >>> nn.Dropout2d().eval()(rgrad.ones(2, 3, 4, 4)).unique()
        tensor([1.])
    """

    _function = staticmethod(F.dropout2d)


@described(_TEXT, shape="``(N, C, D, H, W)`` or ``(C, D, H, W)``")
class Dropout3d(_DropoutNd):
    """In training, zeroes whole channels of volumes with probability ``p`` and scales the others by ``1 / (1 - p)``.

    Example:
        >>> nn.Dropout3d().eval()(rgrad.ones(2, 3, 2, 2, 2)).unique()
        tensor([1.])
    """

    _function = staticmethod(F.dropout3d)


@described(_TEXT, shape="Any")
class AlphaDropout(_DropoutNd):
    """In training, sets elements to selu's negative limit with probability ``p``, keeping mean and variance.

    Example:
        >>> nn.AlphaDropout().eval()(rgrad.ones(4)).unique()
        tensor([1.])
    """

    _function = staticmethod(F.alpha_dropout)


@described(_TEXT, shape="``(N, C, *)``")
class FeatureAlphaDropout(_DropoutNd):
    """In training, sets whole channels to selu's negative limit with probability ``p``, keeping mean and variance.

    Example:
        >>> nn.FeatureAlphaDropout().eval()(rgrad.ones(2, 3, 4)).unique()
        tensor([1.])
    """

    _function = staticmethod(F.feature_alpha_dropout)
