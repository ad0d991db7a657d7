"""The forward of each module as a range of the profiler."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..autograd.profiler import record_function
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


class ModuleRanges:
    """From ``start`` to ``stop``, each call of a module is a range ``nn.Module: Linear_0``.

    The number tells the modules of one class apart, in the order of their first calls.
    """

    def __init__(self) -> None:
        self._open: list[tuple[Any, record_function]] = []
        self._names: dict[int, str] = {}
        # An address stands for a module as long as that lives.
        self._alive: list[Any] = []
        self._counts: Counter[str] = Counter()
        self._handles: list[Any] = []

    def _name(self, module: Any) -> str:
        if id(module) not in self._names:
            kind = type(module).__name__
            self._names[id(module)] = f"nn.Module: {kind}_{self._counts[kind]}"
            self._counts[kind] += 1
            self._alive.append(module)
        return self._names[id(module)]

    def _enter(self, module: Any, args: Any) -> None:
        opened = record_function(self._name(module))
        opened.__enter__()
        self._open.append((module, opened))

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        # A module whose pre-hooks have failed was entered, and is left by nobody.
        while self._open:
            entered, opened = self._open.pop()
            opened.__exit__(None, None, None)
            if entered is module:
                return

    def start(self) -> None:
        """Begins."""
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Ends it."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)
