"""Metal, which is reached through the device "wgpu" here."""

from .._runtime.no_device import Refused, answering

_NO_DEVICE = Refused(
    RuntimeError, "Cannot execute backends.mps.{name}() without MPS backend. Apple's GPUs are rgrad.device('wgpu')"
)
_ANSWERS = {
    "get_core_count()": _NO_DEVICE,
    "get_name()": _NO_DEVICE,
    "is_macos13_or_newer(minor=0)": _NO_DEVICE,
    "is_macos_or_newer(major, minor)": _NO_DEVICE,
}
__getattr__, __dir__ = answering(__name__, _ANSWERS)


def is_available() -> bool:
    """Always False: there is no device "mps"; see :mod:`rgrad.wgpu`."""
    return False


def is_built() -> bool:
    """Always False."""
    return False
