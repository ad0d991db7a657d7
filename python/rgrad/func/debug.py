"""Looking through transforms while debugging."""

from .. import _core
from .._core import Tensor

__all__ = ["debug_unwrap"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside a transform stands for: with a batch as its first dimension, and without history.

    For debugging only: what is computed with the result is no part of the transform.

    Args:
        recurse: look through all transforms, not only the innermost.

    Returns:
        The tensor below; ``tensor`` itself where it is of no transform.

    Raises:
        TypeError: ``tensor`` is no tensor.
    """
    while (level := _core._level_of(tensor)) > 0:
        tensor = _core._unwrap(tensor, level)[0]
        if not recurse:
            break
    return tensor
