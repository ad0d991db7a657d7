"""Fourier transforms, short-time ones and windows beside PyTorch: values, dtypes, gradients, errors."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from rgrad.signal import windows  # noqa: E402

pytestmark = pytest.mark.oracle

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = tuple(name + end for name in ONE for end in ("2", "n"))
NORMS = (None, "backward", "ortho", "forward")


def drawn(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x * 10).astype(dtype)


# The most special one first.
KINDS = (NotImplementedError, IndexError, TypeError, ValueError, RuntimeError)


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result as an array, or the type and the words of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = function(*args, **kwargs)
        except Exception as error:
            return next(kind for kind in KINDS if isinstance(error, kind)), str(error)
    return made.detach().resolve_conj().numpy()


def same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple), got
        assert got[0] is wanted[0], (got, wanted)
        assert wanted[1][:45] in got[1], (got, wanted)
        return
    assert not isinstance(got, tuple), got
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    eps = 2e-6 if wanted.dtype in (np.float32, np.complex64) else 2e-14
    size = np.sqrt(np.mean(np.abs(wanted) ** 2)) if wanted.size else 1.0
    assert (np.isnan(got) == np.isnan(wanted)).all()
    assert np.nanmax(np.abs(got - wanted), initial=0.0) <= eps * (np.nan_to_num(size) + 1e-30)


@pytest.mark.parametrize("name", [*ONE, *MANY, "fftfreq", "rfftfreq", "fftshift", "ifftshift"])
def test_the_function_is_there(name: str) -> None:
    assert callable(getattr(rgrad.fft, name))
    assert {n for n in dir(torch.fft) if n == name} == {name}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64", "bool", "float16"])
@pytest.mark.parametrize("name", ONE)
def test_one_dimension(name: str, dtype: str) -> None:
    x = drawn(dtype, 5, 12)
    for n in (None, 1, 4, 7, 12, 20, 0, -2):
        for dim in (-1, 0, 2):
            for norm in (*NORMS, "no"):
                got = outcome(getattr(rgrad.fft, name), rgrad.tensor(x), n, dim, norm)
                same(got, outcome(getattr(torch.fft, name), torch.tensor(x), n, dim, norm))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("name", MANY)
def test_several_dimensions(name: str, dtype: str) -> None:
    x = drawn(dtype, 4, 6, 5)
    cases: list[dict[str, Any]] = [
        {},
        {"s": (3, 8)},
        {"s": (-1, 4)},
        {"s": (5, -1), "dim": (0, 2)},
        {"dim": (1,), "s": (3,)},
        {"dim": (2, 0)},
        {"dim": (0, -3)},
        {"dim": (0, 5)},
        {"s": (2, 0)},
        {"s": (2, 2, 2, 2), "dim": (0, 1, 2, 0)},
        {"s": (2, 2), "dim": (0,)},
    ]
    for case in cases:
        for norm in NORMS:
            got = outcome(getattr(rgrad.fft, name), rgrad.tensor(x), norm=norm, **case)
            same(got, outcome(getattr(torch.fft, name), torch.tensor(x), norm=norm, **case))


@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_gradients(name: str) -> None:
    wide = name.startswith(("irfft", "hfft"))
    for dtype in ("float64",) if name.startswith(("rfft", "ihfft")) else ("float64", "complex128"):
        x = drawn(dtype, 3, 4, 6)
        for more in ({}, {"norm": "ortho"}, {"n" if name in ONE else "s": 7 if name in ONE else (3, 5)}):
            grads = []
            for lib in (rgrad, torch):
                t: Any = lib.tensor(x, requires_grad=True)
                y = getattr(lib.fft, name)(t, **more)
                assert y.dtype.is_complex is not wide
                # The gradient of abs(y) ** 3 reads values of y.
                grads.append(lib.autograd.grad((y.abs() ** 3).sum(), t)[0].resolve_conj().numpy())
            same(*grads)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_three_below(dtype: str) -> None:
    x = drawn(dtype, 4, 6)
    for number in (0, 1, 2):
        for dims in ([0], [1], [0, 1], []):
            calls = (
                ("_fft_c2c", (dims, number, True)),
                ("_fft_c2c", (dims, number, False)),
                ("_fft_r2c", (dims or [0], number, True)),
                ("_fft_r2c", (dims or [0], number, False)),
            )
            for name, args in calls:
                wanted = outcome(getattr(torch, name), torch.tensor(x), *args)
                got = outcome(getattr(rgrad, name), rgrad.tensor(x), *args)
                if isinstance(wanted, tuple):
                    assert isinstance(got, tuple)
                else:
                    same(got, wanted)


def test_frequencies() -> None:
    for name in ("fftfreq", "rfftfreq"):
        for n in (0, 1, 2, 5, 8, -1):
            for d in (1.0, 0.5, 3):
                same(outcome(getattr(rgrad.fft, name), n, d), outcome(getattr(torch.fft, name), n, d))
        for dtype in ("float64", "float16", "int64"):
            got = outcome(getattr(rgrad.fft, name), 6, dtype=getattr(rgrad, dtype))
            wanted = outcome(getattr(torch.fft, name), 6, dtype=getattr(torch, dtype))
            if dtype == "float16":
                np.testing.assert_allclose(got, wanted, rtol=1e-3)
            else:
                same(got, wanted)


STFT: list[dict[str, Any]] = [
    {},
    {"return_complex": False},
    {"return_complex": None},
    {"hop_length": 5},
    {"win_length": 9},
    {"win_length": 8, "window": 8},
    {"window": 16},
    {"window": 9},
    {"center": False},
    {"center": False, "align_to_window": True, "win_length": 8},
    {"center": True, "align_to_window": False},
    {"pad_mode": "constant"},
    {"pad_mode": "replicate"},
    {"normalized": True},
    {"onesided": False},
    {"onesided": True},
    {"hop_length": 0},
    {"hop_length": -1},
    {"win_length": 17},
    {"n_fft": 0, "center": False},
    {"n_fft": 101},
]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("case", STFT, ids=str)
def test_stft(case: dict[str, Any], dtype: str) -> None:
    for shape in ((100,), (2, 100), (1, 2, 100)):
        results = []
        for lib in (rgrad, torch):
            options = {"n_fft": 16, "return_complex": True, **case}
            if "window" in options:
                options["window"] = lib.hann_window(options["window"], dtype=lib.float64)
            results.append(outcome(lib.stft, lib.tensor(drawn(dtype, *shape)), **options))
        if isinstance(results[1], tuple) and results[1][1].startswith("stft("):
            results = [(kind, text.rpartition(") : ")[2] or text) for kind, text in results]
        same(*results)


ISTFT: list[dict[str, Any]] = [
    {},
    {"length": 90},
    {"length": 130},
    {"center": False},
    {"hop_length": 5},
    {"hop_length": 17},
    {"win_length": 12},
    {"win_length": 12, "window": 12},
    {"window": 16},
    {"window": 5},
    {"normalized": True},
    {"onesided": True},
    {"onesided": False},
    {"return_complex": True},
    {"n_fft": 18},
]


@pytest.mark.parametrize("frequencies", [9, 16])
@pytest.mark.parametrize("case", ISTFT, ids=str)
def test_istft(case: dict[str, Any], frequencies: int) -> None:
    for shape in ((frequencies, 7), (2, frequencies, 7), (1, 1, frequencies, 7)):
        results = []
        for lib in (rgrad, torch):
            options = {"n_fft": 16, **case}
            if "window" in options:
                options["window"] = lib.hamming_window(options["window"])
            results.append(outcome(lib.istft, lib.tensor(drawn("complex64", *shape)), **options))
        if isinstance(results[1], tuple) and results[1][1].startswith("istft("):
            results = [(kind, text.rpartition("return_complex=")[2][2:]) for kind, text in results]
        same(*results)


@pytest.mark.parametrize("name", windows.__all__)
def test_windows(name: str) -> None:
    assert set(windows.__all__) == set(torch.signal.windows.__all__)
    ours, theirs = getattr(windows, name), getattr(torch.signal.windows, name)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    more = {"a": [0.5, 0.3, 0.2]} if name == "general_cosine" else {}
    for length in (0, 1, 2, 7, 10, -1):
        for sym in (True, False):
            got = outcome(ours, length, sym=sym, dtype=rgrad.float64, **more)
            wanted = outcome(theirs, length, sym=sym, dtype=torch.float64, **more)
            same(got, wanted)
