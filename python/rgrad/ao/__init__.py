"""The place of PyTorch's quantisation."""

from . import quantization as quantization

__all__ = ["quantization"]
