"""Processes of `multiprocessing` hold the alias that their parent holds.

A forked one has it by itself. One that is spawned gets a dict of preparations, which it unpickles before it imports the
program: an object in there installs the alias.
"""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
from collections.abc import Callable
from typing import Any

_KEY = "rgrad.compat"
# What a fork server imports by default, and what it imports here.
_PRELOAD = ["__main__"]
_PRELOAD_HERE = ["rgrad.compat"]
_original: Any = None


class _Marker:
    """Whose unpickling calls a function.

    Args:
        function: A function at the top level of a module.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return self._function, ()


def hold(in_child: Callable[[], None]) -> None:
    """Let new processes call a function before they import the program."""
    global _original
    if _original is not None:
        return
    original = _original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {**original(name), _KEY: _Marker(in_child)}

    multiprocessing.spawn.get_preparation_data = get_preparation_data
    server: Any = multiprocessing.forkserver._forkserver
    if server._preload_modules == _PRELOAD:
        # From Python 3.13.2 on the server imports the program, before any preparations come.
        server._preload_modules = list(_PRELOAD_HERE)


def let_go() -> None:
    """Undo :func:`hold`."""
    global _original
    if _original is not None:
        multiprocessing.spawn.get_preparation_data = _original
        _original = None
        server: Any = multiprocessing.forkserver._forkserver
        if server._preload_modules == _PRELOAD_HERE:
            server._preload_modules = list(_PRELOAD)
