"""Names of PyTorch's compiler that libraries import. Nothing is compiled here; see :func:`rgrad.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from . import config as config
from . import eval_frame as eval_frame
from . import external_utils as external_utils
from . import utils as utils
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]


def optimize(backend: Any = "inductor", **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that gives its function back; it has no effect.

    Args:
        backend: Has no effect.
        kwargs: Has no effect.
    """
    return lambda given: given


def run(fn: Any = None) -> Any:
    """Give the function back as it is; without it, a decorator that does so."""
    return (lambda given: given) if fn is None else fn


def disallow_in_graph(fn: Any) -> Any:
    """Give the function back as it is."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Give the function back as it is."""
    return fn


def graph_break(msg: str = "") -> None:
    """Do nothing: there is no graph."""


def is_dynamo_supported() -> bool:
    """False: nothing is compiled."""
    return False


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Do nothing: sizes are those of each call."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Do nothing: sizes are those of each call."""


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing: sizes are those of each call."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing: nothing is compiled for an address."""


def export(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Refused: :func:`rgrad.export.export` makes graphs.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError("_dynamo.export: use rgrad.export.export, which gives a graph with its signature")
