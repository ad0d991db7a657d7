"""Tells the core which module's forward runs, while memory is recorded."""

from typing import Any

from .. import _core
from ..nn.modules._running_modules import Running, RunningModules

#: The path of a running module, such as "Net.layer1.0", and the number of the one that ran before.
Named = tuple[str, int]


def _enter(module: Any, around: Running[Named] | None) -> Named:
    name = type(module).__name__
    if around is not None:
        own = next((key for key, child in around.module._modules.items() if child is module), name)
        name = f"{around.state[0]}.{own}"
    return name, _core._enter_module(_core._module_number(name))


def _leave(state: Named) -> None:
    _core._enter_module(state[1])


def module_names() -> RunningModules[Named]:
    """Names the modules that run, until it is stopped."""
    return RunningModules(_enter, _leave)
