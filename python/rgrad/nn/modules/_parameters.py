"""How layers make and reset their parameters."""

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module


def register(module: Module, device: Any, dtype: Any, **shapes: int | tuple[int, ...] | None) -> None:
    """Give a module parameters without values, in this order. None stands for a parameter that is not there."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(_core.empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)


def draw(fan: int, *tensors: Tensor | None) -> None:
    """Draw the elements uniformly in ``±1 / sqrt(fan)``; they are zeros for a ``fan`` of 0."""
    bound = 1 / math.sqrt(fan) if fan > 0 else 0.0
    for tensor in tensors:
        if tensor is not None:
            init.uniform_(tensor, -bound, bound)


def reset_scale(weight: Tensor | None, bias: Tensor | None = None) -> None:
    """Set the weight of a norm to ones and its bias to zeros, where they are."""
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)
