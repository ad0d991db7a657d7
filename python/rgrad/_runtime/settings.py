"""Switches of PyTorch that programs set and ask for. None changes what is computed here: see each for the reason."""

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_precision = "highest"
_interop_threads: int | None = None
_deterministic = False
_warn_only = False


def set_float32_matmul_precision(precision: str) -> None:
    """Say how precise products of float32 matrices should be. They are always computed in float32 here.

    Args:
        precision: ``"highest"``, ``"high"`` or ``"medium"``; anything else is warned of and changes nothing.
    """
    global _precision
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has "
            "no effect.",
            stacklevel=2,
        )
        return
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What :func:`set_float32_matmul_precision` was given last, at first ``"highest"``."""
    return _precision


def set_num_interop_threads(num: int) -> None:
    """Say how many operations may run beside each other. All threads here work on one operation: see `set_num_threads`.

    Args:
        num: A positive number.

    Raises:
        RuntimeError: ``num`` is no positive integer, or this was called before.
    """
    global _interop_threads
    if type(num) is not int:
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _interop_threads is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _interop_threads = num


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was given, at first the number of processors."""
    return _interop_threads or os.cpu_count() or 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operations that give the same bits each time. Those of the CPU always do, for any number of threads.

    Args:
        mode: Whether to ask.
        warn_only: Whether PyTorch would warn of other operations instead of refusing them.

    Raises:
        TypeError: ``mode`` is no bool.
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _deterministic, _warn_only = mode, bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` is switched on."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` is switched on with ``warn_only``."""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call :func:`use_deterministic_algorithms` by one number or word.

    Args:
        debug_mode: 0 or ``"default"`` for off, 1 or ``"warn"``, 2 or ``"error"`` for on.

    Raises:
        RuntimeError: There is no such mode.
        TypeError: It is neither a number nor a word.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Which mode is set: 0 for off, 1 for warnings, 2 for errors."""
    return 0 if not _deterministic else 1 if _warn_only else 2


def set_flush_denormal(mode: bool) -> bool:
    """Ask that numbers next to 0 become 0. They never do here.

    Returns:
        Whether it was done: True only for ``mode=False``.
    """
    return not mode


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    name: str | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    name: str | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Callable[[F], F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    name: str | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Give the function or module back as it is; operations are fused while they run (:func:`rgrad.fusion`).

    Args:
        model: What PyTorch would compile; without it the call is a decorator.
        fullgraph: Has no effect.
        dynamic: Has no effect.
        backend: Has no effect.
        mode: Has no effect.
        options: Has no effect.
        disable: Has no effect.
        name: Has no effect.
        recompile_limit: Has no effect.
        isolate_recompiles: Has no effect.
        shapes_spec: Has no effect.

    Raises:
        RuntimeError: Both ``mode`` and ``options`` are given.

    Example:
        >>> rgrad.compile(len) is len
        True
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    return (lambda given: given) if model is None else model
