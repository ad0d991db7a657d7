"""Checkpointing, hook handles, trees of tensors and data loading."""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import checkpoint as checkpoint
    from . import data as data
    from . import hooks as hooks
    from ._swap import swap_tensors as swap_tensors

__getattr__, __dir__ = lazily(__name__, ("_pytree", "checkpoint", "data", "hooks"), {"swap_tensors": "_swap"})

__all__ = ["checkpoint", "data", "hooks", "swap_tensors"]
