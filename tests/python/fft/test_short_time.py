"""Transforms of short times of a signal: frames by hand, and the way back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad.autograd import gradcheck, gradgradcheck


def signal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def frames(x: np.ndarray, n_fft: int, hop: int, window: np.ndarray, onesided: bool = True) -> np.ndarray:
    """The definition, without padding: (frequencies, frames)."""
    starts = range(0, len(x) - n_fft + 1, hop)
    transform = np.fft.rfft if onesided else np.fft.fft
    return np.stack([transform(x[s : s + n_fft] * window) for s in starts], -1)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("n_fft", "hop", "width"), [(16, None, None), (16, 5, 12), (9, 3, 9), (9, 2, 4), (15, 15, 15)])
def test_values(n_fft: int, hop: int | None, width: int | None, center: bool) -> None:
    x = signal(60)
    size = n_fft if width is None else width
    window = np.hanning(size + 2)[1:-1]
    left = (n_fft - size) // 2
    padded_window = np.pad(window, (left, n_fft - size - left))
    padded = np.pad(x, n_fft // 2, mode="reflect") if center else x
    wanted = frames(padded, n_fft, hop or n_fft // 4, padded_window)
    made = rgrad.stft(
        rgrad.tensor(x), n_fft, hop, width, rgrad.tensor(window), center=center, return_complex=True, normalized=True
    )
    np.testing.assert_allclose(made.numpy(), wanted / np.sqrt(n_fft), rtol=1e-12, atol=1e-13)


def test_ways_to_ask() -> None:
    x, window = rgrad.tensor(signal(2, 40)), rgrad.hann_window(8, dtype=rgrad.float64)
    made = rgrad.stft(x, 8, window=window, return_complex=True)
    assert made.shape == (2, 5, 21)
    assert rgrad.equal(x.stft(8, window=window, return_complex=True), made)
    assert rgrad.equal(rgrad.stft(x[0], 8, window=window, return_complex=True), made[0])
    whole = rgrad.stft(x, 8, window=window, onesided=False, return_complex=True)
    assert whole.shape == (2, 8, 21)
    assert rgrad.allclose(whole[:, :5], made)
    # Complex signals have all frequencies, and need not say that results are complex.
    assert rgrad.allclose(rgrad.stft(x.to(rgrad.complex128), 8, window=window), whole)
    assert rgrad.allclose(rgrad.stft(x, 8, window=window.to(rgrad.complex128)), whole)
    constant = rgrad.stft(x, 8, window=window, pad_mode="constant", return_complex=True)
    assert rgrad.allclose(constant[:, :, 2:-2], made[:, :, 2:-2])
    assert not rgrad.allclose(constant, made)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        parts = rgrad.stft(x, 8, window=window, return_complex=False)
    assert rgrad.equal(parts, rgrad.view_as_real(made))
    with pytest.warns(UserWarning, match="A window was not provided"):
        plain = rgrad.stft(x, 8, return_complex=True)
    assert rgrad.equal(plain, rgrad.stft(x, 8, window=rgrad.ones(8, dtype=rgrad.float64), return_complex=True))


@pytest.mark.parametrize("width", [4, 5, 8, 9])
def test_the_first_window_begins_with_the_signal(width: int) -> None:
    x, window = rgrad.arange(1.0, 21.0, dtype=rgrad.float64), rgrad.ones(width, dtype=rgrad.float64)
    made = rgrad.stft(x, 9, 2, width, window, center=False, align_to_window=True, return_complex=True)
    sums = [float(x[s : s + width].sum()) for s in range(0, 20 - width + 1, 2)]
    np.testing.assert_allclose(made[0].real.numpy(), sums)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("n_fft", "hop", "width"), [(16, None, None), (16, 3, 12), (9, 3, 9), (15, 4, 10), (400, 160, 400)]
)
def test_there_and_back(n_fft: int, hop: int | None, width: int | None, normalized: bool) -> None:
    x = rgrad.tensor(signal(2, 1203))
    window = rgrad.hann_window(width or n_fft, dtype=rgrad.float64)
    made = rgrad.stft(x, n_fft, hop, width, window, normalized=normalized, return_complex=True)
    back = rgrad.istft(made, n_fft, hop, width, window, normalized=normalized, length=x.shape[-1])
    assert back.dtype == rgrad.float64
    # The last frames may not reach the end of the signal.
    reached = (hop or n_fft // 4) * (made.shape[-1] - 1)
    assert rgrad.allclose(back[:, :reached], x[:, :reached])
    # Without a length it reaches as far as the frames, but for their second halves.
    whole = made[0].istft(n_fft, hop, width, window, normalized=normalized)
    assert whole.shape == (reached + n_fft % 2,)
    assert rgrad.allclose(whole[:reached], back[0, :reached])


def test_complex_signals_there_and_back() -> None:
    x = rgrad.tensor(signal(50) + 1j * signal(50, seed=1))
    window = rgrad.hamming_window(10, dtype=rgrad.float64)
    made = rgrad.stft(x, 10, 5, window=window)
    back = rgrad.istft(made, 10, 5, window=window, return_complex=True)
    assert rgrad.allclose(back, x)
    real = rgrad.stft(x.real, 10, 5, window=window, onesided=False, return_complex=True)
    assert rgrad.allclose(rgrad.istft(real, 10, 5, window=window), x.real)


def test_a_signal_that_is_longer_than_its_frames() -> None:
    x, window = rgrad.tensor(signal(40)), rgrad.hann_window(8, dtype=rgrad.float64)
    made = rgrad.stft(x, 8, window=window, return_complex=True)
    with pytest.warns(UserWarning, match="signal is shorter than the length parameter"):
        back = rgrad.istft(made, 8, window=window, length=60)
    assert back.shape == (60,)
    assert rgrad.allclose(back[:40], x)
    assert back[44:].tolist() == [0.0] * 16


def test_derivatives() -> None:
    x = rgrad.tensor(signal(20), requires_grad=True)
    window = rgrad.tensor(np.hanning(10)[1:-1], requires_grad=True)

    def there(x: Any, window: Any) -> Any:
        return rgrad.view_as_real(rgrad.stft(x, 8, 3, window=window, return_complex=True))

    def back(z: Any, window: Any) -> Any:
        return rgrad.istft(rgrad.view_as_complex(z), 8, 3, window=window)

    assert gradcheck(there, (x, window), check_forward_ad=True)
    assert gradgradcheck(there, (x, window))
    z = there(x, window).detach().clone().requires_grad_()
    assert gradcheck(back, (z, window), check_forward_ad=True)
    assert gradgradcheck(back, (z, window))
    batch = rgrad.tensor(signal(3, 20))
    made = rgrad.vmap(lambda x: there(x, window.detach()))(batch)
    assert rgrad.allclose(made, there(batch, window).detach())


def test_errors_of_stft() -> None:
    x, window = rgrad.ones(100), rgrad.ones(16)
    z = x.to(rgrad.complex64)

    def stft(x: Any = x, n_fft: int = 16, **more: Any) -> Any:
        return rgrad.stft(x, n_fft, **{"window": window, "return_complex": True, **more})

    cases: list[tuple[Any, str]] = [
        (lambda: stft(return_complex=None), "stft requires the return_complex parameter be given for real inputs"),
        (lambda: stft(z, onesided=True), "Cannot have onesided output if window or input is complex"),
        (lambda: stft(rgrad.arange(100)), "expected a tensor of floating point or complex values"),
        (lambda: stft(rgrad.ones(1, 2, 30)), "expected a 1D or 2D tensor"),
        (lambda: stft(rgrad.ones(1, 2, 30), center=False), "expected a 1D or 2D tensor"),
        (lambda: stft(n_fft=200, center=False), "expected 0 < n_fft < 100, but got n_fft=200"),
        (lambda: stft(n_fft=0, center=False), "expected 0 < n_fft < 100, but got n_fft=0"),
        (lambda: stft(n_fft=400), "Padding size should be less than the corresponding input dimension"),
        (lambda: stft(hop_length=0), "expected hop_length > 0, but got hop_length=0"),
        (lambda: stft(win_length=20), "expected 0 < win_length <= n_fft, but got win_length=20"),
        (lambda: stft(window=rgrad.ones(8)), r"1D window tensor of size equal to win_length=16, but got .* \[8\]"),
        (lambda: stft(window=rgrad.ones(2, 8)), "expected a 1D window tensor of size equal to win_length=16"),
        (lambda: stft(align_to_window=True), "align_to_window should only be set when center = false"),
        (lambda: stft(x.half(), window=window.half()), "Half|half|float16"),
    ]
    for call, words in cases:
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(NotImplementedError, match="bad"):
        stft(pad_mode="bad")
    with pytest.raises(TypeError, match="n_fft"):
        stft(n_fft=2.5)  # type: ignore[arg-type]


def test_errors_of_istft() -> None:
    window = rgrad.hann_window(16)
    y = rgrad.stft(rgrad.ones(100), 16, window=window, return_complex=True)

    def istft(y: Any = y, n_fft: int = 16, **more: Any) -> Any:
        return rgrad.istft(y, n_fft, **{"window": window, **more})

    cases: list[tuple[Any, str]] = [
        (lambda: istft(y.real), "requires a complex-valued input tensor"),
        (lambda: istft(n_fft=18), r"to match n_fft / 2 \+ 1 when onesided=True, but got 9"),
        (lambda: istft(onesided=False), "to match n_fft when onesided=False, but got 9"),
        (lambda: istft(hop_length=20), "expected 0 < hop_length <= win_length"),
        (lambda: istft(win_length=20), "expected 0 < win_length <= n_fft"),
        (lambda: istft(window=rgrad.ones(3)), "Invalid window shape. window has to be 1D and length of `win_length`"),
        (lambda: istft(center=False), "window overlap add min: 1"),
        (lambda: istft(hop_length=16), "window overlap add min: 1"),
        (lambda: istft(return_complex=True), "Cannot have onesided output if window or input is complex"),
        (lambda: istft(window=window.to(rgrad.complex64)), "Complex windows are incompatible"),
        (lambda: istft(y[:0]), "input tensor cannot be empty"),
        (lambda: istft(y[None, None]), "expected a tensor with 3 or 4 dimensions, but got 5"),
    ]
    for call, words in cases:
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.warns(UserWarning, match="A window was not provided"):
        rgrad.istft(y, 16)


def test_sums_of_windows() -> None:
    """The adjoint of unfold, which istft adds frames with."""
    x = rgrad.tensor(signal(3, 11))
    windows = x.unfold(1, 4, 2)
    g = rgrad.tensor(signal(*windows.shape, seed=1))
    back = rgrad._core._unfold_backward(g, (3, 11), 1, 4, 2)
    assert abs(float((windows * g).sum() - (x * back).sum())) < 1e-12
    with pytest.raises(RuntimeError, match="another shape"):
        rgrad._core._unfold_backward(g, (3, 12), 1, 4, 3)
    with pytest.raises(RuntimeError, match="must be positive|another shape"):
        rgrad._core._unfold_backward(g, (3, 11), 1, 4, -2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rgrad._core._unfold_backward(g[:, :1, :3], (3, 3), 1, 3, 1).shape == (3, 3)
