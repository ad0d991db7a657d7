"""TorchScript's names. Nothing is compiled here: functions and modules run as the Python code that they are.

`script` and its decorators give back what they get. `trace` runs the example once, and gives a module or a function
that holds later calls to it. A script cannot be written to a file, since there is none: see :func:`save`.
"""

from typing import Final

from ..futures import Future
from . import _script as _script
from . import _trace as _trace
from . import annotations as annotations
from ._async import fork, wait
from ._isinstance import isinstance
from ._script import (
    Attribute,
    CompilationUnit,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptWarning,
    annotate,
    enable_onednn_fusion,
    export,
    export_opnames,
    freeze,
    fuser,
    ignore,
    interface,
    is_scripting,
    last_executed_optimized_graph,
    onednn_fusion_enabled,
    optimize_for_inference,
    optimized_execution,
    run_frozen_optimizations,
    script,
    script_method,
    set_fusion_strategy,
    strict_fusion,
    unused,
)
from ._script import _overload as _overload
from ._script import _overload_method as _overload_method
from ._serialization import Error, jit_module_from_flatbuffer, load, save, save_jit_module_to_flatbuffer
from ._trace import (
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    TracingCheckError,
    is_tracing,
    script_if_tracing,
    trace,
    trace_module,
)
from ._trace import _get_trace_graph as _get_trace_graph

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "jit_module_from_flatbuffer",
    "last_executed_optimized_graph",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "save_jit_module_to_flatbuffer",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_fork, _wait, _set_fusion_strategy = fork, wait, set_fusion_strategy
_script_if_tracing = script_if_tracing
