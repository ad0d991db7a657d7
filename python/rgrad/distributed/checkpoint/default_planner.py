"""Options of what is written and read. Planners of users' own are not there."""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """How a state is written.

    Args:
        flatten_state_dict: True: each tensor of nested dicts and lists has an entry of its own.
        flatten_sharded_tensors: Accepted; has no effect.
        dedup_replicated_tensors: Accepted; has no effect: what several processes have is written once.
        dedup_save_to_lowest_rank: Whether the first process writes what several have, instead of the one with the
            least to write.
        enable_plan_caching: Accepted; has no effect.

    Raises:
        NotImplementedError: ``flatten_state_dict`` is False.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        _flat(flatten_state_dict)
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank


class DefaultLoadPlanner:
    """How a state is read.

    Args:
        flatten_state_dict: True, as it is written.
        flatten_sharded_tensors: Accepted; has no effect.
        allow_partial_load: Whether entries that the checkpoint does not have keep their values.

    Raises:
        NotImplementedError: ``flatten_state_dict`` is False.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        _flat(flatten_state_dict)
        self.allow_partial_load = allow_partial_load


def _flat(wanted: bool) -> None:
    if not wanted:
        raise NotImplementedError("flatten_state_dict=False is not there: give a flat dict instead")


def checked(name: str, planner: Any, kind: type[Any]) -> Any:
    """The planner that was given, or one with the defaults.

    Raises:
        NotImplementedError: It is of a class of the user's.
    """
    if planner is None:
        return kind()
    if type(planner) is not kind:
        raise NotImplementedError(
            f"{name}: planner must be a {kind.__name__}, got {type(planner).__name__}; change the state dict instead"
        )
    return planner
