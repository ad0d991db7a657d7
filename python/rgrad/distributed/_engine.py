"""Runs programs of messages: generators that yield what they wait for.

A program yields a request of MPI, a list of them, or None, and goes on when all of them are done. Those of one lane
run one after the other, in the order in which they were started, so that all members of a group start the same
operations in the same order. Sends and receives have no lane. Whoever waits drives all programs; a thread of its own
drives them too while somebody has asked for that (``async_op=True``), and looks for news of other processes.

One lock guards the engine and all calls of MPI. User code never runs under it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from ._errors import DistBackendError
from ._mpi import translated

Program = Generator[Any, None, None]

# A poll costs about a microsecond; so many come before the process sleeps between two of them.
_SPINS = 400
_PAUSE = 0.0001
# How often the thread looks for news while nothing runs.
_IDLE = 0.05


class Task:
    """A program that runs.

    Args:
        program: What it does.
        name: Its operation.
        detail: What it is called with, for messages.
        at: File and line of the caller.
        peers: Answers whether somebody whom the program needs is gone: a message, or "".
    """

    def __init__(
        self,
        program: Program,
        name: str,
        detail: str = "",
        at: tuple[str, int] | None = None,
        peers: Callable[[], str] | None = None,
    ) -> None:
        self.program = program
        self.name, self.detail, self.at = name, detail, at
        self.peers = peers
        self.done = False
        self.error: BaseException | None = None
        self.source: int | None = None
        self._requests: list[Any] = []
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"{self.name}{self.detail}" + (f" at {self.at[0]}:{self.at[1]}" if self.at else "")

    def step(self) -> bool:
        """Go on as far as possible. The engine's lock is held."""
        moved = False
        while not self.done:
            try:
                while self._requests:
                    if not self._requests[-1].Test():
                        return moved
                    self._requests.pop()
                wanted = next(self.program)
            except StopIteration:
                self.done = True
            except BaseException as error:
                self.error = translated(error)
                self.done = True
            else:
                if wanted is not None:
                    self._requests = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
            moved = True
        return moved

    def fail(self, error: BaseException) -> None:
        """End it without what it waits for. The engine's lock is held."""
        self.error, self.done = error, True

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call something when the task is done; at once if it is."""
        with self._lock:
            if self._callbacks is not None and not self.done:
                self._callbacks.append(callback)
                return
        callback()

    def tell(self) -> None:
        """Make the calls that wait. The engine's lock is not held."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Lane:
    """Tasks of which one runs at a time."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()


class Engine:
    """All programs of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.news: Callable[[], None] | None = None
        self._lanes: dict[int, Lane] = {}
        self._free: list[Task] = []
        self._wake = threading.Event()
        self._stop = False
        self._watched = 0
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def start(self, task: Task, lane: Lane | None = None) -> None:
        """Begin a program; one of a lane when those before it are done."""
        if os.getpid() != self._pid:
            raise DistBackendError(
                f"{task.name}: this process was forked from one of a process group and is no member; start it with "
                "the spawn method and a group of its own"
            )
        with self.lock:
            if lane is None:
                self._free.append(task)
            else:
                lane.tasks.append(task)
                self._lanes[id(lane)] = lane
        self.progress()

    def progress(self) -> bool:
        """Let all programs go on as far as they can."""
        ended: list[Task] = []
        moved = False
        with self.lock:
            for lane in list(self._lanes.values()):
                while lane.tasks:
                    moved |= lane.tasks[0].step()
                    if not lane.tasks[0].done:
                        break
                    ended.append(lane.tasks.popleft())
                if not lane.tasks:
                    self._lanes.pop(id(lane), None)
            if self._free:
                for task in self._free:
                    moved |= task.step()
                ended += [task for task in self._free if task.done]
                self._free = [task for task in self._free if not task.done]
        for task in ended:
            task.tell()
        return moved

    def wait(self, task: Task, timeout: float, report: Callable[[Task], str]) -> None:
        """Drive all programs until one is done.

        Raises:
            DistBackendError: It takes longer than ``timeout`` seconds, or a process that it needs is gone.
        """
        polls, limit = 0, 0.0
        while not task.done:
            if self.progress():
                polls = 0
                continue
            polls += 1
            if polls < _SPINS:
                os.sched_yield()
                continue
            time.sleep(_PAUSE)
            if polls % 16:
                continue
            now = time.monotonic()
            limit = limit or now + timeout
            if self.news is not None:
                self.news()
            gone = task.peers() if task.peers is not None else ""
            if gone and not task.done:
                self.give_up(task, DistBackendError(f"{task}: {gone}"))
            elif now > limit:
                self.give_up(
                    task,
                    DistBackendError(
                        f"Timed out waiting {round(1000 * timeout)}ms for {task.name} operation to "
                        f"complete{report(task)}"
                    ),
                )
        if task.error is not None:
            raise task.error

    def give_up(self, task: Task, error: BaseException) -> None:
        """End a task with an error. What MPI has begun for it stays begun, so its group cannot be used any more."""
        with self.lock:
            if not task.done:
                task.fail(error)
        self.progress()

    def watch(self, task: Task) -> None:
        """Have the thread drive programs until a task is done."""
        with self.lock:
            self._watched += 1
            self.serve()
        task.when_done(self._unwatch)
        self._wake.set()

    def _unwatch(self) -> None:
        with self.lock:
            self._watched -= 1

    def serve(self) -> None:
        """Start the thread."""
        if self._thread is None and not self._stop:
            self._thread = threading.Thread(target=self._serve, name="rgrad.distributed", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while not self._stop:
            if self._watched > 0:
                if not self.progress():
                    time.sleep(_PAUSE)
            else:
                self._wake.wait(_IDLE)
                self._wake.clear()
            if self.news is not None and not self._stop:
                self.news()

    def close(self) -> None:
        """Stop the thread; a later task starts a new one."""
        thread = self._thread
        self._stop = True
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)
        self._thread, self._stop = None, False


engine = Engine()
