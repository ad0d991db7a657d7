"""PyTorch's place of the parts of a loader."""

from . import collate as collate

__all__ = ["collate"]
