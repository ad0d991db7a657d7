"""The class of compiled modules, to compare with: :func:`rgrad.compile` gives the module itself."""

from typing import Any

from ..nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """The class of PyTorch's compiled modules. Nothing here is one of them."""

    _orig_mod: Any
