"""Activations with parameters or random slopes, gates, and the softmax of images."""

from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from .. import init as _init
from ..parameter import Parameter
from ._text import options
from .module import Module


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    extra_repr = options("dim")


class PReLU(Module):
    """``x`` where it is positive, else ``weight * x`` (He et al. 2015).

    Args:
        num_parameters: 1 for one weight, or the number of channels.
        init: The initial value of the weights.
        device: The device of the weights.
        dtype: The dtype of the weights.

    Shape:
        Any shape, with channels as dimension 1; the output has the shape of the input.

    Example:
        >>> nn.PReLU()(rgrad.tensor([-2.0, 3.0]))
        tensor([-0.5000,  3.0000], grad_fn=<PreluKernelBackward0>)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_core.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to their initial value."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.prelu(input, self.weight)

    extra_repr = options("num_parameters")


class GLU(Module):
    """``a * sigmoid(b)`` of the two halves of the input along ``dim`` (Dauphin et al. 2017).

    Args:
        dim: The dimension that is halved.

    Shape:
        Any shape; the output has half the size along ``dim``.

    Example:
        >>> nn.GLU()(rgrad.tensor([1.0, 2.0, 0.0, 3.0]))
        tensor([0.5000, 1.9051])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Half the size along ``dim``."""
        return F.glu(input, self.dim)

    extra_repr = options("dim")


class RReLU(Module):
    """``x`` where it is positive, else ``a * x`` (Xu et al. 2015).

    The slope ``a`` is uniform in ``[lower, upper)`` for each element in training, and the mean of both in evaluation.

    Args:
        lower: The smallest slope.
        upper: The largest slope.
        inplace: Write the result into the input.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.RReLU().eval()(rgrad.tensor([-24.0, 3.0]))
        tensor([-5.5000,  3.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    extra_repr = options("lower", "upper", unless={"inplace": False})


class Softmin(_AlongDim):
    """The softmax of ``-x`` along ``dim``.

    Args:
        dim: The dimension along which the results sum to 1.

    Shape:
        Any shape; the output has the shape of the input.

    Example:
        >>> nn.Softmin(dim=0)(rgrad.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels at each pixel.

    Errors: a ValueError if the input has another number of dimensions than 3 and 4.

    Shape:
        Input: ``(N, C, H, W)`` or ``(C, H, W)``; the output has the shape of the input.

    Example:
        >>> nn.Softmax2d()(rgrad.zeros(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Same shape as ``input``."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
