"""Rows of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

import numpy as np

from harness import Row, Work, to_numpy
from rows_small import random

RATE = 16_000
"""Elements of a second of sound."""


def complex_numbers(*shape: int) -> Any:
    return (random(*shape) + 1j * random(*shape, seed=1)).astype(np.complex64)


def parts(lib: ModuleType, z: Any) -> list[Any]:
    return to_numpy(lib.view_as_real(z) if z.is_complex() else z)


def of(array: Callable[[], Any], call: Callable[[ModuleType, Any], Any]) -> Callable[[ModuleType], Work]:
    def work(lib: ModuleType) -> Work:
        x = lib.tensor(array())

        def run(n: int) -> None:
            for _ in repeat(None, n):
                call(lib, x)

        return Work(run, lambda: parts(lib, call(lib, x)))

    return work


def gradient(lib: ModuleType) -> Work:
    """A filter: there, times its response, back, and its gradient."""
    x, response = lib.tensor(random(64, 4096)).requires_grad_(), lib.tensor(complex_numbers(2049))

    def step() -> None:
        x.grad = None
        y = lib.fft.irfft(lib.fft.rfft(x) * response, 4096)
        y.backward(y.detach())

    def run(n: int) -> None:
        for _ in repeat(None, n):
            step()

    def result() -> list[Any]:
        step()
        return to_numpy(x.grad)

    return Work(run, result)


def there(lib: ModuleType, x: Any) -> Any:
    return lib.stft(x, 400, 160, window=lib.hann_window(400), return_complex=True)


def there_and_back(lib: ModuleType, x: Any) -> Any:
    return lib.istft(there(lib, x), 400, 160, window=lib.hann_window(400), length=x.shape[-1])


ROWS = [
    Row("fft_64", "`fft` of 64 complex64", 1.0, of(lambda: complex_numbers(64), lambda lib, x: lib.fft.fft(x))),
    Row(
        "fft_1m",
        "`fft` of 2^20 complex64",
        1.0,
        of(lambda: complex_numbers(1 << 20), lambda lib, x: lib.fft.fft(x)),
        rtol=1e-3,
    ),
    Row(
        "fft_rows",
        "`fft` of 1024 rows of 1024 complex64",
        1.0,
        of(lambda: complex_numbers(1024, 1024), lambda lib, x: lib.fft.fft(x)),
        rtol=1e-3,
    ),
    Row(
        "fft_columns",
        "`fft` of 1024 columns of 1024 complex64",
        1.0,
        of(lambda: complex_numbers(1024, 1024), lambda lib, x: lib.fft.fft(x, dim=0)),
        rtol=1e-3,
    ),
    Row(
        "fft2_512",
        "`fft2` of 512x512 complex64",
        1.0,
        of(lambda: complex_numbers(512, 512), lambda lib, x: lib.fft.fft2(x)),
        rtol=1e-3,
    ),
    Row(
        "fft_prime",
        "`fft` of 64 rows of 10007 complex64",
        1.0,
        of(lambda: complex_numbers(64, 10007), lambda lib, x: lib.fft.fft(x)),
        rtol=1e-3,
    ),
    Row(
        "rfft_1m", "`rfft` of 2^20 float32", 1.0, of(lambda: random(1 << 20), lambda lib, x: lib.fft.rfft(x)), rtol=1e-3
    ),
    Row(
        "rfft_rows",
        "`rfft` of 1024 rows of 1024 float32",
        1.0,
        of(lambda: random(1024, 1024), lambda lib, x: lib.fft.rfft(x)),
        rtol=1e-3,
    ),
    Row(
        "irfft_rows",
        "`irfft` to 1024 rows of 1024 float32",
        1.0,
        of(lambda: complex_numbers(1024, 513), lambda lib, x: lib.fft.irfft(x)),
        rtol=1e-3,
    ),
    Row(
        "rfft_filter_gradient",
        "a filter of 64x4096 float32 by `rfft` and `irfft`, with its gradient",
        1.0,
        gradient,
        rtol=1e-3,
    ),
    Row(
        "stft_10s",
        "`stft` of 10 s of sound, frames of 400 each 160",
        1.0,
        of(lambda: random(10 * RATE), there),
        rtol=1e-3,
    ),
    Row(
        "stft_and_istft_10s",
        "`stft` of 10 s of sound, and `istft` back",
        1.0,
        of(lambda: random(10 * RATE), there_and_back),
        rtol=1e-3,
    ),
]
