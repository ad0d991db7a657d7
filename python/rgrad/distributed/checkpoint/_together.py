"""Steps that all processes make together, and that fail in all if they fail in one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from .._group import ProcessGroup, is_initialized, of
from .._objects import all_gather_object
from .api import CheckpointException

T = TypeVar("T")


class Together:
    """The processes of a save or load.

    Args:
        group: By default all of them.
        alone: Whether this process does it for itself.
    """

    def __init__(self, group: ProcessGroup | None, alone: bool) -> None:
        self.group = None if alone or not is_initialized() else of(group)
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()

    def place(self, rank: int) -> int:
        """The place among all of a member."""
        return rank if self.group is None else self.group.ranks[rank]

    def each(self, name: str, step: Callable[[], T]) -> list[T]:
        """What a step gives in each process.

        Raises:
            CheckpointException: It fails in one of them.
        """
        mine: T | None = None
        error: BaseException | None = None
        try:
            mine = step()
        except Exception as found:
            error = found
        answers: list[tuple[Any, BaseException | None]] = [(mine, error)]
        if self.group is not None and self.size > 1:
            answers = [(None, None)] * self.size
            all_gather_object(answers, (mine, _sendable(error)), self.group)
        failures = {
            self.place(rank): (found, found.__traceback__)
            for rank, (_, found) in enumerate(answers)
            if found is not None
        }
        if failures:
            raise CheckpointException(name, failures) from error
        return [found for found, _ in answers]


def _sendable(error: BaseException | None) -> BaseException | None:
    if error is None:
        return None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
