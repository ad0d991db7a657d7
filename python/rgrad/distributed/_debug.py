"""``TORCH_DISTRIBUTED_DEBUG=DETAIL``: processes compare what they call before anything is sent."""

from __future__ import annotations

import enum
import os
from collections.abc import Generator
from typing import Any

import numpy as np

from ._errors import DistBackendError
from ._mpi import Link
from ._news import Last

_ROOM = 1024


class DebugLevel(enum.IntEnum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level; at first what ``TORCH_DISTRIBUTED_DEBUG`` says."""
    if _level is None:
        set_debug_level_from_env()
    assert _level is not None
    return _level


def set_debug_level(arg0: DebugLevel) -> None:
    """Set the level. With ``DETAIL`` all processes compare each collective before it runs.

    Args:
        arg0: The level, the same in all processes.
    """
    global _level
    _level = DebugLevel(arg0)


def set_debug_level_from_env() -> None:
    """Set the level to what ``TORCH_DISTRIBUTED_DEBUG`` says: OFF, INFO or DETAIL.

    Raises:
        RuntimeError: It says something else.
    """
    global _level
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if said not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be either 'OFF', 'INFO', or 'DETAIL', got {said!r}"
        )
    _level = DebugLevel[said]


def compared(link: Link, last: Last) -> Generator[Any, None, None]:
    """The start of a program: nothing runs unless all members call the same.

    Raises:
        DistBackendError: They do not.
    """
    mine = np.zeros(_ROOM, np.uint8)
    text = f"{last.name}({', '.join(map(str, last.tensors))})\n{last.at[0]}:{last.at[1]}".encode()[:_ROOM]
    mine[: len(text)] = np.frombuffer(text, np.uint8)
    everybody = np.zeros((link.size, _ROOM), np.uint8)
    yield link.all_gather(mine, everybody)
    calls = [bytes(row).rstrip(b"\0").decode(errors="replace").split("\n") for row in everybody]
    for rank, call in enumerate(calls):
        if call[0] != calls[0][0]:
            raise DistBackendError(
                "Detected mismatch between collectives on ranks. "
                f"Rank 0 is running collective: {' at '.join(calls[0])} (number {last.number} of the group), but "
                f"Rank {rank} is running collective: {' at '.join(call)}"
            )
