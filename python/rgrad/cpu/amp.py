"""Mixed precision under the names that ``rgrad.amp`` replaces."""

from typing import Any

from .. import _core
from ..amp import autocast_mode, grad_scaler
from ..amp.autocast_mode import deprecated

__all__ = ["GradScaler", "autocast"]


class autocast(autocast_mode.autocast):
    """:class:`rgrad.amp.autocast` on the CPU.

    Args:
        enabled: False switches autocast off, inside of another context, too.
        dtype: The smaller type.
        cache_enabled: Whether converted weights are kept.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"), rgrad.cpu.amp.autocast():
        ...     (rgrad.ones(2, 2) @ rgrad.ones(2, 2)).dtype
        rgrad.bfloat16
    """

    def __init__(self, enabled: bool = True, dtype: Any = _core.bfloat16, cache_enabled: bool = True) -> None:
        deprecated("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """:class:`rgrad.amp.GradScaler` on the CPU.

    Args:
        init_scale: The first scale.
        growth_factor: What the scale is multiplied by when it grows.
        backoff_factor: What it is multiplied by after inf or nan.
        growth_interval: How many steps without inf and nan let it grow.
        enabled: False makes all methods do nothing but call the optimizers.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        deprecated("cpu", "GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
