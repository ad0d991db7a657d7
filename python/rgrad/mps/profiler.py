"""Marks for the profilers of Metal, which is reached through the device "wgpu" here."""

from .._runtime.no_device import CONTEXT, Refused, answering

_NO_DEVICE = Refused(
    RuntimeError, "Cannot execute mps.profiler.{name}() without MPS backend. Apple's GPUs are rgrad.device('wgpu')"
)
_ANSWERS = {
    "is_capturing_metal()": False,
    "is_metal_capture_enabled()": False,
    "metal_capture(fname)": CONTEXT,
    "profile(mode='interval', wait_until_completed=False)": CONTEXT,
    "start(mode='interval', wait_until_completed=False)": _NO_DEVICE,
    "stop()": _NO_DEVICE,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)
