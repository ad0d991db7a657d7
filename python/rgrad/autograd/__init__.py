"""Automatic differentiation: ``backward``, ``grad``, custom ``Function``, grad modes, the graph, gradient checks.

The engine is native. Transforms of functions are in ``rgrad.func``, which is built on this package; what both need
without a backward pass is in ``rgrad._transforms``.
"""

from typing import TYPE_CHECKING

from .._core import SavedTensor as SavedTensor
from .._runtime.lazy import lazily
from . import _unused_totals as _unused_totals
from .anomaly_mode import detect_anomaly as detect_anomaly
from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
from .backward import backward as backward
from .backward import grad as grad
from .function import Function as Function
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import enable_grad as enable_grad
from .grad_mode import inference_mode as inference_mode
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .gradcheck import GradcheckError as GradcheckError
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .variable import Variable as Variable

if TYPE_CHECKING:
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler
    from . import profiler_util as profiler_util

__getattr__, __dir__ = lazily(__name__, ("forward_ad", "functional", "graph", "profiler", "profiler_util"))

__all__ = [
    "Function",
    "GradcheckError",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
