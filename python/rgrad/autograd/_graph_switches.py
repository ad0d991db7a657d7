"""Switches of `autograd.graph` for CUDA's streams and for compiled regions, neither of which exist here."""

from typing import Any, Never

__all__ = [
    "region_activation_memory_budget",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


def _checked(enabled: Any) -> None:
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {type(enabled).__name__}")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted: there are no CUDA streams that could differ, so there is no warning to switch.

    Args:
        enabled: Not used.

    Raises:
        RuntimeError: It is not a bool.

    Example:
        >>> print(rgrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False))
        None
    """
    _checked(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: there are no captures of CUDA graphs.

    Args:
        enabled: Not used.

    Raises:
        RuntimeError: It is not a bool.

    Example:
        >>> print(rgrad.autograd.graph.set_override_stale_capture_stream(True))
        None
    """
    _checked(enabled)


def region_activation_memory_budget(budget: float) -> Never:
    """Refused, as in PyTorch outside of a compiled region. ``utils.checkpoint`` recomputes activations instead.

    Args:
        budget: A number from 0 to 1.

    Returns:
        Nothing: it always raises.

    Raises:
        TypeError: It is not a number.
        ValueError: It is out of range.
        RuntimeError: Otherwise.

    Example:
        >>> try:
        ...     rgrad.autograd.graph.region_activation_memory_budget(0.5)
        ... except RuntimeError as error:
        ...     print(str(error).partition(";")[0])
        rgrad.autograd.graph.region_activation_memory_budget can only be used inside a compiled region
    """
    name = "rgrad.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a compiled region; it has no effect in eager mode. "
        "Use rgrad.utils.checkpoint to recompute activations"
    )
