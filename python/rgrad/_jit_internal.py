"""Private names of TorchScript that libraries import."""

from collections.abc import Callable
from typing import Any

from .futures import Future
from .jit import Final, export, ignore, is_scripting, unused
from .jit.annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    Dict,
    List,
    Optional,
    Tuple,
    Union,
)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Final",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]


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


def _as_it_is(func: Any) -> Any:
    """A decorator for TorchScript's compiler; has no effect."""
    return func


_overload = _overload_method = _copy_to_script_wrapper = _as_it_is
