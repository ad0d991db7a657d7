"""Tells the core which module's forward runs, while memory is recorded."""

import threading
from typing import Any

from .. import _core
from ..nn.modules import _global_hooks


class ModuleNames:
    """Hooks on all modules that name the running one by its path, such as "Net.layer1.0"."""

    def __init__(self) -> None:
        self.running = threading.local()
        self.was_hooked = _global_hooks.hooked
        self.handles = [
            _global_hooks.register_module_forward_pre_hook(self._enter),
            _global_hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def remove(self) -> None:
        """Remove the hooks. Modules that run now keep their names until they return."""
        for handle in self.handles:
            handle.remove()
        tables = (_global_hooks.forward_pre, _global_hooks.forward, _global_hooks.backward_pre, _global_hooks.backward)
        # Other hooks may have come in the block.
        _global_hooks.hooked = self.was_hooked or any(tables)
        _core._enter_module(0)

    def _enter(self, module: Any, args: Any) -> None:
        stack = self.running.__dict__.setdefault("stack", [])
        name = type(module).__name__
        if stack:
            outer, path, _ = stack[-1]
            own = next((key for key, child in outer._modules.items() if child is module), name)
            name = f"{path}.{own}"
        stack.append((module, name, _core._enter_module(_core._module_number(name))))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        stack = self.running.__dict__.get("stack", [])
        # A module that was running when the recording began was not entered.
        if any(entry[0] is module for entry in stack):
            while stack:
                entered, _, before = stack.pop()
                _core._enter_module(before)
                if entered is module:
                    break
