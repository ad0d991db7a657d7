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
from .._runtime.guards import NoGradGuard
from ._docs import described

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

F = TypeVar("F", bound=Callable[..., Tensor])


def _without_history(fill: F) -> F:
    @wraps(fill)
    def wrapped(*args: Any, **kwargs: Any) -> Tensor:
        with NoGradGuard():
            # A tensor that lies on several processes: its numbers are those of a whole one.
            whole = getattr(args[0] if args else kwargs.get("tensor"), "_filled_whole", None)
            return fill(*args, **kwargs) if whole is None else whole(fill, args, kwargs)

    return wrapped  # type: ignore[return-value]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are scaled, so that signals keep their size.

    Args:
        nonlinearity: The name of the function that follows, such as ``"relu"``.
        param: The slope of ``"leaky_relu"``.

    Returns:
        The factor.

    Raises:
        ValueError: The name is unknown, or the slope is no number.

    Example:
        >>> nn.init.calculate_gain("tanh")
        1.6666666666666667
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
    """Draw from the uniform distribution on ``[a, b)``.

    Args:
        tensor: Is overwritten.
        a: The lower bound.
        b: The upper bound.
        generator: The stream of random numbers; the default one if None.

    Returns:
        ``tensor``.

    Example:
        >>> w = nn.init.uniform_(rgrad.empty(100), -1.0, 1.0)
        >>> bool((w.abs() <= 1).all())
        True
    """
    return tensor.uniform_(a, b, generator=generator)


@_without_history
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from a normal distribution.

    Args:
        tensor: Is overwritten.
        mean: The mean.
        std: The standard deviation.
        generator: The stream of random numbers; the default one if None.

    Returns:
        ``tensor``.

    Example:
        >>> w = nn.init.normal_(rgrad.empty(10000), std=0.1)
        >>> bool((w.std() - 0.1).abs() < 0.01)
        True
    """
    return tensor.normal_(mean, std, generator=generator)


@_without_history
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Write one number everywhere.

    Args:
        tensor: Is overwritten.
        val: The number.

    Returns:
        ``tensor``.

    Example:
        >>> nn.init.constant_(rgrad.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    return tensor.fill_(val)


@_without_history
def ones_(tensor: Tensor) -> Tensor:
    """Write 1 everywhere.

    Args:
        tensor: Is overwritten.

    Returns:
        ``tensor``.

    Example:
        >>> nn.init.ones_(rgrad.empty(2))
        tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_without_history
def zeros_(tensor: Tensor) -> Tensor:
    """Write 0 everywhere.

    Args:
        tensor: Is overwritten.

    Returns:
        ``tensor``.

    Example:
        >>> nn.init.zeros_(rgrad.empty(2))
        tensor([0., 0.])
    """
    return tensor.zero_()


