"""Windows, as ``torch.signal.windows`` has them: computed in float64 on the CPU, and rounded once."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from ..special import i0

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _made(
    name: str,
    length: int,
    shape: Callable[[Tensor], Tensor],
    options: tuple[dtype | None, Any, Any, bool],
    one: bool = True,
) -> Tensor:
    """The window that ``shape`` makes of the places, of one element 1 unless ``one`` is False."""
    kind, layout, device, requires_grad = options
    kind = kind or _core.get_default_dtype()
    if length < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={length}")
    if layout is not None and str(layout) not in ("torch.strided", "rgrad.strided"):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in (_core.float32, _core.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    if length == 1 and one:
        made = _core.ones(1, dtype=_core.float64, device="cpu")
    else:
        made = shape(_core.arange(length, dtype=_core.float64, device="cpu"))
    made = made.to(dtype=kind, device=device or _core.get_default_device())
    return made.requires_grad_(requires_grad)


def _whole(length: int, sym: bool) -> int:
    """The distance of the first place from that after the period, or from the last one of a symmetric window."""
    return max(length - 1 if sym else length, 1)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make an exponential window, ``exp(-abs(n - center) / tau)``.

    Args:
        M: The number of elements.
        center: Where the largest element is; None: in the middle. Only for windows that are not symmetric.
        tau: How fast it decays.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, ``tau`` is not positive, a symmetric window has a center, or the dtype is neither
            float32 nor float64.

    Example:
        >>> rgrad.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """

    def shape(places: Tensor) -> Tensor:
        middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
        return (-(places - middle).abs() / tau).exp()

    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _made("exponential", M, shape, (dtype, layout, device, requires_grad), one=False)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a window of half a wave, ``sin(pi * (n + 0.5) / M)``.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    step = math.pi / max(M + 1 if not sym and M > 1 else M, 1)
    return _made("cosine", M, lambda n: ((n + 0.5) * step).sin(), (dtype, layout, device, requires_grad), one=False)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Gaussian window, ``exp(-((n - middle) / std) ** 2 / 2)``.

    Args:
        M: The number of elements.
        std: The standard deviation.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, ``std`` is not positive, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.gaussian(5)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """

    def shape(places: Tensor) -> Tensor:
        middle = (M if not sym and M > 1 else M - 1) / 2
        return (((places - middle) / std).square() * -0.5).exp()

    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _made("gaussian", M, shape, (dtype, layout, device, requires_grad), one=False)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Kaiser window, ``i0(beta * sqrt(1 - (2 * n / N - 1) ** 2)) / i0(beta)``.

    Args:
        M: The number of elements.
        beta: How narrow it is, at least 0.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` or ``beta`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.kaiser(5, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """

    def shape(places: Tensor) -> Tensor:
        inside = (1 - (places * (2 / _whole(M, sym)) - 1).square()).clamp(min=0).sqrt()
        return i0(beta * inside) / i0(_core.full((), float(beta), dtype=_core.float64, device="cpu"))

    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made("kaiser", M, shape, (dtype, layout, device, requires_grad))


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Hamming window, ``0.54 - 0.46 * cos(2 * pi * n / N)``.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.hamming(4)
        tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Hann window, ``0.5 - 0.5 * cos(2 * pi * n / N)``.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.hann(4)
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Blackman window, ``0.42 - 0.5 * cos(2 * pi * n / N) + 0.08 * cos(4 * pi * n / N)``.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.blackman(4)[1:3]
        tensor([0.6300, 0.6300])
    """
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, (dtype, layout, device, requires_grad))


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a Bartlett window, the triangle ``1 - abs(2 * n / N - 1)``.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    step = 2 / _whole(M, sym)
    return _made("bartlett", M, lambda n: 1 - (n * step - 1).abs(), (dtype, layout, device, requires_grad))


def _cosines(name: str, length: int, heights: tuple[float, ...], sym: bool, options: Any) -> Tensor:
    def shape(places: Tensor) -> Tensor:
        made = _core.full((length,), heights[0], dtype=_core.float64, device="cpu")
        for number, height in enumerate(heights[1:], 1):
            made = made + (-1) ** number * height * (places * (2 * math.pi / _whole(length, sym)) * number).cos()
        return made

    return _made(name, length, shape, options)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a sum of cosines, ``sum((-1) ** i * a[i] * cos(2 * pi * i * n / N))``.

    Args:
        M: The number of elements.
        a: The heights of the waves.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        TypeError: ``a`` is not iterable.
        ValueError: ``M`` is negative, ``a`` is empty, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.general_cosine(4, a=[0.46, 0.23, 0.31])
        tensor([0.5400, 0.4200, 0.4200, 0.5400])
    """
    options = (dtype, layout, device, requires_grad)
    if M <= 1:
        return _made("general_cosine", M, lambda places: places, options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    heights = tuple(a)
    if not heights:
        raise ValueError("Coefficients cannot be empty")
    return _cosines("general_cosine", M, heights, sym, options)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a general Hamming window, ``alpha - (1 - alpha) * cos(2 * pi * n / N)``.

    Args:
        M: The number of elements.
        alpha: The mean.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.general_hamming(4, alpha=0.6)
        tensor([0.2000, 0.8000, 0.8000, 0.2000])
    """
    return _cosines("general_cosine", M, (alpha, 1 - alpha), sym, (dtype, layout, device, requires_grad))


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make Nuttall's window of four terms (Nuttall 1981), with the heights 0.3635819, 0.4891775, 0.1365995, 0.0106411.

    Args:
        M: The number of elements.
        sym: Whether the window is symmetric; otherwise it is periodic, for the analysis of spectra. ``N`` is
            ``M - 1`` or ``M``.
        dtype: float32 or float64; None: the default one.
        layout: That of dense tensors.
        device: Where the result lies; None: the default one.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(M,)``.

    Raises:
        ValueError: ``M`` is negative, or the dtype is neither float32 nor float64.

    Example:
        >>> rgrad.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    heights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosines("general_cosine", M, heights, sym, (dtype, layout, device, requires_grad))
