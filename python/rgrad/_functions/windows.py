"""Windows of signals."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

from .. import _core
from .._core import Tensor, dtype
from .._operation.options import checked_options


class Options(TypedDict, total=False):
    """How a window is made: all that has an effect are the dtype, the device and whether it requires a gradient."""

    dtype: dtype | None
    layout: Any
    device: Any
    pin_memory: bool
    requires_grad: bool


def _made(name: str, length: int, periodic: bool, shape: Callable[[Tensor, int], Tensor], options: Options) -> Tensor:
    """The window that ``shape`` gives of the places and of what they are counted of, in float64 and so on the CPU."""
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if not isinstance(periodic, bool):
        raise TypeError(f"{name}(): argument 'periodic' must be bool, not {type(periodic).__name__}")
    dtype, device, requires_grad = checked_options(name, **options)
    kind = dtype or _core.get_default_dtype()
    if not kind.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if length == 1:
        made = _core.ones(1, dtype=_core.float64, device="cpu")
    else:
        places = _core.arange(length, dtype=_core.float64, device="cpu")
        made = shape(places, max(length if periodic else length - 1, 1))
    made = made.to(dtype=kind, device=_core.get_default_device() if device is None else device)
    return made.requires_grad_(requires_grad)


def _window(name: str, length: int, periodic: bool, waves: Sequence[float], options: Options) -> Tensor:
    """A sum of cosines over the window."""

    def shape(places: Tensor, whole: int) -> Tensor:
        made = _core.full((length,), waves[0], dtype=_core.float64, device="cpu")
        for number, height in enumerate(waves[1:], 1):
            made = made + height * (places * (2 * math.pi / whole) * number).cos()
        return made

    return _made(name, length, periodic, shape, options)


def hann_window(window_length: int, periodic: bool = True, **options: Unpack[Options]) -> Tensor:
    """Make a Hann window, ``0.5 - 0.5 cos(2 pi n / N)``.

    Args:
        window_length: The number of elements.
        periodic: Whether ``N`` is the length, so that windows join; otherwise it is one less.
        options: ``dtype`` (of floats), ``device`` and ``requires_grad``; ``layout`` and ``pin_memory`` have no effect.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating point.

    Example:
        >>> rgrad.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, (0.5, -0.5), options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Unpack[Options]
) -> Tensor:
    """Make a Hamming window, ``alpha - beta cos(2 pi n / N)``; see :func:`hann_window`.

    Args:
        window_length: The number of elements.
        periodic: Whether ``N`` is the length; otherwise it is one less.
        alpha: The mean.
        beta: The height of the wave.
        options: As for :func:`hann_window`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating point.

    Example:
        >>> rgrad.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", window_length, periodic, (alpha, -beta), options)


def blackman_window(window_length: int, periodic: bool = True, **options: Unpack[Options]) -> Tensor:
    """Make a Blackman window, ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``; see :func:`hann_window`.

    Args:
        window_length: The number of elements.
        periodic: Whether ``N`` is the length; otherwise it is one less.
        options: As for :func:`hann_window`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating point.

    Example:
        >>> rgrad.blackman_window(4)[1:]
        tensor([0.3400, 1.0000, 0.3400])
    """
    return _window("blackman_window", window_length, periodic, (0.42, -0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Unpack[Options]) -> Tensor:
    """Make a Bartlett window, the triangle ``1 - abs(2 n / N - 1)``.

    Args:
        window_length: The number of elements.
        periodic: Whether ``N`` is the length; otherwise it is one less.
        options: Those of :func:`hann_window`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating point.

    Example:
        >>> rgrad.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _made("bartlett_window", window_length, periodic, lambda n, whole: 1 - (n * (2 / whole) - 1).abs(), options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Unpack[Options]) -> Tensor:
    """Make a Kaiser window, ``i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta)``.

    Args:
        window_length: The number of elements.
        periodic: Whether ``N`` is the length; otherwise it is one less.
        beta: How narrow it is.
        options: Those of :func:`hann_window`.

    Raises:
        RuntimeError: The length is negative, or the dtype is not floating point.

    Example:
        >>> rgrad.kaiser_window(4, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    from ..special import i0

    def shape(places: Tensor, whole: int) -> Tensor:
        inside = (1 - (places * (2 / whole) - 1).square()).clamp(min=0).sqrt()
        return i0(beta * inside) / i0(_core.full((), float(beta), dtype=_core.float64, device="cpu"))

    return _made("kaiser_window", window_length, periodic, shape, options)
