"""What is loaded into an optimizer: how it is made to fit, and what it must be for a step to use it.

It is looked at once, before the first step writes anything.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._core import Tensor

if TYPE_CHECKING:
    from ._grouped import GroupedOptimizer


def check_loaded(optimizer: "GroupedOptimizer") -> None:
    """Compare the states of parameters that take part in a step with fresh ones.

    Raises:
        KeyError: A state lacks an entry.
        RuntimeError: An entry has another shape than its parameter needs.
    """
    for group in optimizer.param_groups:
        for param in group["params"]:
            state, grad = optimizer.state.get(param), param.grad
            if state and grad is not None:
                fresh = optimizer._fresh(param.detach().to("meta"), grad.detach().to("meta"), state, group)
                for name, value in fresh.items():
                    loaded = state[name]
                    if isinstance(loaded, Tensor) and isinstance(value, Tensor):
                        # A number may have any shape with one element.
                        is_number = value.dim() == 0 and loaded.numel() == 1
                        check_entry(
                            type(optimizer).__name__, name, value.shape if is_number else loaded.shape, value.shape
                        )


def check_entry(optimizer: str, name: str, shape: Sequence[int], expected: Sequence[int]) -> None:
    """Compare the shape of an entry of a state with what its parameter needs.

    Raises:
        RuntimeError: They differ.
    """
    if tuple(shape) != tuple(expected):
        raise RuntimeError(
            f"{optimizer}.step: the size of the state '{name}' must match its parameter: got {list(shape)}, expected "
            f"{list(expected)}. Nothing has changed; a loaded state must be that of an optimizer with the same "
            "parameters in the same order"
        )


def fitted(name: Any, item: Any, param: Tensor) -> Any:
    """An entry of a parameter's state as that parameter needs it."""
    if isinstance(item, Tensor):
        # The count of steps stays what it is whatever the parameter is.
        if name == "step":
            return item.detach().to("cpu", copy=True)
        kind = param.dtype if param.is_floating_point() else item.dtype
        return item.detach().to(param.device, kind, copy=True)
    if isinstance(item, dict):
        return {key: fitted(key, value, param) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return type(item)(fitted(None, value, param) for value in item)
    return item


def copied(value: Any) -> Any:
    """An option of a group that shares nothing with the saved one."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value
