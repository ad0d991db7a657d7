"""Initial values, written into tensors in place without history; every function returns its tensor.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming).
"""

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .. import _core
from .._core import Tensor
from .._guards import NoGradGuard

F = TypeVar("F", bound=Callable[..., Tensor])


def _without_history(fill: F) -> F:
    @wraps(fill)
    def wrapped(*args: Any, **kwargs: Any) -> Tensor:
        with NoGradGuard():
            return fill(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are scaled; ``param`` is the slope of ``leaky_relu``.

    Raises ValueError for an unknown name or a slope that is no number.
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity in {
        f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)
    }:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@_without_history
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_without_history
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@_without_history
def constant_(tensor: Tensor, val: float) -> Tensor:
    """``val`` everywhere."""
    return tensor.fill_(val)


@_without_history
def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return tensor.fill_(1.0)


@_without_history
def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return tensor.zero_()


@_without_history
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix, cut or padded with zeros; raises ValueError unless the tensor has 2 dimensions."""
    if tensor.dim() != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.dim()}")
    return tensor.copy_(_core.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


@_without_history
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal, drawn again where it falls outside [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )
    # Inverse of the distribution function, applied to uniform numbers between its values at a and b.
    low, high = (0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2))) for x in (a, b))
    # On the CPU: devices may lack float64.
    uniform = _core.empty(tuple(tensor.shape), dtype=_core.float64, device="cpu")
    uniform.uniform_(low, high, generator=generator)
    return tensor.copy_((_inverse_normal(uniform) * std + mean).clamp(a, b))


def _inverse_normal(p: Tensor) -> Tensor:
    """Quantiles of the standard normal by bisection with erfc, to about 1e-15; ``p`` is float64."""
    low, high = _core.full_like(p, -40.0), _core.full_like(p, 40.0)
    for _ in range(64):
        middle = (low + high) / 2
        below = 0.5 * (middle * -math.sqrt(0.5)).erfc() < p
        low, high = _core.where(below, middle, low), _core.where(below, high, middle)
    return low


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform with standard deviation ``gain / sqrt(fan)``; ``a`` is the slope of ``leaky_relu``."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal with standard deviation ``gain / sqrt(fan)``; ``a`` is the slope of ``leaky_relu``."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)
