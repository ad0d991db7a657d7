"""Whole tensors of states whose tensors lie on several processes, and the other way."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .._collectives import broadcast
from .._group import is_initialized
from .._members import get_rank
from .._objects import broadcast_object_list
from ..tensor._dtensor import DTensor
from ..tensor._operations import own_part


def rank() -> int:
    """The place of this process; 0 where there is no group."""
    return get_rank() if is_initialized() else 0


@no_grad()
def collected(state: dict[str, Any], full: bool, to_cpu: bool) -> dict[str, Any]:
    """A flat state with whole tensors, or in host memory. All processes call it.

    Args:
        state: Tensors and other values by name.
        full: Whether DTensors become whole tensors; with ``to_cpu`` in the first process alone.
        to_cpu: Whether tensors are copied to host memory.
    """
    made: dict[str, Any] = {}
    keep = not (full and to_cpu) or rank() == 0
    for name, value in state.items():
        found = value
        if isinstance(found, DTensor) and full:
            found = found.full_tensor()
        if isinstance(found, Tensor) and to_cpu and keep:
            found = found.detach().to("cpu")
        if keep:
            made[name] = found
    return made


@no_grad()
def distributed(state: dict[str, Any], like: dict[str, Any], from_first: bool) -> dict[str, Any]:
    """A flat state whose tensors lie as those of another one. All processes call it.

    Args:
        state: Whole tensors and other values by name.
        like: Where the tensors with these names are to lie; others stay whole.
        from_first: Whether the first process alone has the state, and gives it to the others.
    """
    if not from_first or not is_initialized():
        return {name: _placed(value, like.get(name)) for name, value in state.items()}
    first = rank() == 0
    # Names, and for tensors dtype and shape; other values as they are.
    about: list[Any] = [None]
    if first:
        about[0] = [
            (name, (str(v.dtype).rpartition(".")[2], tuple(v.shape)), None)
            if isinstance(v, Tensor)
            else (name, None, v)
            for name, v in state.items()
        ]
    broadcast_object_list(about, src=0)
    made: dict[str, Any] = {}
    for name, kind, value in about[0]:
        if kind is None:
            made[name] = value
            continue
        dtype = getattr(_core, kind[0])
        whole = state[name].detach().cpu().contiguous() if first else _core.empty(kind[1], dtype=dtype, device="cpu")
        if isinstance(whole, DTensor):
            raise ValueError(
                f"broadcast_from_rank0: {name!r} is a DTensor; the first process must have whole tensors, those of "
                "full_state_dict=True"
            )
        broadcast(whole, src=0)
        target = like.get(name)
        made[name] = _placed(whole.to(target.device) if isinstance(target, Tensor) else whole, target)
    return made


def _placed(value: Any, like: Any) -> Any:
    if not isinstance(like, DTensor) or not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    if tuple(value.shape) != tuple(like.shape):
        # A count of steps, for instance; what has a wrong shape is refused by whoever takes it.
        return value
    whole = value.detach().to(like.device)
    part = own_part(whole, like._spec)
    return DTensor(part.clone() if part.data_ptr() == whole.data_ptr() else part, like._spec)