@_without_history
def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix, cut or padded with zeros.

    Args:
        tensor: A matrix, which is overwritten.

    Returns:
        ``tensor``.

    Raises:
        ValueError: The tensor does not have 2 dimensions.

    Example:
        >>> nn.init.eye_(rgrad.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.dim()}")
    return tensor.copy_(_core.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


@_without_history
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from a normal distribution that is cut off outside ``[a, b]``.

    Args:
        tensor: Is overwritten.
        mean: The mean before it is cut off.
        std: The standard deviation before it is cut off.
        a: The lower bound.
        b: The upper bound.
        generator: The stream of random numbers; the default one if None.

    Returns:
        ``tensor``.

    Raises:
        NotImplementedError: The tensor is complex.

    Example:
        >>> w = nn.init.trunc_normal_(rgrad.empty(100), std=2.0)
        >>> bool((w.abs() <= 2).all())
        True
    """
    if tensor.dtype.is_complex:
        name = "ComplexDouble" if tensor.dtype == _core.complex128 else "ComplexFloat"
        raise NotImplementedError(f"\"lt_cpu\" not implemented for '{name}'")
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


_calculate_correct_fan = _fan  # PyTorch's name.

_BY_BOTH_FANS = """
    Args:
        tensor: A weight of two or more dimensions, which is overwritten.
        gain: The factor, for example of :func:`calculate_gain`.
        generator: The stream of random numbers; the default one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.
"""
_BY_ONE_FAN = """
    Args:
        tensor: A weight of two or more dimensions, which is overwritten.
        a: The slope of ``"leaky_relu"``.
        mode: ``"fan_in"`` keeps the size of signals, ``"fan_out"`` that of gradients.
        nonlinearity: The function that follows, as :func:`calculate_gain` takes it.
        generator: The stream of random numbers; the default one if None.

    Returns:
        ``tensor``.

    Raises:
        ValueError: ``mode`` or ``nonlinearity`` is unknown, or the tensor has fewer than 2 dimensions.
"""


@described(_BY_BOTH_FANS)
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw uniformly, with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio 2010).

    Example:
        >>> w = nn.init.xavier_uniform_(rgrad.empty(3, 5))
        >>> bool((w.abs() <= (6 / (3 + 5)) ** 0.5).all())
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


@described(_BY_BOTH_FANS)
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from a normal distribution with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    The source is Glorot and Bengio 2010.

    Example:
        >>> w = nn.init.xavier_normal_(rgrad.empty(100, 100))
        >>> bool((w.std() - 0.1).abs() < 0.01)
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


@described(_BY_ONE_FAN)
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw uniformly, with standard deviation ``gain / sqrt(fan)`` (He et al. 2015).

    Example:
        >>> w = nn.init.kaiming_uniform_(rgrad.empty(4, 6), nonlinearity="relu")
        >>> bool((w.abs() <= 1).all())
        True
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


@described(_BY_ONE_FAN)
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw from a normal distribution with standard deviation ``gain / sqrt(fan)`` (He et al. 2015).

    Example:
        >>> w = nn.init.kaiming_normal_(rgrad.empty(100, 200), nonlinearity="relu")
        >>> bool((w.std() - 0.1).abs() < 0.01)
        True
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


@_without_history
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Write the weight of a convolution that gives its input back, as far as there are channels.

    Args:
        tensor: A weight of 3, 4 or 5 dimensions, which is overwritten.
        groups: The convolution's groups, each of which gives back the first channels.

    Returns:
        ``tensor``.

    Raises:
        ValueError: The tensor has another number of dimensions, or ``groups`` does not divide the first.

    Example:
        >>> nn.init.dirac_(rgrad.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    each = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.size(1))):
            tensor[(group * each + channel, channel, *middle)] = 1
    return tensor


@_without_history
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Write a random matrix with orthonormal rows or columns (Saxe et al. 2014).

    Args:
        tensor: Is overwritten; all dimensions after the first count as one.
        gain: Scales the result.
        generator: Source of randomness.

    Returns:
        ``tensor``.

    Raises:
        ValueError: The tensor has fewer than 2 dimensions.
        NotImplementedError: It is complex.

    Example:
        >>> q = nn.init.orthogonal_(rgrad.empty(3, 5))
        >>> rgrad.allclose(q @ q.T, rgrad.eye(3), atol=1e-5)
        True
    """
    import numpy as np

    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tensor
    if tensor.dtype.is_complex:
        raise NotImplementedError("nn.init.orthogonal_: complex tensors are not supported, as in PyTorch")
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    shape = (max(rows, columns), min(rows, columns))
    drawn = _core.randn(shape, dtype=_core.float64, device="cpu", generator=generator)
    q, r = np.linalg.qr(drawn.numpy())
    # With positive elements on the diagonal of R the distribution is uniform (Mezzadri 2007).
    q = q * np.sign(np.diag(r))
    made = _core.tensor(np.ascontiguousarray(q if rows >= columns else q.T), dtype=tensor.dtype, device=tensor.device)
    return tensor.copy_(made.reshape(tensor.shape)).mul_(gain)


@_without_history
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw from a normal distribution and set a part of each column to zero (Martens 2010).

    Args:
        tensor: A matrix, which is overwritten.
        sparsity: The part of each column that is zero.
        std: The standard deviation of the rest.
        generator: Source of randomness.

    Returns:
        ``tensor``.

    Raises:
        ValueError: The tensor does not have 2 dimensions.

    Example:
        >>> int((nn.init.sparse_(rgrad.empty(4, 3), 0.5) == 0).sum())
        6
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.device.type == "meta":
        return tensor
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        chosen = _core.randperm(rows, generator=generator)[: math.ceil(sparsity * rows)].to(tensor.device)
        tensor[chosen, column] = 0
    return tensor


def _deprecated(function: F) -> F:
    """PyTorch's old name of a function, without the underscore."""
    name = function.__name__

    @wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    old.__name__ = name[:-1]
    return old  # type: ignore[return-value]


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
