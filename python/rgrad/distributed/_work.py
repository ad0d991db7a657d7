"""What calls with ``async_op=True`` return."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._core import Tensor
from ..futures import Future
from ._engine import Task, engine


class _WorkFuture(Future[Any]):
    """A future that somebody who waits for it works for."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        self._work._drive()
        return super().wait()


class Work:
    """What a call with ``async_op=True`` returns: its result is there when :meth:`wait` has returned.

    Args:
        result: Its tensors.
        task: What runs; None if nothing does.
        timeout: How many seconds :meth:`wait` waits at most.
        report: What to add to the message when that was not enough.
    """

    def __init__(
        self,
        result: list[Tensor],
        task: Task | None = None,
        timeout: float = 1800.0,
        report: Callable[[Task], str] | None = None,
    ) -> None:
        self._result = result
        self._task = task
        self._timeout = timeout
        self._report = report or (lambda task: "")
        self._future: Future[Any] | None = None

    def _drive(self) -> None:
        if self._task is not None and not self._task.done:
            engine.wait(self._task, self._timeout, self._report)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done.

        Args:
            timeout: How long at most; by default as long as the group says.

        Returns:
            True.

        Raises:
            RuntimeError: It has failed, or takes too long.
        """
        if self._task is None:
            return True
        seconds = self._timeout if timeout is None else timeout.total_seconds()
        engine.wait(self._task, seconds or self._timeout, self._report)
        return True

    def synchronize(self) -> None:
        """As :meth:`wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done."""
        if self._task is not None and not self._task.done:
            engine.progress()
        return self._task is None or self._task.done

    def is_success(self) -> bool:
        """Whether it is done and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error with which it has ended, or None."""
        return None if self._task is None else self._task.error

    def source_rank(self) -> int:
        """Who has sent what was received."""
        if self._task is None or self._task.source is None:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv.")
        return self._task.source

    def result(self) -> list[Tensor]:
        """The tensors."""
        return self._result

    def get_future(self) -> Future[Any]:
        """A future with the tensors."""
        if self._future is None:
            self._future = future = _WorkFuture(self)
            if self._task is None:
                future.set_result(self._result)
            else:
                self._task.when_done(lambda: self._settle(future))
        return self._future

    def _settle(self, future: Future[Any]) -> None:
        error = self.exception()
        if isinstance(error, Exception):
            future.set_exception(error)
        else:
            future.set_result(self._result)
