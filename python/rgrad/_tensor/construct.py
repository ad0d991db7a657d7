"""Tensors made from others: the legacy constructor ``Tensor(...)``, deep copies, and what ``pickle`` stores."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from .. import _core
from .._runtime.guards import NoGradGuard
from ..utils.hooks import warn_if_has_hooks
from .bits import array_of, in_memory, lazy_bits, tensor_of, with_lazy_bits
from .natives import memory_of

__all__ = ["copied_data", "deepcopy", "generator", "legacy", "new", "rebuild", "reduce", "shallow"]


def legacy(*args: Any) -> Any:
    """``Tensor(*args)``: an uninitialised tensor of these sizes, or a tensor with this data."""
    return _of_sizes_or_data(args, _core.get_default_dtype(), "cpu")


def new(like: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    """``like.new(...)``: as the constructor, with the dtype and device of ``like``.

    Raises:
        TypeError: The arguments are neither sizes nor data, or a tensor of another dtype.
        RuntimeError: ``device`` is of another kind.
    """
    kind = like.device.type
    if device is not None and _core.device(device).type != kind:
        raise RuntimeError(
            f"legacy constructor expects device type: {kind} but device type: {_core.device(device).type} was passed"
        )
    if kwargs:
        name, value = next(iter(kwargs.items()))
        if args or len(kwargs) > 1 or name not in ("size", "data"):
            raise TypeError(
                f"new() received an invalid combination of arguments: expected sizes, `size`, data or `data`, got "
                f"{len(args)} arguments and {', '.join(kwargs)}"
            )
        args = (_core.Size(value),) if name == "size" else (value,)
    if len(args) == 1 and isinstance(args[0], _core.Tensor):
        data = args[0]
        if data.dtype != like.dtype or data.device != like.device:
            raise TypeError(
                f"new(): expected a tensor of dtype {like.dtype} on {like.device}, got one of dtype {data.dtype} on "
                f"{data.device}; use .to() first"
            )
        return data.view_as(data)
    return _of_sizes_or_data(args, like.dtype, like.device)


def _of_sizes_or_data(args: tuple[Any, ...], dtype: Any, device: Any) -> Any:
    if not args:
        return _core.empty(0, dtype=dtype, device=device)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return _core.empty(args, dtype=dtype, device=device)
    if len(args) == 1:
        data = args[0]
        if isinstance(data, _core.Size):
            return _core.empty(data, dtype=dtype, device=device)
        if isinstance(data, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if not hasattr(data, "__len__") or isinstance(data, (dict, set, frozenset)):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        if not isinstance(data, _core.Tensor) and not hasattr(data, "__array_interface__"):
            # No more than it says: an old-style sequence may go on without end.
            data = list(itertools.islice(iter(data), len(data)))
        return _core.tensor(data, dtype=dtype, device=device)
    raise TypeError(
        f"new(): argument 'size' must be sizes (integers) or data (a sequence or array), got {len(args)} arguments "
        f"{args!r}"
    )


def _attributes(t: Any) -> dict[str, Any]:
    return dict(vars(t))


def _as(cls: type[Any], values: Any, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """A tensor of class ``cls`` over the memory of ``values``, which has no history."""
    if cls is _core.Tensor:
        made = _core._require_grad(values, requires_grad)
    else:
        made = _core.Tensor._make_subclass(cls, values, requires_grad)
    if attributes:
        vars(made).update(attributes)
    return made


def shallow(t: Any) -> Any:
    """A leaf of the same class that shares memory and attributes with ``t``, but neither history nor ``.grad``."""
    with _core.DisableTorchFunctionSubclass():
        warn_if_has_hooks(t)
        return _as(type(t), t.detach(), t.requires_grad, _attributes(t))


def copied_data(t: Any, memo: dict[Any, Any]) -> Any:
    """The values of ``t`` in memory of their own, laid out alike; tensors that share memory share its copy.

    ``memo`` is that of ``copy.deepcopy``.
    """
    with _core.DisableTorchFunctionSubclass(), NoGradGuard():
        memory = memory_of(t)
        size, count = t.element_size(), memory.nbytes()
        # Tensors of several dtypes over one memory (``x``, ``x.real``) share the copy of its bytes.
        as_bytes = t.device.type == "cpu" and count % size == 0
        key = ("rgrad memory", str(t.device), memory._cdata, None if as_bytes else t.dtype)
        if key not in memo:
            # On a device integers and bool take four bytes at least.
            packed = t.device.type == "cpu" or t.is_floating_point() or t.is_complex()
            size = size if packed else max(4, size)
            everything = in_memory(t).as_strided((count // size,), (1,), 0).clone()
            # The original is kept, too: while the memo is in use, no other memory may get its address.
            memo[key] = everything.view(_core.uint8) if as_bytes else everything, t
        whole = memo[key][0].view(t.dtype) if as_bytes else memo[key][0]
        made = whole.as_strided(tuple(t.shape), t.stride(), t.storage_offset()).detach()
        # As in PyTorch, a copy of a lazy conjugate is computed, in memory of its own.
        made = made.conj_physical() if t.is_conj() else made
        return made.neg() if t.is_neg() else made


def deepcopy(t: Any, memo: dict[Any, Any]) -> Any:
    """A leaf with its own memory, with ``.grad`` and attributes copied along.

    Raises:
        RuntimeError: An operation made the tensor, so its graph would have to be copied.
        NotImplementedError: The tensor belongs to a transform.
    """
    with _core.DisableTorchFunctionSubclass():
        if id(t) in memo:
            return memo[id(t)]
        if _core._level_of(t) > 0:
            raise NotImplementedError(
                "Cannot access storage of a tensor inside a function transform (vmap, grad, jvp, ...): use clone() in "
                "place of deepcopy()."
            )
        if not t.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use detach() before copying, or clone() to keep the history."
            )
        made = _as(type(t), copied_data(t, memo), t.requires_grad, {})
        memo[id(t)] = made
        if t.grad is not None:
            made.grad = copy.deepcopy(t.grad, memo)
        for name, value in vars(t).items():
            setattr(made, name, copy.deepcopy(value, memo))
        return made


def rebuild(
    cls: type[Any],
    values: Any,
    requires_grad: bool,
    attributes: dict[str, Any],
    device: str = "cpu",
    layout: tuple[Any, ...] | None = None,
    dtype: str | None = None,
    lazy: list[str] | None = None,
) -> Any:
    """A tensor from what ``reduce`` gave, on the device that it was on.

    ``layout`` has shape and strides, for ``values`` that are the memory as it was; ``dtype`` is named
    where NumPy's type does not tell it; ``lazy`` names what is done to the elements when they are read.
    """
    t = _core.tensor(values, device=device) if dtype is None else tensor_of(values, dtype).to(device)
    if layout is not None:
        t = t.as_strided(*layout).detach()
    if lazy:
        t = with_lazy_bits(t, lazy)
    return _as(cls, t, requires_grad, attributes)


def reduce(t: Any, protocol: int) -> tuple[Any, ...]:
    """What ``pickle`` keeps of a tensor: class, values, strides, ``requires_grad``, attributes and device.

    Neither ``.grad`` nor history: what an operation made comes back as a leaf.
    """
    with _core.DisableTorchFunctionSubclass():
        warn_if_has_hooks(t)
        plain = in_memory(t)
        layout = None
        if not plain.is_contiguous():
            shape, strides = tuple(plain.shape), plain.stride()
            span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if plain.numel() else 0
            layout = (shape, strides)
            plain = plain.as_strided((span,), (1,), plain.storage_offset())
        kind = str(plain.dtype).rpartition(".")[2] if plain.dtype in (_core.bfloat16, _core.complex32) else None
        values = array_of(plain.cpu())
        lazy = lazy_bits(t)
        described = (type(t), values, t.requires_grad, _attributes(t), t.device.type, layout, kind)
        return rebuild, (*described, lazy) if lazy else described


def generator(state: Any) -> Any:
    """A random number generator that goes on from ``state``."""
    return _core.Generator().set_state(state)


# The name that pickles have, whatever the name of this file is.
rebuild.__module__ = generator.__module__ = "rgrad._construct"
