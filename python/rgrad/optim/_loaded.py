"""What a loaded state must be for a step to use it: looked at once, before the first step writes anything."""

from typing import TYPE_CHECKING, Any

from .._core import Tensor

if TYPE_CHECKING:
    from .optimizer import Optimizer


def check_loaded(optimizer: "Optimizer") -> None:
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
                    _check_entry(type(optimizer).__name__, name, state[name], value)


def _check_entry(optimizer: str, name: str, loaded: Any, fresh: Any) -> None:
    if not (isinstance(loaded, Tensor) and isinstance(fresh, Tensor)):
        return
    fits = loaded.numel() == 1 if fresh.dim() == 0 else loaded.shape == fresh.shape
    if not fits:
        raise RuntimeError(
            f"{optimizer}.step: the size of the loaded state '{name}' must match its parameter: got "
            f"{list(loaded.shape)}, expected {list(fresh.shape)}. Nothing has changed; load the state of an optimizer "
            "with the same parameters in the same order"
        )
