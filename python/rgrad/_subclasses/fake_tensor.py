"""Names of PyTorch's tensors without elements that libraries import. Here a tensor of device "meta" has none."""

from typing import Any

from .. import _core

__all__ = ["FakeTensor"]


class FakeTensor(_core.Tensor):
    """A tensor that a compiler traces with. Nothing makes one here: it is for :func:`isinstance`."""


def is_fake(x: Any) -> bool:
    """Whether a value is a :class:`FakeTensor`.

    Args:
        x: Any value.

    Example:
        >>> rgrad._subclasses.fake_tensor.is_fake(rgrad.ones(2))
        False
    """
    return isinstance(x, FakeTensor)
