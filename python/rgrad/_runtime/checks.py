"""PyTorch's ``_check*`` and ``_assert``: conditions that libraries test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor

_Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: Any, message: _Message) -> None:
    """Raise an error where a condition is false.

    Args:
        error_type: The type of the error.
        cond: A truth value.
        message: A function that makes the error's text, or None.

    Raises:
        TypeError: ``cond`` is no truth value, or ``message`` is no function.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check(cond: Any, message: _Message = None) -> None:
    """Raise a RuntimeError where ``cond`` is false."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: _Message = None) -> None:
    """Raise an IndexError where ``cond`` is false."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: _Message = None) -> None:
    """Raise a ValueError where ``cond`` is false."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: _Message = None) -> None:
    """Raise a TypeError where ``cond`` is false."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: _Message = None) -> None:
    """Raise a NotImplementedError where ``cond`` is false."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: int | None = None) -> None:
    """Raise a RuntimeError where ``i`` is negative, or larger than ``max``."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Tensor, message: _Message = None) -> None:
    """Raise a RuntimeError where an element of a bool tensor is false.

    Raises:
        TypeError: ``cond`` is no tensor of dtype bool.
    """
    if not isinstance(cond, Tensor) or cond.dtype.is_floating_point or str(cond.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"cond must be a tensor of dtype bool, but got {cond!r}")
    _check(bool(cond.all()), message)


def _assert(condition: Any, message: str) -> None:
    """``assert`` as a function.

    Raises:
        AssertionError: The condition is false.
    """
    if not condition:
        raise AssertionError(message)


def _assert_async(condition: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """The same for a tensor of one element; it waits for the element.

    Raises:
        RuntimeError: The element is zero.
    """
    if not bool(condition):
        raise RuntimeError(message)
