"""The name that pickles of tensors and generators have for what makes them again. Files have it, so it stays."""

from ._tensor.construct import generator, rebuild

__all__ = ["generator", "rebuild"]
