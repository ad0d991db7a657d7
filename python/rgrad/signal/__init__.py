"""Signals, as ``torch.signal`` has them: windows."""

from . import windows as windows

__all__ = ["windows"]
