"""Calls of PyTorch's table of operators on rgrad: the same arguments, and the function that has the operator's name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import rgrad


class Missing(Exception):
    """rgrad has no such name."""


def full_name(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def name_of(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def ours(x: Any) -> Any:
    """The same argument for rgrad: tensors with their strides."""
    if isinstance(x, torch.Tensor):
        lazy = x.is_conj(), x.is_neg()
        d = x.detach().conj() if lazy[0] else x.detach()
        d = d._neg_view() if lazy[1] else d
        made = rgrad.tensor(np.array(d.numpy()))
        plain = all(s > 0 or n == 1 for s, n in zip(d.stride(), d.shape, strict=True))
        if d.numel() and plain and not d.is_contiguous() and not torch._debug_has_internal_overlap(d):
            source, made = made, rgrad.empty_strided(tuple(d.shape), d.stride(), dtype=made.dtype)
            made.copy_(source)
        made = made.conj().detach() if lazy[0] else made
        made = made._neg_view().detach() if lazy[1] else made
        return made.requires_grad_() if x.requires_grad else made
    if isinstance(x, (torch.dtype, torch.memory_format)):
        return getattr(rgrad, name_of(x))
    if isinstance(x, torch.device):
        return rgrad.device(str(x))
    if isinstance(x, torch.layout):
        return rgrad.strided
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(ours, x))
    if isinstance(x, dict):
        return {k: ours(v) for k, v in x.items()}
    return slice(*map(ours, (x.start, x.stop, x.step))) if isinstance(x, slice) else x


# Where torch's table calls with other arguments than the function has.
CALLS: dict[str, Callable[..., Any]] = {
    "einsum": lambda tensors, equation: rgrad.einsum(equation, *tensors),
    "where": lambda x, condition, other: rgrad.where(condition, x, other),
    "zero_": lambda x: x.clone().zero_(),
    "linalg.lstsq.grad_oriented": lambda a, b, driver: rgrad.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv.singular": lambda a, b: rgrad.linalg.pinv(a @ b.mT),
}


def function_of(op: Any) -> Callable[..., Any]:
    for name in (full_name(op), op.name):
        if name in CALLS:
            return CALLS[name]
    made: Any = rgrad
    with contextlib.suppress(AttributeError):
        for part in op.name.split("."):
            made = getattr(made, part)
        if callable(made):
            return made
    if "." not in op.name and hasattr(rgrad.Tensor, op.name):
        if not callable(getattr(rgrad.Tensor, op.name)):
            return lambda x: getattr(x, op.name)
        return lambda x, *a, **k: getattr(x, op.name)(*a, **k)
    if getattr(op.op, "__name__", "") == "<lambda>":
        return op.op
    raise Missing(op.name)


def flat(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for y in x:
            yield from flat(y)
    elif isinstance(x, dict):
        yield from flat(list(x.values()))
    else:
        yield x


def is_tensor(x: Any) -> bool:
    return isinstance(x, (torch.Tensor, rgrad.Tensor))
