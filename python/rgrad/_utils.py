"""Private functions of PyTorch that libraries import: many tensors as one, and numbers of devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from . import _core
from ._core import Tensor
from ._files.rebuild import rebuild_parameter_with_state as _rebuild_parameter_with_state  # noqa: F401
from ._files.rebuild import rebuild_tensor as _rebuild_tensor  # noqa: F401
from ._files.rebuild import rebuild_tensor_v2 as _rebuild_tensor_v2  # noqa: F401
from ._files.rebuild import rebuild_tensor_v3 as _rebuild_tensor_v3  # noqa: F401
from .nn.parameter import Parameter


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of several tensors of one dtype, one behind the other.

    Returns:
        A tensor of one dimension.
    """
    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else _core.cat(flat)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Undo :func:`_flatten_dense_tensors`: views of ``flat`` with the shapes of ``tensors``."""
    parts, at = [], 0
    for tensor in tensors:
        parts.append(flat.narrow(0, at, tensor.numel()).view(tensor.size()))
        at += tensor.numel()
    return tuple(parts)


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one dtype of at most ``size_limit`` bytes, if they have more than one tensor."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        bytes_here = tensor.numel() * tensor.element_size()
        group, taken = groups.get(tensor.type(), ([], 0))
        if taken + bytes_here > size_limit and taken > 0:
            yield group
            group, taken = [], 0
        group.append(tensor)
        groups[tensor.type()] = group, taken + bytes_here
    for group, _ in groups.values():
        if group:
            yield group


def _reorder_tensors_as(tensors: Sequence[Tensor], ordered_tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors in the order that their types have in ``ordered_tensors``."""
    by_type: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        by_type.setdefault(tensor.type(), []).append(tensor)
    queues = {kind: iter(group) for kind, group in by_type.items()}
    return tuple(next(queues[tensor.type()]) for tensor in ordered_tensors)


def _element_size(dtype: Any) -> int:
    """The bytes of an element.

    Raises:
        RuntimeError: ``dtype`` is none.
    """
    if not isinstance(dtype, _core.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; -1 for the CPU where that is allowed.

    Raises:
        ValueError: The device has no number.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    given = _core.device(device) if isinstance(device, str) else device
    if isinstance(given, _core.device):
        if given.type == "cpu" and allow_cpu:
            return -1
        if given.index is not None:
            return given.index
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter of what a pickle has."""
    made = Parameter(data, requires_grad)
    made._backward_hooks = backward_hooks  # type: ignore[attr-defined]
    return made
