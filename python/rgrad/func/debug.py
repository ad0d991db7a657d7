"""Looking through transforms while debugging."""

from .. import _core
from .._core import Tensor

__all__ = ["debug_unwrap"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor that a tensor inside a transform wraps: with the batch as its first dimension, and without history.

    It is for debugging only: what is computed with the result is no part of the transform.

    Args:
        tensor: The tensor.
        recurse: Look through all transforms, not only the innermost.

    Returns:
        The tensor below; ``tensor`` itself if it belongs to no transform.

    Raises:
        TypeError: ``tensor`` is no tensor.

    Example:
        >>> def f(x):
        ...     print(tuple(x.shape), tuple(rgrad.func.debug_unwrap(x).shape))
        ...     return x
        >>> _ = rgrad.func.vmap(f)(rgrad.ones(3, 2))
        (2,) (3, 2)
    """
    while (level := _core._level_of(tensor)) > 0:
        tensor = _core._unwrap(tensor, level)[0]
        if not recurse:
            break
    return tensor
