"""The forward of each module as a range of the profiler."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..autograd.profiler import record_function
from ..nn.modules._running_modules import RunningModules


class ModuleRanges:
    """Until ``stop``, each call of a module is a range ``nn.Module: Linear_0``.

    The number tells the modules of one class apart, in the order of their first calls.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        # An address stands for a module as long as that lives.
        self._alive: list[Any] = []
        self._counts: Counter[str] = Counter()
        self._watch = RunningModules(self._open, lambda opened: opened.__exit__(None, None, None))

    def _name(self, module: Any) -> str:
        if id(module) not in self._names:
            kind = type(module).__name__
            self._names[id(module)] = f"nn.Module: {kind}_{self._counts[kind]}"
            self._counts[kind] += 1
            self._alive.append(module)
        return self._names[id(module)]

    def _open(self, module: Any, _around: object) -> record_function:
        return record_function(self._name(module)).__enter__()

    def stop(self) -> None:
        """Ends it."""
        self._watch.stop()
