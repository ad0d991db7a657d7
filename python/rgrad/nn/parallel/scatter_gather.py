"""The place of ``scatter`` and ``gather`` in PyTorch."""

from .data_parallel import gather, scatter

__all__ = ["gather", "scatter"]
