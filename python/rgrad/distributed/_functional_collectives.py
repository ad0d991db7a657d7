"""Collectives that give new tensors and write to none, under the private name by which libraries import them.

Each waits: what it gives is there. None has a derivative; those of :mod:`rgrad.distributed.nn.functional` have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._collectives import all_gather_into_tensor
from ._collectives import all_to_all_single as _all_to_all_single
from ._collectives import broadcast as _broadcast
from ._group import ProcessGroup
from ._members import get_world_size
from ._reducing import all_reduce as _all_reduce
from ._reducing import reduce_scatter_tensor as _reduce_scatter_tensor
from ._reductions import ReduceOp
from .device_mesh import DeviceMesh


class AsyncCollectiveTensor(Tensor):
    """What PyTorch's functions give before their work is done. Here they wait, so there is none."""


def _members(name: str, group: Any) -> ProcessGroup:
    """The group that a group, a mesh of one dimension, or a mesh and one of its dimensions stand for."""
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(
                f"{name}: got a mesh of {group.ndim} dimensions, expected one of 1; give (mesh, dimension) in its place"
            )
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    raise ValueError(
        f"{name}: expected a group, a mesh or (mesh, dimension), got {type(group).__name__}; "
        "distributed.new_group makes a group of ranks"
    )


def _reduction(name: str, op: str) -> ReduceOp:
    try:
        return ReduceOp[op.upper()]
    except KeyError:
        raise ValueError(f"{name}: expected one of {[str(r.name).lower() for r in ReduceOp]}, got {op!r}") from None


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself, whose elements are there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """A tensor combined with those of the other processes.

    Args:
        self: The same shape and dtype in all processes.
        reduceOp: "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".
        group: A group, a mesh of one dimension, or a mesh and one of its dimensions.
        tag: Has no effect.

    Raises:
        ValueError: The group or the operation is none of these.
    """
    out = self.detach().contiguous().clone()
    _all_reduce(out, _reduction("all_reduce", reduceOp), _members("all_reduce", group))
    return out


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one process.

    Args:
        self: The same shape and dtype in all processes.
        src: Who has it, by its place among all processes.
        group: A group, a mesh of one dimension, or a mesh and one of its dimensions.
        tag: Has no effect.

    Raises:
        ValueError: The group is none of these.
    """
    out = self.detach().contiguous().clone()
    _broadcast(out, src, _members("broadcast", group))
    return out


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along a dimension.

    Args:
        self: The same shape and dtype in all processes.
        gather_dim: The dimension.
        group: A group, a mesh of one dimension, or a mesh and one of its dimensions.
        tag: Has no effect.

    Raises:
        ValueError: The group is none of these.
    """
    members = _members("all_gather_tensor", group)
    given = self.detach().contiguous()
    ranks = get_world_size(members)
    out = _core.empty((ranks, *given.shape), dtype=given.dtype, device=given.device)
    all_gather_into_tensor(out, given, members)
    return _core.cat(list(out.unbind(0)), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part, along a dimension, of the tensors of all processes combined.

    Args:
        self: The same shape and dtype in all processes.
        reduceOp: As of :func:`all_reduce`.
        scatter_dim: The dimension; the number of processes divides its size.
        group: A group, a mesh of one dimension, or a mesh and one of its dimensions.
        tag: Has no effect.

    Raises:
        ValueError: The size cannot be divided, or the group or the operation is none of these.
    """
    name = "reduce_scatter_tensor"
    members = _members(name, group)
    ranks = get_world_size(members)
    if self.shape[scatter_dim] % ranks:
        raise ValueError(
            f"{name}: input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size "
            f"{ranks}; pad the tensor"
        )
    parts = _core.cat(list(self.detach().chunk(ranks, scatter_dim)))
    out = _core.empty(parts.chunk(ranks)[0].shape, dtype=parts.dtype, device=parts.device)
    _reduce_scatter_tensor(out, parts, _reduction(name, reduceOp), members)
    return out


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Parts of the tensors of all processes, along the first dimension: each process gets one of each.

    Args:
        self: A tensor.
        output_split_sizes: How many rows come from each process; by default equally many.
        input_split_sizes: How many rows go to each process; by default equally many.
        group: A group, a mesh of one dimension, or a mesh and one of its dimensions.
        tag: Has no effect.

    Raises:
        ValueError: The group is none of these.
    """
    given = self.detach().contiguous()
    rows = given.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = _core.empty((rows, *given.shape[1:]), dtype=given.dtype, device=given.device)
    _all_to_all_single(out, given, output_split_sizes, input_split_sizes, _members("all_to_all_single", group))
    return out
