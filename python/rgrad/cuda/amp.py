"""Mixed precision under the names that ``rgrad.amp`` replaces. There are no CUDA devices: both are off."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from .. import _core
from .._core import dtype
from .._runtime.warned import warn_user
from ..amp import autocast_mode, grad_scaler
from ..amp.autocast_mode import deprecated

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

F = TypeVar("F", bound=Callable[..., Any])


class autocast(autocast_mode.autocast):
    """:class:`rgrad.amp.autocast` on CUDA devices, which there are not.

    Args:
        enabled: Whether autocast was to be on, which a warning says it is not.
        dtype: The smaller type.
        cache_enabled: Whether converted weights are kept.
    """

    def __init__(self, enabled: bool = True, dtype: Any = _core.float16, cache_enabled: bool = True) -> None:
        deprecated("cuda", "autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """:class:`rgrad.amp.GradScaler` for CUDA devices, which there are not: it is off.

    Args:
        init_scale: The first scale.
        growth_factor: What the scale is multiplied by when it grows.
        backoff_factor: What it is multiplied by after inf or nan.
        growth_interval: How many steps without inf and nan let it grow.
        enabled: Whether it was to be on, which a warning says it is not.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        deprecated("cuda", "GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@overload
def custom_fwd(fwd: F, *, cast_inputs: dtype | None = None) -> F: ...
@overload
def custom_fwd(fwd: None = None, *, cast_inputs: dtype | None = None) -> Callable[[F], F]: ...
def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: dtype | None = None) -> Callable[..., Any]:
    """The old name of :func:`rgrad.amp.custom_fwd` with ``device_type="cuda"``.

    Args:
        fwd: The ``forward`` of a Function.
        cast_inputs: The dtype of its float inputs where autocast is on.
    """
    _deprecated("custom_fwd")
    if fwd is None:
        return autocast_mode.custom_fwd(device_type="cuda", cast_inputs=cast_inputs)
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: F) -> F:
    """The old name of :func:`rgrad.amp.custom_bwd` with ``device_type="cuda"``.

    Args:
        bwd: The ``backward`` of a Function.
    """
    _deprecated("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Tell whether there is nothing that mixed precision would run on: always, without CUDA devices."""
    return True


def _deprecated(name: str) -> None:
    warn_user(
        f"`rgrad.cuda.amp.{name}(args...)` is deprecated. Please use `rgrad.amp.{name}(args..., device_type='cuda')` "
        "instead.",
        FutureWarning,
    )
