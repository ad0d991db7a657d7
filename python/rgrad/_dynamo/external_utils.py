"""Names of PyTorch's compiler that libraries import from here."""

from ..compiler import is_compiling, wrap_numpy

__all__ = ["is_compiling", "wrap_numpy"]
