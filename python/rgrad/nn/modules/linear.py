"""Affine layers."""

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import init
from ..parameter import Parameter
from ._parameters import draw, register
from ._ranks import described_as_lazy
from ._text import options
from .lazy import _LazyLayer
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

    weight: Parameter
    bias: Parameter

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        register(self, device, dtype, weight=(out_features, in_features), bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        # kaiming_uniform_ with a = sqrt(5) is uniform in ±1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw(self.in_features, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to ``input`` of shape ``(*, in_features)``."""
        # Directly from the table: self.weight would take the slow path through __getattr__.
        params = self._parameters
        try:
            weight, bias = params["weight"], params["bias"]
        except KeyError:
            return _linear(input, self.weight, self.bias)
        return _linear(input, weight, bias)  # type: ignore[arg-type]  # a weight that is None is an error there

    extra_repr = options("in_features", "out_features", "bias")


class NonDynamicallyQuantizableLinear(Linear):
    """A :class:`Linear` under the name that PyTorch prints for the last projection of attention.

    Args:
        in_features: The size of the input's last dimension.
        out_features: The size of the output's last dimension.
        bias: Whether there are biases.
        device: The device of the parameters.
        dtype: The dtype of the parameters.
    """


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

    weight: Parameter
    bias: Parameter

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
        weight = (out_features, in1_features, in2_features)
        register(self, device, dtype, weight=weight, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform in ``±1 / sqrt(in1_features)``."""
        draw(self.in1_features, self.weight, self.bias)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the layer to ``input1`` and ``input2``, whose leading dimensions are equal."""
        result = _core.einsum("...i,kij,...j->...k", input1, self.weight, input2)
        return result if self.bias is None else result + self.bias

    extra_repr = options("in1_features", "in2_features", "out_features", "bias")


@described_as_lazy("2", (5, 3))
class LazyLinear(_LazyLayer, Linear):
    """A :class:`Linear` whose ``in_features`` are those of its first input."""

    cls_to_become = Linear
    _learned = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._without_shapes(bias, device, dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_features`` from the input.

        Args:
            input: The input of the first call.
        """
        weight: Any = self.weight
        bias: Any = self.bias
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                weight.materialize((self.out_features, self.in_features))
                if bias is not None:
                    bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            # A state dict gave the shapes.
            if input.shape[-1] != weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
