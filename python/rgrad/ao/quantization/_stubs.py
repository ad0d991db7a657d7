"""Modules that mark where a model's quantised part begins and ends. In floats they give their input back."""

from typing import Any

from ..._core import Tensor
from ...nn.modules.module import Module


class QuantStub(Module):
    """Where a quantised part begins. It gives its input back, as PyTorch's does before conversion.

    Args:
        qconfig: Kept as an attribute; has no effect.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Give the input back."""
        return x


class DeQuantStub(QuantStub):
    """Where a quantised part ends. It gives its input back.

    Args:
        qconfig: Kept as an attribute; has no effect.
    """


class QuantWrapper(Module):
    """A module between a :class:`QuantStub` and a :class:`DeQuantStub`.

    Args:
        module: The module.
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.quant = QuantStub()
        self.dequant = DeQuantStub()
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Any:
        """What the module gives for the input."""
        return self.dequant(self.module(self.quant(X)))
