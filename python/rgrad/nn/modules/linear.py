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
    """Gives its input back; arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input


class Linear(Module):
    """``y = x Aᵀ + b`` over the last dimension: ``(*, in_features)`` to ``(*, out_features)``.

    ``weight`` (out_features, in_features) and ``bias`` (out_features) start uniform in
    ``±1 / sqrt(in_features)``; ``bias=False`` leaves the bias out.
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
        """``input`` of shape ``(*, in_features)``."""
        # Straight from the table: self.weight would go the slow way round through __getattr__.
        params = self._parameters
        try:
            weight, bias = params["weight"], params["bias"]
        except KeyError:
            return _linear(input, self.weight, self.bias)
        return _linear(input, weight, bias)  # type: ignore[arg-type]  # a weight that is None is an error there

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``y_k = x1ᵀ A_k x2 + b_k`` for inputs ``(*, in1_features)`` and ``(*, in2_features)``."""

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
        """Inputs with equal leading dimensions."""
        result = _core.einsum("...i,kij,...j->...k", input1, self.weight, input2)
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
