"""The context in which some operations run in a smaller float type."""

import collections.abc
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from .. import _core
from .._core import Tensor, dtype
from .._runtime.warned import warn_user

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

F = TypeVar("F", bound=Callable[..., Any])

# Kinds of devices that PyTorch knows, but that this package does not have.
_ABSENT = ("cuda", "xpu", "hpu", "mtia", "maia", "mps", "xla", "ipu")


def deprecated(kind: str, name: str) -> None:
    """Warn that a class is under its old name, which has the kind of device in it."""
    warn_user(
        f"`rgrad.{kind}.amp.{name}(args...)` is deprecated. Please use `rgrad.amp.{name}('{kind}', args...)` instead.",
        FutureWarning,
    )


def is_autocast_available(device_type: str) -> bool:
    """Whether :class:`autocast` has an effect on a kind of device.

    Args:
        device_type: ``"cpu"``, ``"wgpu"``, ``"cuda"`` or another one.

    Returns:
        True for ``"cpu"`` and ``"wgpu"``.

    Raises:
        RuntimeError: There is no such kind of device.

    Example:
        >>> rgrad.amp.is_autocast_available("cpu")
        True
    """
    _core.is_autocast_enabled(device_type)
    return device_type in ("cpu", "wgpu")


class autocast:
    """A context, or a decorator, in which some operations run in a smaller float type.

    Products of matrices, ``linear``, attention, ``prelu`` and LSTMs convert float inputs (but float64) to ``dtype``;
    losses, ``prod``, quantiles, ``trace``, distances and padding by reflection or replication convert them to float32;
    all others take what they get. These are PyTorch's lists for the CPU. Weights are converted once and kept until the
    outermost context ends.

    Args:
        device_type: ``"cpu"`` or ``"wgpu"``; ``"cuda"`` is accepted, and off.
        dtype: The smaller type, float16 or bfloat16; by default bfloat16.
        enabled: False switches autocast off, inside of another context, too.
        cache_enabled: Whether converted weights are kept.

    Raises:
        ValueError: ``device_type`` is no string.
        RuntimeError: There is no such kind of device.

    Example:
        >>> x = rgrad.ones(2, 3)
        >>> with rgrad.autocast("cpu"):
        ...     (x @ x.T).dtype, x.exp().dtype
        (rgrad.bfloat16, rgrad.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype: Any = _core.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if device_type == "meta":
            raise RuntimeError("User specified an unsupported autocast device_type 'meta'")
        self._cache_enabled = _core.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type in _ABSENT:
            if device_type == "cuda":
                warn_user("User provided device_type of 'cuda', but CUDA is not available. Disabling autocast.")
            enabled = False
        if enabled and self.fast_dtype not in (_core.bfloat16, _core.float16):
            warn_user(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, Any, bool]] = []

    def __enter__(self) -> Self:
        kind = self.device
        self._before.append(
            (_core.is_autocast_enabled(kind), _core.get_autocast_dtype(kind), _core.is_autocast_cache_enabled())
        )
        _core.set_autocast_enabled(kind, self._enabled)
        _core.set_autocast_dtype(kind, self.fast_dtype)
        _core.autocast_increment_nesting()
        _core.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _core.autocast_decrement_nesting() == 0:
            _core.clear_autocast_cache()
        enabled, before, cache = self._before.pop()
        _core.set_autocast_enabled(self.device, enabled)
        _core.set_autocast_dtype(self.device, before)
        _core.set_autocast_cache_enabled(cache)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            return func

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return inside


def _cast(value: Any, device_type: str, to: Any) -> Any:
    """Float tensors of a device (but float64) in another dtype, inside of lists and dictionaries, too."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype != _core.float64
        return value.to(to) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, to): _cast(v, device_type, to) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, device_type, to) for v in value]
        return type(value)(made)
    return value


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


@overload
def custom_fwd(fwd: F, *, device_type: str, cast_inputs: dtype | None = None) -> F: ...
@overload
def custom_fwd(fwd: None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Callable[[F], F]: ...
def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Decorate ``forward`` of a custom Function, so that :func:`custom_bwd` knows whether autocast was on.

    Args:
        fwd: The method.
        device_type: The kind of device.
        cast_inputs: A dtype to which float inputs are converted while autocast is on; autocast is off then inside of
            ``forward``.

    Returns:
        The decorated method, or a decorator without ``fwd``.

    Raises:
        ValueError: ``device_type`` is no string.

    Example:
        >>> class Double(rgrad.autograd.Function):
        ...     @staticmethod
        ...     @rgrad.amp.custom_fwd(device_type="cpu", cast_inputs=rgrad.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     @rgrad.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> Double.apply(rgrad.ones(2))
        tensor([2., 2.])
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        on = _core.is_autocast_enabled(device_type)
        ctx = args[0]
        ctx._dtype = _core.get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = on
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


@overload
def custom_bwd(bwd: F, *, device_type: str) -> F: ...
@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[F], F]: ...
def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate ``backward`` of a custom Function: it runs with autocast as ``forward`` did.

    Args:
        bwd: The method.
        device_type: The kind of device.

    Returns:
        The decorated method, or a decorator without ``bwd``.

    Raises:
        ValueError: ``device_type`` is no string.

    Example:
        >>> class Weighted(rgrad.autograd.Function):
        ...     @staticmethod
        ...     @rgrad.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x, weight):
        ...         ctx.save_for_backward(weight)
        ...         return x @ weight
        ...
        ...     @staticmethod
        ...     @rgrad.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return (g @ ctx.saved_tensors[0].t()).float(), None
        >>> x = rgrad.ones(1, 2, requires_grad=True)
        >>> with rgrad.autocast("cpu", dtype=rgrad.bfloat16):
        ...     y = Weighted.apply(x, rgrad.eye(2))
        >>> y.dtype
        rgrad.bfloat16
        >>> y.sum().backward()  # with autocast as in forward
        >>> x.grad
        tensor([[1., 1.]])
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type=device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
