"""Helpers of PyTorch's optimizers that those of other libraries import."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import set_grad_enabled


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that records only where the optimizer has ``differentiable=True``."""

    @wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to take ``fused`` and ``foreach`` where neither was chosen: PyTorch takes neither on these devices."""
    if isinstance(params, Tensor):
        raise TypeError("_default_to_fused_or_foreach: params must be a list of tensors, but got a tensor")
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices on which steps can be captured as a CUDA graph: none."""
    return []


def _get_value(x: Any) -> Any:
    """The number of a tensor of one element; other things as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """What is given: nothing is compiled."""
    return x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put a real view in the place of each complex tensor of these lists."""
    for place, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[place] = _core.view_as_real(tensors[place])
