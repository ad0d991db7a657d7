"""Parts of CUDA devices, which there are not."""

from .._runtime.no_device import answering

_NAMES = ["GreenContext"]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.cuda"))
