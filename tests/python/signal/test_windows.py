"""Windows of `rgrad.signal`: values beside SciPy's, dtypes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal.windows

import rgrad
from rgrad.signal import windows

# Parameters here, and SciPy's function with its own.
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "bartlett": ({}, ("bartlett",)),
    "blackman": ({}, ("blackman",)),
    "cosine": ({}, ("cosine",)),
    "exponential": ({"tau": 2.5}, ("exponential", None, 2.5)),
    "gaussian": ({"std": 1.5}, ("gaussian", 1.5)),
    "general_cosine": ({"a": [0.4, 0.3, 0.2]}, ("general_cosine", [0.4, 0.3, 0.2])),
    "general_hamming": ({"alpha": 0.6}, ("general_hamming", 0.6)),
    "hamming": ({}, ("hamming",)),
    "hann": ({}, ("hann",)),
    "kaiser": ({"beta": 5.0}, ("kaiser", 5.0)),
    "nuttall": ({}, ("nuttall",)),
}


def test_every_window_has_a_case() -> None:
    assert set(windows.__all__) == set(CASES)


@pytest.mark.parametrize("length", [1, 2, 3, 10, 11])
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, sym: bool, length: int) -> None:
    options, (function, *more) = CASES[name]
    wanted = getattr(scipy.signal.windows, function)(length, *more, sym=sym)
    made = getattr(windows, name)(length, sym=sym, dtype=rgrad.float64, **options)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-12, atol=1e-15)
    single = getattr(windows, name)(length, sym=sym, **options)
    assert single.dtype == rgrad.float32
    assert single.tolist() == made.float().tolist()


@pytest.mark.parametrize("name", CASES)
def test_options_and_errors(name: str) -> None:
    options, _ = CASES[name]
    window = getattr(windows, name)
    assert window(0, **options).shape == (0,)
    assert window(3, requires_grad=True, **options).requires_grad
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        window(-1, **options)
    for dtype in (rgrad.float16, rgrad.int64, rgrad.complex64):
        with pytest.raises(ValueError, match="expects float32 or float64 dtypes"):
            window(4, dtype=dtype, **options)


def test_errors_of_parameters() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: windows.exponential(4, center=1), ValueError, "Center must be None for symmetric windows"),
        (lambda: windows.exponential(4, tau=-1), ValueError, "Tau must be positive, got: -1 instead"),
        (lambda: windows.gaussian(4, std=0), ValueError, "Standard deviation must be positive, got: 0 instead"),
        (lambda: windows.kaiser(4, beta=-1), ValueError, "beta must be non-negative, got: -1 instead"),
        (lambda: windows.general_cosine(4, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: windows.general_cosine(4, a=3), TypeError, "Coefficients must be a list/tuple"),  # type: ignore[arg-type]
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words):
            call()
    made = windows.exponential(5, center=1.0, sym=False, dtype=rgrad.float64)
    np.testing.assert_allclose(made.numpy(), np.exp(-np.abs(np.arange(5) - 1.0)))
