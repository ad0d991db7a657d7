"""The profiler: what ran, how long, with which shapes and how much memory, as tables and as traces.

:class:`profile` records a block or the steps that a :func:`schedule` picks. The events and their tables are those of
:mod:`rgrad.autograd.profiler`. Names, parameters and columns are PyTorch's; see ``docs/profiler.md``.
"""

from ..autograd._profiler_kinds import DeviceType as DeviceType
from ..autograd._profiler_kinds import ProfilerActivity as ProfilerActivity
from ..autograd.profiler import record_function as record_function
from . import itt as itt
from ._kineto import _KinetoProfile as _KinetoProfile
from ._kineto import supported_activities as supported_activities
from .profiler import ExecutionTraceObserver as ExecutionTraceObserver
from .profiler import ProfilerAction as ProfilerAction
from .profiler import profile as profile
from .profiler import schedule as schedule
from .profiler import tensorboard_trace_handler as tensorboard_trace_handler

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def kineto_available() -> bool:
    """Always False: traces are written by rgrad itself."""
    return False
