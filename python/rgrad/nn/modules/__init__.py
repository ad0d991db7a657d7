"""The modules under the names of the files in which PyTorch keeps them."""

from . import module as module
from .module import Module as Module

__all__ = ["Module", "module"]
