"""Steps of an optimizer on other parameters with another state."""

from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from .._core import Tensor
from .optimizer import Optimizer

_WHO = "swap_in_optimizer_params_and_state"


def _groups(optimizer: Optimizer, given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise RuntimeError(f"{_WHO} requires 'param_groups' to be a list, got {type(given).__name__}.")
    if len(given) != len(optimizer.param_groups):
        raise RuntimeError(
            f"{_WHO}: swapin_optim_state has a different number of param groups ({len(given)}) than the live "
            f"optimizer ({len(optimizer.param_groups)})."
        )
    for at, (live, group) in enumerate(zip(optimizer.param_groups, given, strict=True)):
        if not isinstance(group, dict):
            raise RuntimeError(f"{_WHO} requires each optimizer param group to be a dictionary.")
        ids = group.get("params")
        if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
            raise RuntimeError(
                f"{_WHO} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed "
                "parameter ids."
            )
        if len(ids) != len(live["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {at} has a different number of params than the live optimizer param "
                "group."
            )
        if group.keys() != live.keys():
            raise RuntimeError(
                f"{_WHO} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
                f"group keys for group {at}. Keys only in swap-in: {[k for k in group if k not in live]}. Keys only in "
                f"live: {[k for k in live if k not in group]}."
            )
    return given


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Generator[None]:
    """Let an optimizer work on other tensors and another state inside of the context.

    Afterwards it has its own parameters, options and state again. Tensors of the state that a step writes to are those
    that were given; what a step assigns anew is lost.

    Args:
        optimizer: The optimizer, after a first step.
        swapin_parameters: Tensors in the order of the optimizer's parameters.
        swapin_optim_state: A state dict of such an optimizer, as ``state_dict()`` gives it.

    Raises:
        RuntimeError: The optimizer has no state yet, or groups, parameters or state do not fit it.

    Example:
        >>> p, q = nn.Parameter(rgrad.zeros(1)), rgrad.ones(1)
        >>> optimizer = rgrad.optim.SGD([p], lr=0.5, momentum=0.9)
        >>> p.grad = rgrad.ones(1)
        >>> optimizer.step()
        >>> q.grad = rgrad.ones(1)
        >>> with rgrad.optim.swap_in_optimizer_params_and_state(optimizer, {"q": q}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> p.detach(), q
        (tensor([-0.5000]), tensor([0.0500]))
    """
    if not optimizer.state:
        raise RuntimeError(f"{_WHO} requires initialized optimizer state.")
    if not isinstance(swapin_optim_state, dict):
        raise RuntimeError(f"{_WHO} requires an optimizer state_dict, got {type(swapin_optim_state).__name__}.")
    given = swapin_optim_state.get("state")
    if not isinstance(given, Mapping):
        raise RuntimeError(f"{_WHO} requires 'state' to be a dictionary, got {type(given).__name__}.")
    groups = _groups(optimizer, swapin_optim_state.get("param_groups"))
    tensors = list(swapin_parameters.values())
    ids = [i for group in groups for i in group["params"]]
    if len(tensors) < len(ids):
        raise RuntimeError(
            f"{_WHO} requires the explicit parameter state to match optimizer.param_groups ordering: got "
            f"{len(tensors)} tensors for {len(ids)} parameters."
        )
    if extra := [key for key in given if key not in ids]:
        raise RuntimeError(
            f"{_WHO} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    before = [dict(group) for group in optimizer.param_groups]
    own = optimizer.state
    state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    # The dicts are new and their tensors are not.
    state.update({tensor: dict(given.get(key, {})) for tensor, key in zip(tensors, ids, strict=False)})
    try:
        rest = iter(tensors)
        for live, group in zip(optimizer.param_groups, groups, strict=True):
            live.update(group, params=[next(rest) for _ in group["params"]])
        optimizer.state = state
        yield
    finally:
        for live, group in zip(optimizer.param_groups, before, strict=True):
            live.clear()
            live.update(group)
        optimizer.state = own
