"""Which modules' forwards are running, for profiles, counters and recordings of memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from . import _global_hooks

T = TypeVar("T")


class Running(NamedTuple, Generic[T]):
    """A module whose forward runs, and what was returned when it was entered."""

    module: Any
    state: T


class RunningModules(Generic[T]):
    """Tells of every call of a module, from now until :meth:`stop`. Each thread has its own nesting.

    Calls that had begun before are not told of. A call that ends in an exception is left, too, and so are the calls
    inside of it that were entered and never left.

    Args:
        enter: ``enter(module, around)``, where ``around`` is the innermost running module of the thread, or None.
            Returns what is kept for the call.
        leave: ``leave(state)`` with what ``enter`` returned.
    """

    def __init__(self, enter: Callable[[Any, Running[T] | None], T], leave: Callable[[T], None]) -> None:
        self._enter_one, self._leave_one = enter, leave
        self._running = threading.local()
        self._handles = [
            _global_hooks.register_module_forward_pre_hook(self._enter),
            _global_hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def _stack(self) -> list[Running[T]]:
        stack: list[Running[T]] = self._running.__dict__.setdefault("stack", [])
        return stack

    def _enter(self, module: Any, args: Any) -> None:
        stack = self._stack()
        stack.append(Running(module, self._enter_one(module, stack[-1] if stack else None)))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        stack = self._stack()
        if any(running.module is module for running in stack):
            while stack:
                running = stack.pop()
                self._leave_one(running.state)
                if running.module is module:
                    break

    def stop(self) -> None:
        """Ends it. What still runs on this thread is left; on other threads it is not told of any more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        _global_hooks.hooked()
        stack = self._stack()
        while stack:
            self._leave_one(stack.pop().state)
