"""Private names of TorchScript that libraries import."""

from collections.abc import Callable
from typing import Any

from .jit import Final, export, ignore, is_scripting, unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any], if_false: Callable[..., Any],
    module_name: str, func_name: str,
) -> Callable[..., Any]:  # fmt: skip
    """A function that is one of two, by a truth value among its arguments.

    Args:
        arg_name: The parameter's name.
        arg_index: Its position.
        default: Its value where it is not given.
        if_true: The function for True.
        if_false: The function for False.
        module_name: The module of the function; has no effect.
        func_name: The function's name.
    """

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatch.__name__ = func_name
    return dispatch


def _overload(func: Any) -> Any:
    """A decorator of signatures that gives them back; has no effect."""
    return func


_overload_method = _overload
