"""Making tensors again: the legacy constructor ``Tensor(...)``, deep copies, and what ``pickle`` keeps."""

from __future__ import annotations

import copy
from typing import Any

from . import _core

__all__ = ["deepcopy", "generator", "legacy", "rebuild", "reduce"]


def legacy(*args: Any) -> Any:
    """Make what ``Tensor(*args)`` stands for: an uninitialised tensor of these sizes, or one holding this data."""
    dtype = _core.get_default_dtype()
    if not args:
        return _core.empty(0, dtype=dtype, device="cpu")
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, _core.Size):
            return _core.empty(data, dtype=dtype, device="cpu")
        return _core.tensor(data, dtype=dtype, device="cpu")
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return _core.empty(args, dtype=dtype, device="cpu")
    raise TypeError(
        f"new(): expected sizes (integers) or data (a sequence or array), got {len(args)} arguments {args!r}"
    )


def _like(t: Any, values: Any) -> Any:
    """A tensor of the class of ``t`` over the memory of ``values``."""
    if type(t) is _core.Tensor:
        return values.requires_grad_(t.requires_grad)
    return _core.Tensor._make_subclass(type(t), values, t.requires_grad)


def deepcopy(t: Any, memo: dict[int, Any]) -> Any:
    """A leaf with its own memory, with ``.grad`` and attributes copied along.

    Raises RuntimeError for a tensor that an operation made: its graph cannot be copied.
    """
    if id(t) in memo:
        return memo[id(t)]
    if not t.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "Use detach() before copying, or clone() to keep the history."
        )
    made = _like(t, t.detach().clone())
    memo[id(t)] = made
    if t.grad is not None:
        made.grad = copy.deepcopy(t.grad, memo)
    for name, value in vars(t).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def rebuild(cls: type[Any], values: Any, requires_grad: bool, attributes: dict[str, Any], device: str = "cpu") -> Any:
    """A tensor from what ``reduce`` gave, on the device that it was on."""
    t = _core.tensor(values, device=device)
    if cls is _core.Tensor:
        made = t.requires_grad_(requires_grad)
    else:
        made = _core.Tensor._make_subclass(cls, t, requires_grad)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def reduce(t: Any, protocol: int) -> tuple[Any, ...]:
    """What ``pickle`` keeps of a tensor: class, values, ``requires_grad``, attributes and device; not ``.grad``."""
    if not t.is_leaf:
        raise RuntimeError(
            "a tensor that an operation made cannot be pickled, for its graph cannot: pickle detach() of it instead"
        )
    return rebuild, (type(t), t.detach().cpu().numpy(), t.requires_grad, dict(vars(t)), t.device.type)


def generator(state: Any) -> Any:
    """A random number generator that goes on from ``state``."""
    return _core.Generator().set_state(state)
