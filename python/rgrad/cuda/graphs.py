"""The graphs of :mod:`rgrad.cuda` under their module's name."""

from .._runtime.no_device import answering

_NAMES = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

__getattr__, __dir__ = answering(__name__, {}, of=dict.fromkeys(_NAMES, "rgrad.cuda"))
