"""What processes know about each other: the last operation of each, and who has left.

News go through a link of their own, as messages that nobody waits for, so that a process that computes, sleeps or
waits for something else can be asked.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._engine import engine
from ._mpi import Link

if TYPE_CHECKING:
    from ._group import ProcessGroup

# Above the tags of meetings, within what each MPI library has.
_TAG = 32700
# So long an answer is waited for, and a message of a process that has left may still be on its way.
_PATIENCE = 2.0
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def place() -> tuple[str, int]:
    """File and line of the innermost frame outside of rgrad."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Last:
    """A collective that a process has begun.

    Args:
        number: Its number in its group.
        name: The function.
        tensors: Their dtypes and shapes, and what else must be alike.
        at: File and line.
    """

    def __init__(self, number: int, name: str, tensors: Sequence[Any], at: tuple[str, int]) -> None:
        self.number, self.name, self.tensors, self.at = number, name, tensors, at

    def call(self) -> str:
        """The call without its number."""
        return f"{self.name}({', '.join(map(str, self.tensors))}) at {self.at[0]}:{self.at[1]}"

    def __str__(self) -> str:
        return f"#{self.number} {self.call()}"


class Watch:
    """What this process tells the others, and what they have told.

    Args:
        link: A link of all processes for news alone.
        groups: The groups of this process.
    """

    def __init__(self, link: Link, groups: Sequence[ProcessGroup]) -> None:
        self.link = link
        self.groups = groups
        self.answers: dict[int, str] = {}
        self.left: dict[int, tuple[float, dict[str, int]]] = {}
        self.counts: dict[str, int] = {}
        self._sent: list[Any] = []
        self._here = True
        self._hook = sys.excepthook
        engine.news = self.read
        engine.serve()
        sys.excepthook = self._failed
        atexit.register(self._at_exit)

    def _tell(self, rank: int, *what: Any) -> None:
        data = np.frombuffer(pickle.dumps(what), np.uint8)
        self._sent = [one for one in self._sent if not one[0].Test()]
        self._sent.append((self.link.send(data, rank, _TAG), data))

    def read(self) -> None:
        """Read what has come, and answer questions."""
        with engine.lock:
            while self._here and (found := self.link.waiting_message(_TAG)) is not None:
                sender, size, message = found
                data = np.empty(size, np.uint8)
                message.Recv(data)
                kind, *values = pickle.loads(data.tobytes())
                if kind == "ask":
                    self._tell(sender, "answer", self.state())
                elif kind == "answer":
                    self.answers[sender] = values[0]
                elif kind == "left":
                    self.left[sender] = (time.monotonic(), values[0])

    def state(self) -> str:
        """What this process did last, in words."""
        lines = []
        for group in list(self.groups):
            if group.last is not None and group.size() > 1:
                what = "waiting in" if group.lane.tasks else "done with"
                lines.append(f"{what} {group.last}" + (f" in {group}" if group.group_name != "0" else ""))
        return "; ".join(lines) or "no collective yet"

    def gone(self, ranks: Sequence[int], group: str | None, number: int) -> str:
        """Whether a process that is needed has left: a message, or "".

        Args:
            ranks: Who is needed.
            group: In which group's collective; None for a message.
            number: Which collective of it.
        """
        for rank in ranks:
            if rank in self.left:
                since, counts = self.left[rank]
                if group is not None and counts.get(group, 0) >= number:
                    continue
                if group is None and time.monotonic() < since + _PATIENCE:
                    continue
                done = counts.get(group or "0", 0)
                return (
                    f"rank {rank} has left: its program or its process group ended after {done} collectives of the "
                    f"group"
                )
        return ""

    def report(self) -> str:
        """The last collective of each process, as lines of a message."""
        others = [rank for rank in range(self.link.size) if rank != self.link.rank]
        with engine.lock:
            self.answers.clear()
            for rank in others:
                if rank not in self.left:
                    self._tell(rank, "ask")
        limit = time.monotonic() + _PATIENCE
        while time.monotonic() < limit and any(r not in self.answers and r not in self.left for r in others):
            self.read()
            time.sleep(0.01)
        self.answers[self.link.rank] = self.state()
        lines = []
        for rank in range(self.link.size):
            silent = "has left" if rank in self.left else "does not answer"
            lines.append(f"  rank {rank}: {self.answers.get(rank, silent)}")
        return "\nThe last collective of each rank:\n" + "\n".join(lines)

    def leave(self) -> None:
        """Tell the others that this process takes part in nothing more."""
        if not self._here:
            return
        limit = time.monotonic() + _PATIENCE
        with engine.lock:
            for rank in range(self.link.size):
                if rank != self.link.rank and rank not in self.left:
                    self._tell(rank, "left", self.counts)
            while self._sent and time.monotonic() < limit:
                self._sent = [one for one in self._sent if not one[0].Test()]
            self._here = False
            engine.news = None
        atexit.unregister(self._at_exit)
        if sys.excepthook == self._failed:
            sys.excepthook = self._hook

    def _at_exit(self) -> None:
        self.leave()
        engine.close()

    def _failed(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """The others would wait for this process, so an error that nobody handles ends all of them."""
        try:
            self._hook(kind, error, traceback)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            self.link.abort(1)
