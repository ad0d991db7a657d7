"""Channels of groups spread over all."""

from ..._core import Tensor
from .. import functional as F
from ._text import options
from .module import Module


class ChannelShuffle(Module):
    """Rearranges channels so that those of each group are spread over all (Zhang et al. 2018).

    Errors are those of :func:`rgrad.nn.functional.channel_shuffle`.

    Args:
        groups: The number of groups.

    Shape:
        ``(N, C, *)``; the output has the shape of the input.

    Example:
        >>> nn.ChannelShuffle(2)(rgrad.arange(4).reshape(1, 4, 1)).flatten()
        tensor([0, 2, 1, 3])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """See :func:`rgrad.nn.functional.channel_shuffle`."""
        return F.channel_shuffle(input, self.groups)

    extra_repr = options("groups")
