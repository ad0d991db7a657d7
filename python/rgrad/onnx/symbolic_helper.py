"""Helpers that libraries import for symbolic functions of TorchScript's exporter. Such functions are never called here.

What decorates a function gives it back; what would make a node is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """A decorator that gives the function back; ``arg_descriptors`` has no effect."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, scale: Any = None, zero_point: Any = None) -> Callable[[F], F]:
    """A decorator that gives the function back; its arguments have no effect."""
    return lambda fn: fn


def _refuse(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        f"onnx.symbolic_helper.{name}: rgrad's exporter has no graph of TorchScript, and calls no symbolic functions"
    )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(_refuse, name)
