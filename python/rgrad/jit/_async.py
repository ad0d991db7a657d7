"""Calls that may run beside others. Here they run at once."""

from collections.abc import Callable
from typing import Any

from ..futures import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function, and give its result as a future that is done; so does PyTorch outside of scripts.

    Args:
        func: The function, or a module.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """The result of a future, when it is there."""
    return future.wait()
