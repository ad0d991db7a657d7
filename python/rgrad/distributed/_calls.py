"""What all collectives do before and after their own part: find the group, check arguments, run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from ._buffers import name_of
from ._debug import DebugLevel, compared, get_debug_level
from ._engine import Program, Task, engine
from ._group import ProcessGroup, is_member, of, report, watch
from ._news import Last, place
from ._work import Work


class Seen:
    """A dtype and a shape, which become a text when somebody asks."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype, self.shape = tensor.dtype, tensor.shape

    def __str__(self) -> str:
        return f"{name_of(self.dtype)}{list(self.shape)}"


def joined(group: Any, name: str) -> ProcessGroup | None:
    """The group, or None for a process outside of it, which is warned.

    Raises:
        ValueError: There is no group.
    """
    if is_member(group):
        return of(group)
    whole = of(None)
    warnings.warn(
        f"Running {name} on global rank {whole.rank()} which does not belong to the given group.", stacklevel=4
    )
    return None


def checked(name: str, tensor: Any, what: str = "tensor") -> Tensor:
    """A tensor that can be sent.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{what}` of type torch.Tensor, got {type(tensor).__name__} "
            f"in {name}"
        )
    if tensor.device.type == "meta":
        raise RuntimeError(
            f"{name}: `{what}` is on the meta device and has no elements; use tensors on the CPU or wgpu"
        )
    return tensor


def checked_list(name: str, tensors: Any, what: str, count: int) -> list[Tensor]:
    """One tensor for each member, all of one dtype.

    Raises:
        TypeError: It is no list of tensors.
        RuntimeError: There are more or fewer.
        ValueError: Their dtypes differ.
    """
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{what}` of type List[torch.Tensor] in {name}, "
            f"got {type(tensors).__name__}"
        )
    if len(tensors) != count:
        raise RuntimeError(
            f"{name}: invalid tensor list `{what}` (expected length {count}, got {len(tensors)}): it must have one "
            "tensor for each process of the group"
        )
    for tensor in tensors:
        checked(name, tensor, what)
    one_dtype(*tensors)
    return list(tensors)


def one_dtype(*tensors: Tensor) -> None:
    """Raises if dtypes differ."""
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and {tensor.dtype}"
            )


def one_shape(name: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    """Raises if a tensor has not as many elements as another."""
    for index, tensor in enumerate(tensors):
        if tensor.shape != like.shape:
            raise RuntimeError(
                f"{name}: invalid tensor size at index {index} (expected {tuple(like.shape)}, got "
                f"{tuple(tensor.shape)})"
            )


def place_in(group: ProcessGroup, name: str, what: str, rank: int | None, group_rank: int | None) -> int:
    """The place in the group of a member that is named by its place among all, or by that in the group.

    Raises:
        ValueError: Both or none are given, or it is no member.
        RuntimeError: There is no such place.
    """
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{what} and {what} in {name}")
    if group_rank is None:
        if rank is None:
            raise ValueError(f"Must specify {what} or group_{what} in {name}")
        if group.group_name == "0":
            group_rank = rank
        elif rank not in group.places:
            raise ValueError(f"Global rank {rank} is not part of group {group}")
        else:
            group_rank = group.places[rank]
    if not 0 <= group_rank < group.size():
        raise RuntimeError(
            f"{name}: invalid root rank: {group_rank}; the group has {group.size()} processes, whose ranks begin with 0"
        )
    return group_rank


def run(
    group: ProcessGroup,
    name: str,
    program: Program,
    alike: Sequence[Any],
    result: list[Tensor],
    async_op: bool,
) -> Work | None:
    """Run a program of all members, as the next one of the group.

    Args:
        group: The group.
        name: The function that was called.
        program: What it does.
        alike: What must be the same in all members, for messages.
        result: What the work gives.
        async_op: Whether to return a work instead of waiting.
    """
    group.count += 1
    number = group.count
    last = group.last = Last(number, name, alike, place())
    task = Task(program, name)
    if group.size() > 1:
        if get_debug_level() is DebugLevel.DETAIL:
            task.program = _both(compared(group.link, last), program)
        task.detail, task.at = f" #{number}", last.at
        if (news := watch()) is not None:
            news.counts[group.group_name] = number
            task.peers = lambda: news.gone(group.ranks, group.group_name, number)
    engine.start(task, group.lane)
    work = Work(result, task, group.timeout, report)
    if async_op:
        engine.watch(task)
        return work
    work.wait()
    return None


def _both(first: Program, second: Program) -> Program:
    yield from first
    yield from second
