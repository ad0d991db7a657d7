"""Sparse tensors of one dtype on CUDA devices: none can be made."""

from .._runtime.no_device import NO_CUDA, answering

_KINDS = ["BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]

__getattr__, __dir__ = answering(__name__, {f"class {kind}Tensor": NO_CUDA for kind in _KINDS})
