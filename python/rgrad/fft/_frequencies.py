"""The frequencies of transforms, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._operation.checked import operation
from .._operation.composed import type_name
from .._operation.options import checked_options


def _made(name: str, places: Tensor, scale: float, out: Tensor | None, kind: Any, device: Any, grad: bool) -> Tensor:
    """The places times a number, computed in float64 and rounded once."""
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"fft_{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out is not None:
        if kind is not None and kind != out.dtype:
            raise RuntimeError(
                f"dtype {type_name(kind)} does not match dtype of out parameter ({type_name(out.dtype)})"
            )
        kind, device = out.dtype, out.device
    kind = kind or _core.get_default_dtype()
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    made = (places * scale).to(dtype=kind, device=_core.get_default_device() if device is None else device)
    if out is None:
        return made.requires_grad_(grad)
    return out.resize_(made.shape).copy_(made)


def _checked(name: str, n: Any, d: Any) -> tuple[int, float]:
    if isinstance(n, (bool, float)) or not hasattr(n, "__index__"):
        raise TypeError(f"fft_{name}(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if not isinstance(d, (int, float)):
        raise TypeError(f"fft_{name}(): argument 'd' (position 2) must be float, not {type(d).__name__}")
    n = n.__index__()
    whole = n * d
    return n, 1 / whole if whole else float("inf")


def _places(size: int) -> Tensor:
    if size < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {size}: [{size}]")
    return _core.arange(size, dtype=_core.float64, device="cpu")


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Make the frequencies of a transform of ``n`` points: ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (d * n)``.

    Args:
        n: The number of points.
        d: The distance between two points.
        out: Where the result goes.
        dtype: A floating point or complex dtype; None: the default one.
        layout: Has no effect.
        device: Where the result lies; None: the default one.
        pin_memory: Has no effect.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(n,)``.

    Raises:
        RuntimeError: ``n`` is negative, or the dtype is none of these.

    Example:
        >>> rgrad.fft.fftfreq(5)
        tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    n, scale = _checked("fftfreq", n, d)
    places = _places(n)
    places = _core.where(places < (n + 1) // 2, places, places - n)
    kind, device, grad = checked_options("fft_fftfreq", dtype, layout, device, pin_memory, requires_grad)
    return _made("fftfreq", places, scale, out, kind, device, grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Make the frequencies of a transform of ``n`` real points: ``[0, 1, ..., n // 2] / (d * n)``.

    Args:
        n: The number of points.
        d: The distance between two points.
        out: Where the result goes.
        dtype: A floating point or complex dtype; None: the default one.
        layout: Has no effect.
        device: Where the result lies; None: the default one.
        pin_memory: Has no effect.
        requires_grad: Whether the result requires a gradient.

    Returns:
        Shape ``(n // 2 + 1,)``.

    Raises:
        RuntimeError: ``n`` is negative, or the dtype is none of these.

    Example:
        >>> rgrad.fft.rfftfreq(5)
        tensor([0.0000, 0.2000, 0.4000])
    """
    n, scale = _checked("rfftfreq", n, d)
    # Rounded towards 0, as PyTorch does it.
    kind, device, grad = checked_options("fft_rfftfreq", dtype, layout, device, pin_memory, requires_grad)
    return _made("rfftfreq", _places(int(n / 2) + 1), scale, out, kind, device, grad)


def _rolled(input: Tensor, dim: int | Sequence[int] | None, inverse: bool) -> Tensor:
    given = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = list(given)
    if not dims:
        if dim is None:
            raise RuntimeError("`shifts` required")
        return input.clone()
    return _core.roll(input, [(input.size(d) + inverse) // 2 for d in dims], dims)


@operation("fft_fftshift")
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency 0 from the start to the middle.

    Args:
        input: A tensor in the order of :func:`fftfreq` along ``dim``.
        dim: One dimension or several; None: all.

    Returns:
        The same elements in another order.

    Raises:
        IndexError: There is no such dimension.

    Example:
        >>> rgrad.fft.fftshift(rgrad.fft.fftfreq(5, d=0.2))
        tensor([-2., -1.,  0.,  1.,  2.])
    """
    return _rolled(input, dim, False)


@operation("fft_ifftshift")
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency 0 from the middle to the start: the inverse of :func:`fftshift`.

    Args:
        input: A tensor.
        dim: One dimension or several; None: all.

    Returns:
        The same elements in another order.

    Raises:
        IndexError: There is no such dimension.

    Example:
        >>> rgrad.fft.ifftshift(rgrad.arange(-2, 3))
        tensor([ 0,  1,  2, -2, -1])
    """
    return _rolled(input, dim, True)
