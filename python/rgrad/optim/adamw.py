"""AdamW, in PyTorch's file."""

from .adam import AdamW

__all__ = ["AdamW"]
