"""Switches of TorchScript's native module, ``rgrad._C._jit_...``. Each gives what it was set to; none has an effect."""

from collections.abc import Callable
from typing import Any

_values: dict[str, Any] = {
    "_jit_override_can_fuse_on_cpu": False,
    "_jit_override_can_fuse_on_gpu": False,
    "_jit_set_bailout_depth": 20,
    "_jit_set_fusion_strategy": [("STATIC", 2), ("DYNAMIC", 10)],
    "_jit_set_num_profiled_runs": 1,
    "_jit_set_nvfuser_enabled": False,
    "_jit_set_profiling_executor": True,
    "_jit_set_profiling_mode": True,
    "_jit_set_texpr_fuser_enabled": True,
    "_jit_set_texpr_reductions_enabled": False,
}
# What asks for a switch, by the one that sets it.
_questions = {
    "_jit_can_fuse_on_cpu": "_jit_override_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu": "_jit_override_can_fuse_on_gpu",
    "_jit_nvfuser_enabled": "_jit_set_nvfuser_enabled",
    "_jit_texpr_fuser_enabled": "_jit_set_texpr_fuser_enabled",
    "_jit_texpr_reductions_enabled": "_jit_set_texpr_reductions_enabled",
}


def _setter(name: str) -> Callable[[Any], Any]:
    def switch(value: Any) -> Any:
        before, _values[name] = _values[name], value
        return before

    switch.__name__ = name
    return switch


def __getattr__(name: str) -> Any:
    if name in _values:
        return _setter(name)
    if name in _questions:
        return lambda: _values[_questions[name]]
    raise AttributeError(f"module 'rgrad._C' has no attribute {name!r}")
