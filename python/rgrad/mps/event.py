"""The events of :mod:`rgrad.mps` under their module's name."""

from .._runtime.no_device import answering

_NAMES = ["Event"]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.mps"))
