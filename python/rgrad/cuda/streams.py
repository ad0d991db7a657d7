"""The streams of :mod:`rgrad.cuda` under their module's name."""

from .._runtime.no_device import answering

_NAMES = ["Event", "ExternalStream", "Stream"]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.cuda"))
