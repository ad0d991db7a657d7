"""The older place of :func:`rgrad.func.vmap`."""

from collections.abc import Callable
from typing import Any

from . import func as _func
from ._runtime.warned import warn_user

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The older place of :func:`rgrad.vmap`, with a warning.

    Args:
        func: The function of one example.
        in_dims: The dimension of the batch in each argument.
        out_dims: The dimension of the batch in each result.

    Returns:
        The function of a batch.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     rgrad._vmap_internals.vmap(lambda x: x.sum())(rgrad.ones(2, 3))
        tensor([3., 3.])
    """
    warn_user("Please use `rgrad.vmap` instead of `rgrad._vmap_internals.vmap`.", FutureWarning)
    return _func.vmap(func, in_dims, out_dims)
