"""Kinds of tensors without elements that PyTorch's compiler has. There are none here; libraries ask for them."""

from . import fake_tensor as fake_tensor
from .fake_tensor import FakeTensor

__all__ = ["FakeTensor"]
