"""Values that are there later: :class:`Future`, and what waits for several of them."""

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that somebody sets later, from any thread.

    Args:
        devices: Has no effect.

    Example:
        >>> future = rgrad.futures.Future()
        >>> twice = future.then(lambda done: 2 * done.value())
        >>> future.set_result(3)
        >>> twice.wait()
        6
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future: it belongs to the process that made it")

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def wait(self) -> T:
        """The result, when it is there.

        Raises:
            Exception: The error that was set instead.
        """
        with self._changed:
            while not self._done:
                self._changed.wait()
        return self._outcome()

    def value(self) -> T:
        """The result of a future that is done.

        Raises:
            RuntimeError: It is not done.
            Exception: The error that was set instead.
        """
        if not self._done:
            raise RuntimeError("Future.value: the future is not done; call wait(), or value() in a callback of it")
        return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        value: T = self._result
        return value

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        # Without the lock: a callback may ask for anything.
        for callback in callbacks:
            callback(self)

    def _when_done(self, callback: Callable[["Future[T]"], Any]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Set the result, and run the callbacks on this thread.

        Raises:
            RuntimeError: The future is done.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the error that :meth:`wait` and :meth:`value` raise, and run the callbacks on this thread.

        Raises:
            AssertionError: It is no exception.
            RuntimeError: The future is done.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def then(self, callback: Callable[["Future[T]"], S]) -> "Future[S]":
        """A future of what the callback makes of this one, when it is done.

        An error in the callback is the new future's error: a RuntimeError with its text.
        """
        made: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                made._complete(None, _of_callback(error))
            else:
                made._complete(result, None)

        self._when_done(run)
        return made

    def add_done_callback(self, callback: Callable[["Future[T]"], None]) -> None:
        """Call a function with this future when it is done. An error in it is written to stderr and goes no further."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception as error:
                sys.stderr.write(f"{_of_callback(error)}\n")

        self._when_done(run)


def _of_callback(error: Exception) -> RuntimeError:
    places = "".join(
        f"\n  {frame.filename}({frame.lineno}): {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    )
    made = RuntimeError(
        f"Got the following error when running the callback: {type(error).__name__}: {error}\n\nAt:{places}"
    )
    made.__cause__ = error
    return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all of a list are; its result is the list.

    If one of them has an error, so has the new one, when all are done.
    """
    given = list(futures)
    made: Future[list[Future[Any]]] = Future()
    left = len(given)
    lock = threading.Lock()

    def one_is_done(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        failed = next((future._error for future in given if future._error is not None), None)
        made._complete(None if failed else given, failed)

    if not given:
        made.set_result(given)
    for future in given:
        future._when_done(one_is_done)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of a list of futures, when all are there.

    Raises:
        Exception: The error of one of them.
    """
    return [future.wait() for future in collect_all(futures).wait()]
