"""Transforms of short times of a signal, and the signal of them."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _core
from .._core import Tensor
from .._operation.checked import operation
from ..nn.functional._padding import pad

_HOW = (
    "To suppress this warning and use a rectangular window, explicitly set `window=rgrad.ones(n_fft, device=<device>)`."
)


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.type()}{{{list(value.shape)}}}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _call(name: str, input: Tensor, **arguments: Any) -> str:
    """A call as messages show it."""
    given = ", ".join(f"{key}={_shown(value)}" for key, value in arguments.items())
    return f"{name}({input.type()}{list(input.shape)}, {given})"


def _check_devices(name: str, input: Tensor, window: Tensor | None) -> None:
    if window is not None and window.device != input.device:
        raise RuntimeError(
            f"{name} input and window must be on the same device but got self on {input.device} and window on "
            f"{window.device}"
        )


def _is_number(input: Tensor) -> bool:
    return input.is_floating_point() or input.dtype.is_complex


@operation("stft")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transform a signal's short times: of frames of ``n_fft`` elements, times a window, the frequencies.

    Args:
        input: Shape ``(length,)`` or ``(batch, length)``, of floats or complex numbers.
        n_fft: The length of a frame.
        hop_length: How far apart frames begin; None: ``n_fft // 4``.
        win_length: The length of the window, which lies in the middle of a frame; None: ``n_fft``.
        window: Shape ``(win_length,)``; None: ones, with a warning.
        center: Pad the signal so that frame ``t`` has its middle at ``t * hop_length``.
        pad_mode: How, as for :func:`rgrad.nn.functional.pad`.
        normalized: Multiply by ``n_fft ** -0.5``.
        onesided: Give the first ``n_fft // 2 + 1`` frequencies alone; None: of real signals.
        return_complex: Give complex numbers; False: their parts in a last dimension, with a warning. It must be given
            for real signals.
        align_to_window: Without ``center``: the first window, not the first frame, begins with the signal.

    Returns:
        Shape ``(batch, frequencies, frames)``, without the batch for a signal without one.

    Raises:
        RuntimeError: The lengths, the window or the dtypes do not fit.

    Example:
        >>> x = rgrad.arange(16.0)
        >>> rgrad.stft(x, 8, window=rgrad.hann_window(8), return_complex=True).shape
        rgrad.Size([5, 9])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    x = input
    if _core._autocasts():
        (x,) = _core._autocast_widened(x)
    if center:
        side = n_fft // 2
        shape = [1] * (3 - x.dim()) + list(x.shape)
        padded = pad(x.reshape(shape), [side, side], pad_mode)
        x = padded.reshape(padded.shape[-max(x.dim(), 1) :])
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    _check_devices("stft", x, window)
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
            "Other windows such as rgrad.hann_window or rgrad.hamming_window are recommended to reduce spectral "
            "leakage." + _HOW,
            UserWarning,
            stacklevel=4,
        )
    is_complex = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
            "rgrad.view_as_real on the complex output to recover the old return format.",
            UserWarning,
            stacklevel=4,
        )

    def refused(why: str) -> RuntimeError:
        call = _call(
            "stft",
            x,
            n_fft=n_fft,
            hop_length=hop,
            win_length=width,
            window=window,
            normalized=normalized,
            onesided=onesided,
            return_complex=return_complex,
            align_to_window=align_to_window,
        )
        return RuntimeError(f"{call} : {why}")

    if not _is_number(x):
        raise refused("expected a tensor of floating point or complex values")
    if x.dim() not in (1, 2):
        raise refused("expected a 1D or 2D tensor")
    length = x.shape[-1]
    if not 0 < n_fft <= length:
        raise refused(f"expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise refused(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise refused(f"expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and (window.dim() != 1 or window.shape[0] != width):
        raise refused(
            f"expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window.shape)}"
        )
    left = (n_fft - width) // 2
    if width < n_fft:
        if window is None:
            window = _core.ones(width, dtype=x.dtype, device=x.device)
        window = pad(window, [left, n_fft - width - left])
    if align_to_window:
        x = pad(x, [left, n_fft - width - left])
    frames = x.unfold(-1, n_fft, hop)
    if window is not None:
        frames = frames * window
    if onesided is None:
        onesided = not is_complex
    if is_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    scaling = 1 if normalized else 0
    if is_complex:
        made = _core._fft_c2c(frames, (-1,), scaling, True)
    else:
        made = _core._fft_r2c(frames, (-1,), scaling, onesided)
    made = made.transpose(-2, -1)
    return _core.view_as_real(made) if return_complex is False else made


@operation("istft")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Find the signal whose :func:`stft` is nearest to this one (Griffin and Lim 1984).

    Args:
        input: Shape ``(frequencies, frames)`` or ``(batch, frequencies, frames)``, of complex numbers.
        n_fft: The length of a frame.
        hop_length: How far apart frames begin; None: ``n_fft // 4``.
        win_length: The length of the window; None: ``n_fft``.
        window: Shape ``(win_length,)``; None: ones, with a warning.
        center: Whether the signal was padded, so that frames have their middle at multiples of ``hop_length``.
        normalized: Whether :func:`stft` has multiplied by ``n_fft ** -0.5``.
        onesided: Whether there are only the first ``n_fft // 2 + 1`` frequencies; None: as their number says.
        length: The length of the signal; None: as far as the frames reach.
        return_complex: Give complex numbers, of frames with all frequencies.

    Returns:
        Shape ``(batch, length)``, without the batch for an input without one.

    Raises:
        RuntimeError: The sizes, the window or the dtypes do not fit, or the windows do not cover every element of the
            signal.

    Example:
        >>> x, window = rgrad.arange(16.0), rgrad.hann_window(8)
        >>> y = rgrad.stft(x, 8, window=window, return_complex=True)
        >>> rgrad.allclose(rgrad.istft(y, 8, window=window), x, atol=1e-5)
        True
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length

    def refused(why: str) -> RuntimeError:
        call = _call(
            "istft",
            input,
            n_fft=n_fft,
            hop_length=hop,
            win_length=width,
            window=window,
            center=center,
            normalized=normalized,
            onesided=onesided,
            length=length,
            return_complex=return_complex,
        )
        return RuntimeError(f"{call} {why}")

    _check_devices("istft", input, window)
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless." + _HOW,
            UserWarning,
            stacklevel=4,
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.numel() == 0:
        raise refused(": input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        # PyTorch counts a dimension of real and imaginary parts.
        raise refused(f": expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    frequencies, frames = input.shape[-2:]
    half = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if half else n_fft):
        wanted = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        raise refused(
            f": expected the frequency dimension (3rd to the last) of the input tensor to match {wanted}, but got "
            f"{frequencies}"
        )
    if not 0 < hop <= width:
        raise refused(": expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise refused(": expected 0 < win_length <= n_fft")
    if window is not None and (window.dim() != 1 or window.shape[0] != width):
        raise refused(": Invalid window shape. window has to be 1D and length of `win_length`")
    shape = window
    if shape is None:
        shape = _core.ones(width, dtype=input.dtype.to_real(), device=input.device)
    if width < n_fft:
        left = (n_fft - width) // 2
        shape = pad(shape, [left, n_fft - width - left])
    x = input.transpose(-2, -1)
    scaling = 1 if normalized else 2
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        x = _core._fft_c2c(x, (-1,), scaling, False)
    else:
        if shape.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        x = _core._fft_c2r(x[..., : n_fft // 2 + 1], (-1,), scaling, n_fft)
    whole = n_fft + hop * (frames - 1)
    y = _core._unfold_backward(x * shape, (*x.shape[:-2], whole), -1, n_fft, hop)
    squares = (shape * shape).expand(frames, n_fft)
    envelope = _core._unfold_backward(squares, (whole,), -1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length
    y, envelope = y[..., start:end], envelope[start:end]
    if bool((envelope.detach().abs() < 1e-11).any()):
        raise refused("window overlap add min: 1")
    y = y / envelope
    if end > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=4,
        )
        y = pad(y, [0, end - whole])
    return y
