"""The transform that takes writes and views out of a function's trace."""

from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["functionalize"]

_REMOVED = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Give a function with the results and the effects of ``func``.

    PyTorch's writes no tensor in between and makes no views. That shows in traces alone, which there are none of here:
    the function calls ``func``.

    Args:
        func: A function of tensors.
        remove: ``"mutations"`` or ``"mutations_and_views"``.

    Returns:
        The function.

    Raises:
        RuntimeError: ``remove`` is something else.

    Example:
        >>> def f(x):
        ...     y = x.clone()
        ...     return y.add_(1)
        >>> rgrad.func.functionalize(f)(rgrad.ones(2))
        tensor([2., 2.])
    """
    if remove not in _REMOVED:
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove: valid options are "
            f"'mutations' and 'mutations_and_views', got {remove!r}"
        )

    @wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return called
