"""Fourier transforms on the device, beside NumPy's in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor, fft

# Every radix and their products; several passes; lengths with other prime factors.
LENGTHS = [
    *range(1, 18),
    60,
    97,
    210,
    343,
    1000,
    1001,
    2048,
    2187,
    4096,
    5000,
    10_007,
    16_807,
    65_536,
    120_000,
]
NAMES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
REAL = {"rfft", "ihfft"}


def signal(*shape: int, real: bool = False, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if real:
        return rgrad.from_numpy(x.astype(np.float32))
    return rgrad.from_numpy((x + 1j * rng.standard_normal(shape)).astype(np.complex64))


def close(got: Tensor, want: np.ndarray) -> None:
    assert got.device.type == "wgpu"
    assert got.dtype == (rgrad.complex64 if want.dtype.kind == "c" else rgrad.float32)
    value = got.detach().cpu().resolve_conj().numpy()
    assert value.shape == want.shape
    size = float(np.sqrt(np.mean(np.abs(want) ** 2))) if want.size else 0.0
    np.testing.assert_allclose(value, want, rtol=0, atol=8e-6 * max(size, 1e-6))


def wide(x: Tensor) -> np.ndarray:
    v = x.resolve_conj().numpy()
    return v.astype(np.complex128 if v.dtype.kind == "c" else np.float64)


@pytest.mark.rotate(take=12)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    for name in NAMES:
        ours, theirs = getattr(fft, name), getattr(np.fft, name)
        if name in ("irfft", "hfft"):
            x = signal(3 if n < 5000 else 1, n // 2 + 1, seed=n)
            close(ours(x.to("wgpu"), n=n), theirs(wide(x), n=n))
        else:
            x = signal(3 if n < 5000 else 1, n, real=name in REAL, seed=n)
            close(ours(x.to("wgpu")), theirs(wide(x)))


def test_a_long_line_takes_three_passes() -> None:
    x = signal(2048 * 2048 * 2, real=True)
    close(fft.rfft(x.to("wgpu")), np.fft.rfft(wide(x)))


CASES: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], bool]] = {
    "a strided dimension": (lambda m, x: m.fft(x, axis=0) if m is np.fft else m.fft(x, dim=0), (12, 7), False),
    "many lines": (lambda m, x: m.ifft(x), (700, 12), False),
    "many columns": (lambda m, x: m.fft(x, axis=1) if m is np.fft else m.fft(x, dim=1), (3, 64, 50), False),
    "norm ortho": (lambda m, x: m.fft(x, norm="ortho"), (4, 30), False),
    "norm forward": (lambda m, x: m.rfft(x, norm="forward"), (4, 31), True),
    "cut": (lambda m, x: m.fft(x, n=9), (4, 30), False),
    "padded": (lambda m, x: m.fft(x, n=44), (4, 30), False),
    "two dimensions": (lambda m, x: m.fft2(x), (2, 12, 22), False),
    "real, two dimensions": (lambda m, x: m.rfft2(x), (2, 12, 15), True),
    "to real, two dimensions": (lambda m, x: m.irfft2(x, s=(12, 15)), (2, 12, 8), False),
    "three dimensions": (lambda m, x: m.fftn(x), (5, 6, 26), False),
    "inverse, three dimensions": (lambda m, x: m.ifftn(x), (5, 6, 7), False),
    "real, three dimensions": (lambda m, x: m.rfftn(x), (5, 6, 8), True),
    "to real, three dimensions": (lambda m, x: m.irfftn(x), (5, 6, 8), False),
    "no lines": (lambda m, x: m.fft(x), (0, 8), False),
    "a complex transform of reals": (lambda m, x: m.fft(x), (3, 20), True),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_and_options(name: str) -> None:
    call, shape, real = CASES[name]
    x = signal(*shape, real=real)
    close(call(fft, x.to("wgpu")), call(np.fft, wide(x)))
    if len(shape) == 2 and min(shape) > 0:
        there = x.to("wgpu").t().contiguous().t()
        close(call(fft, there), call(np.fft, wide(x)))


def test_views_and_conjugates() -> None:
    x = signal(40, 6)
    there = x.to("wgpu")
    close(fft.fft(there.conj()[3:, ::2], dim=0), np.fft.fft(wide(x).conj()[3:, ::2], axis=0))
    close(fft.rfft(there.imag, dim=0), np.fft.rfft(wide(x).imag, axis=0))


@pytest.mark.parametrize("n", [12, 13, 22])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_both_orders(name: str, n: int) -> None:
    def gradients(device: str) -> list[Tensor]:
        x = signal(2, n, real=name in REAL).to(device).requires_grad_()
        out = getattr(fft, name)(x)
        out = rgrad.view_as_real(out) if out.is_complex() else out
        weights = rgrad.linspace(-1, 1, out.numel(), device=device).reshape(out.shape)
        (first,) = rgrad.autograd.grad((out**3 * weights).sum(), x, create_graph=True)
        (again,) = rgrad.autograd.grad((first.abs() ** 2).sum(), x)
        return [first, again]

    for got, want in zip(gradients("wgpu"), gradients("cpu"), strict=True):
        assert got.dtype == want.dtype
        a, b = got.detach().cpu().resolve_conj().numpy(), want.detach().resolve_conj().numpy()
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * float(np.abs(b).max()))


def test_short_time_transforms_go_there_and_back() -> None:
    x = signal(2, 400, real=True)
    window = rgrad.hann_window(64)
    args: dict[str, Any] = {"n_fft": 64, "hop_length": 16}
    there = rgrad.stft(x.to("wgpu"), window=window.to("wgpu"), return_complex=True, **args)
    close(there, rgrad.stft(x, window=window, return_complex=True, **args).numpy())
    close(rgrad.istft(there, window=window.to("wgpu"), length=400, **args), x.numpy())


def test_float64_is_refused_with_a_way_out() -> None:
    if "shader-f64" not in rgrad.wgpu.current_device().features:
        pytest.skip("the adapter has no float64")
    with pytest.raises(NotImplementedError, match=r"float32|complex64"):
        fft.rfft(rgrad.ones(8, dtype=rgrad.float64, device="wgpu"))
