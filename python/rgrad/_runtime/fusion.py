"""Deferred results: the switch and the counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import NamedTuple, ParamSpec, TypeVar

from .. import _core

P = ParamSpec("P")
R = TypeVar("R")


class FusionCounts(NamedTuple):
    """Counters of deferred results since the process started."""

    programs: int
    """Fused programs that were run."""
    steps: int
    """Operations in them."""
    bytes_not_written: int
    """Bytes of results that were not held any more when their program ran, so that they were never written."""


class fusion:
    """Switch deferred results on or off.

    The result of a pointwise operation on large tensors is a program over its inputs until it is read (by a matrix
    product, ``item()``, ``numpy()``, printing). Then one pass computes it, together with all results of the program
    that are still held. Results have the same bits either way. The switch is on by default, and it is one for the whole
    process.

    It works at once, as a context manager, and as a decorator::

        rgrad.fusion(False)            # off from now on
        with rgrad.fusion(True):       # on in this block
            ...

    Args:
        enabled: Whether results may be deferred. What is deferred already stays so.

    Raises:
        TypeError: ``enabled`` is no bool.
    """

    def __init__(self, enabled: bool = True) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"fusion() expects a bool, got {type(enabled).__name__}")
        self.enabled = enabled
        self.previous = _core._set_fusion(enabled)

    def __enter__(self) -> fusion:
        _core._set_fusion(self.enabled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core._set_fusion(self.previous)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        _core._set_fusion(self.previous)
        enabled = self.enabled

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            with fusion(enabled):
                return function(*args, **kwargs)

        return wrapper

    def __repr__(self) -> str:
        return f"rgrad.fusion({self.enabled})"

    @staticmethod
    def is_enabled() -> bool:
        """Whether results may be deferred."""
        return _core._fusion_enabled()

    @staticmethod
    def counts() -> FusionCounts:
        """The counters, since the process started; compare two readings."""
        return FusionCounts(*_core._fusion_counts())
