"""Affine layers."""

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module

_linear = _core.linear


class Identity(Module):
    """A module that gives its input back.

    Args:
        args: Ignored, so that it can stand in for any layer.
        kwargs: Ignored.

    Shape:
        Any.

    Example:
        >>> nn.Identity(54, unused=True)(rgrad.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Give back ``input``."""
        return input


class Linear(Module):
    """``y = x Aᵀ + b`` over the last dimension.

    The parameters ``weight`` of shape ``(out_features, in_features)`` and ``bias`` of shape ``(out_features)`` start
    uniform in ``±1 / sqrt(in_features)``.

    Args:
        in_features: The size of the input's last dimension.
        out_features: The size of the output's last dimension.
        bias: Whether there is a ``b``; without it ``bias`` is None.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Shape:
        Input: ``(*, in_features)``; output: ``(*, out_features)``.

    Example:
        >>> layer = nn.Linear(3, 2)
        >>> layer(rgrad.ones(5, 3)).shape
        rgrad.Size([5, 2])
        >>> [name for name, _ in layer.named_parameters()]
        ['weight', 'bias']
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(_core.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        # kaiming_uniform_ with a = sqrt(5) is uniform in ±1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to ``input`` of shape ``(*, in_features)``."""
        # Directly from the table: self.weight would take the slow path through __getattr__.
        params = self._parameters
        try:
            weight, bias = params["weight"], params["bias"]
        except KeyError:
            return _linear(input, self.weight, self.bias)
        return _linear(input, weight, bias)  # type: ignore[arg-type]  # a weight that is None is an error there

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``y_k = x1ᵀ A_k x2 + b_k`` over the last dimensions of two inputs.

    The parameters ``weight`` of shape ``(out_features, in1_features, in2_features)`` and ``bias`` of shape
    ``(out_features)`` start uniform in ``±1 / sqrt(in1_features)``.

    Args:
        in1_features: The size of the first input's last dimension.
        in2_features: The size of the second input's last dimension.
        out_features: The size of the output's last dimension.
        bias: Whether there is a ``b``; without it ``bias`` is None.
        device: The device of the parameters.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: ``in1_features`` is not positive.

    Shape:
        Inputs: ``(*, in1_features)`` and ``(*, in2_features)``; output: ``(*, out_features)``.

    Example:
        >>> nn.Bilinear(3, 4, 2)(rgrad.ones(5, 3), rgrad.ones(5, 4)).shape
        rgrad.Size([5, 2])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(_core.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_core.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform in ``±1 / sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the layer to ``input1`` and ``input2``, whose leading dimensions are equal."""
        result = _core.einsum("...i,kij,...j->...k", input1, self.weight, input2)
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
