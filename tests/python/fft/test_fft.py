"""Fourier transforms: values beside NumPy's, layouts, lengths, normalisations, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad

# Of functions with complex operands, with real ones, and with half of a spectrum.
COMPLEX = ("fft", "ifft")
REAL = ("fft", "ifft", "rfft", "ihfft")
HALF = ("irfft", "hfft")
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 11, 16, 30, 64, 67, 97, 128, 210, 256, 1000, 1021, 2310, 4096, 10007)
NORMS = (None, "backward", "ortho", "forward")
PRECISIONS = ((np.float32, np.complex64, 3e-7), (np.float64, np.complex128, 5e-16))


def drawn(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def close(got: Any, wanted: np.ndarray, eps: float, points: int = 1) -> None:
    """Errors grow with the logarithm of the number of points, in parts of the root mean square."""
    made = got.numpy()
    assert made.shape == wanted.shape
    assert np.iscomplexobj(made) == np.iscomplexobj(wanted)
    size = np.sqrt(np.mean(np.abs(wanted) ** 2)) if wanted.size else 1.0
    bound = 4 * eps * (2 + np.log2(max(points, 1))) * size
    assert np.abs(made - wanted).max(initial=0.0) <= bound


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("real", "complex_", "eps"), PRECISIONS)
def test_values_of_one_dimension(length: int, real: Any, complex_: Any, eps: float) -> None:
    z, x = drawn(2, length, dtype=complex_), drawn(2, length, dtype=real)
    for name in COMPLEX:
        made = getattr(rgrad.fft, name)(rgrad.tensor(z))
        assert str(made.dtype) == f"rgrad.{np.dtype(complex_).name}"
        close(made, getattr(np.fft, name)(z.astype(np.complex128)), eps, length)
    for name in REAL:
        made = getattr(rgrad.fft, name)(rgrad.tensor(x))
        assert str(made.dtype) == f"rgrad.{np.dtype(complex_).name}"
        close(made, getattr(np.fft, name)(x.astype(np.float64)), eps, length)
    half = drawn(2, length // 2 + 1, dtype=complex_)
    for name in HALF:
        made = getattr(rgrad.fft, name)(rgrad.tensor(half), length)
        assert str(made.dtype) == f"rgrad.{np.dtype(real).name}"
        close(made, getattr(np.fft, name)(half.astype(np.complex128), length), eps, length)


def test_a_long_line() -> None:
    z = drawn(1 << 20, dtype=np.complex64)
    close(rgrad.fft.fft(rgrad.tensor(z)), np.fft.fft(z.astype(np.complex128)), 3e-7, z.size)
    x = drawn(1 << 20, dtype=np.float32)
    made = rgrad.fft.rfft(rgrad.tensor(x))
    close(made, np.fft.rfft(x.astype(np.float64)), 3e-7, x.size)
    close(rgrad.fft.irfft(made), x, 3e-7, x.size)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 6, 9])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_lengths_dimensions_and_norms(norm: str | None, n: int | None, dim: int) -> None:
    z, x = drawn(6, 5, 7, dtype=np.complex128), drawn(6, 5, 7)
    for operand, names in ((z, COMPLEX), (x, REAL), (z, HALF)):
        for name in names:
            wanted = getattr(np.fft, name)(operand, n, dim, norm)
            close(getattr(rgrad.fft, name)(rgrad.tensor(operand), n, dim, norm), wanted, 5e-16, 9)


# NumPy has no transforms of several dimensions for these: they are made of those of one.
def hfftn(x: np.ndarray, s: Any, dim: Any, norm: Any) -> np.ndarray:
    back = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
    return np.fft.irfftn(np.conj(x), s, dim, back)


def ihfftn(x: np.ndarray, s: Any, dim: Any, norm: Any) -> np.ndarray:
    back = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
    return np.conj(np.fft.rfftn(x, s, dim, back))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "dim"),
    [
        (None, None),
        (None, (0,)),
        (None, (2, 0)),
        ((4, 3), (0, 1)),
        ((8, 4), (-1, -3)),
        ((3, 5, 2), (0, 1, 2)),
        ((4,), (1,)),
    ],
)
def test_several_dimensions(s: Any, dim: Any, norm: str | None) -> None:
    z, x = drawn(6, 5, 7, dtype=np.complex128), drawn(6, 5, 7)
    for operand, name in ((z, "fftn"), (z, "ifftn"), (x, "fftn"), (x, "ifftn"), (x, "rfftn"), (z, "irfftn")):
        wanted = getattr(np.fft, name)(operand, s, dim if dim is not None or s is None else None, norm)
        close(getattr(rgrad.fft, name)(rgrad.tensor(operand), s, dim, norm), wanted, 5e-16, 400)
    close(rgrad.fft.hfftn(rgrad.tensor(z), s, dim, norm), hfftn(z, s, dim, norm), 5e-16, 400)
    close(rgrad.fft.ihfftn(rgrad.tensor(x), s, dim, norm), ihfftn(x, s, dim, norm), 5e-16, 400)


def test_two_dimensions_are_the_last_ones() -> None:
    z, x = drawn(3, 4, 6, dtype=np.complex128), drawn(3, 4, 6)
    for operand, name in ((z, "fft"), (z, "ifft"), (x, "rfft"), (z, "irfft"), (z, "hfft"), (x, "ihfft")):
        two, many = getattr(rgrad.fft, f"{name}2"), getattr(rgrad.fft, f"{name}n")
        t = rgrad.tensor(operand)
        assert rgrad.equal(two(t), many(t, dim=(-2, -1)))
        assert rgrad.equal(two(t, (2, 4)), many(t, (2, 4), (-2, -1)))
        assert rgrad.equal(two(t, dim=(0, 1)), many(t, dim=(0, 1)))
    # Lengths without dimensions are of the last ones, and -1 is the tensor's own.
    t = rgrad.tensor(z)
    assert rgrad.equal(rgrad.fft.fftn(t, (2, -1)), rgrad.fft.fftn(t, (2, 6), (1, 2)))
    assert rgrad.equal(rgrad.fft.irfftn(t, (2, -1)), rgrad.fft.irfftn(t, (2, 10), (1, 2)))
    assert rgrad.equal(rgrad.fft.fftn(t, dim=1), rgrad.fft.fft(t, dim=1))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_any_layout(dim: int) -> None:
    z = drawn(6, 40, 5, dtype=np.complex64)
    t = rgrad.tensor(z)
    # Transposed, with steps, backwards in NumPy's memory, repeated.
    views = (
        (t.permute(2, 0, 1), z.transpose(2, 0, 1)),
        (t.permute(1, 2, 0), z.transpose(1, 2, 0)),
        (t[::2, 1::3], z[::2, 1::3]),
        (t[:, :1].expand(6, 33, 5), np.broadcast_to(z[:, :1], (6, 33, 5))),
        (t[2:3], z[2:3]),
    )
    for tensor, array in views:
        close(rgrad.fft.fft(tensor, dim=dim), np.fft.fft(array.astype(np.complex128), axis=dim), 3e-7, 40)
        close(rgrad.fft.irfft(tensor, 9, dim=dim), np.fft.irfft(array.astype(np.complex128), 9, axis=dim), 3e-7, 40)
        real = array.real.astype(np.float64)
        close(rgrad.fft.rfft(tensor.real, dim=dim), np.fft.rfft(real, axis=dim), 3e-7, 40)
        close(rgrad.fft.fft(tensor.real, dim=dim), np.fft.fft(real, axis=dim), 3e-7, 40)


def test_promotion() -> None:
    whole = rgrad.arange(6)
    assert rgrad.fft.fft(whole).dtype == rgrad.complex64
    assert rgrad.fft.rfft(whole > 2).dtype == rgrad.complex64
    assert rgrad.fft.irfft(whole).dtype == rgrad.float32
    assert rgrad.fft.irfft(whole.double()).dtype == rgrad.float64
    rgrad.set_default_dtype(rgrad.float64)
    try:
        assert rgrad.fft.fftn(whole).dtype == rgrad.complex128
    finally:
        rgrad.set_default_dtype(rgrad.float32)
    for dtype, name in ((rgrad.float16, "Half"), (rgrad.bfloat16, "BFloat16")):
        for function in (rgrad.fft.fft, rgrad.fft.rfft, rgrad.fft.irfft, rgrad.fft.fftn, rgrad.fft.rfftn):
            with pytest.raises(RuntimeError, match=f"Unsupported dtype {name}"):
                function(whole.to(dtype))


def test_nothing_to_transform() -> None:
    assert rgrad.fft.fft(rgrad.zeros(0, 3)).shape == (0, 3)
    assert rgrad.fft.fft2(rgrad.zeros(2, 0, 3, 4)).shape == (2, 0, 3, 4)
    assert rgrad.fft.rfft(rgrad.zeros(0, 5)).shape == (0, 3)
    # Without dimensions the elements themselves.
    z = rgrad.tensor(2.0)
    made = rgrad.fft.fftn(z)
    assert made.dtype == rgrad.complex64
    assert made.item() == 2
    z = rgrad.tensor(drawn(3, dtype=np.complex64))
    made = rgrad.fft.fftn(z, dim=())
    assert rgrad.equal(made, z)
    assert made.data_ptr() != z.data_ptr()


def test_errors() -> None:
    x, z = rgrad.ones(10), rgrad.ones(10, dtype=rgrad.complex64)
    fft = rgrad.fft
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fft(x, -1), RuntimeError, r"Invalid number of data points \(-1\) specified"),
        (lambda: fft.fft(rgrad.zeros(0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.irfft(z[:1]), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fftn(rgrad.zeros(0, 3)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fftn(x, (0,)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fft(rgrad.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: fft.fft(x, dim=3), IndexError, "Dimension out of range"),
        (lambda: fft.fft2(x), IndexError, "Dimension out of range"),
        (lambda: fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda: fft.rfft(z), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda: fft.ihfft(z), RuntimeError, "ihfft expects a real input tensor, but got ComplexFloat"),
        (lambda: fft.ihfftn(z), RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
        (lambda: fft.rfft2(z[None]), RuntimeError, "rfftn expects a real-valued input tensor"),
        (lambda: fft.rfftn(z), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
        (lambda: fft.rfftn(x, dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda: fft.irfftn(z, dim=()), RuntimeError, "irfftn must transform at least one axis"),
        (lambda: fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda: fft.fftn(x, (2, 3)), RuntimeError, "Got shape with 2 values but input tensor only has 1 dimensions"),
        (lambda: fft.fft2(rgrad.ones(2, 3), 4), RuntimeError, "dim and shape arguments must have the same length"),
        (lambda: fft.fft([1.0]), TypeError, r"fft_fft\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        (lambda: fft.fft(x, 2.5), TypeError, r"fft_fft\(\): argument 'n' \(position 2\) must be int, not float"),
        (lambda: rgrad._fft_c2c(x, [0], 0, True), RuntimeError, "Only supports complex dtypes, but found: Float"),
        (
            lambda: rgrad._fft_r2c(z, [0], 0, True),
            RuntimeError,
            "Only supports floating-point dtypes, but found: ComplexFloat",
        ),
        (lambda: rgrad._fft_c2r(x, [0], 0, 5), RuntimeError, "Only supports complex dtypes, but found: Float"),
        (lambda: rgrad._fft_c2r(z, [0], 0, 5), RuntimeError, "expected 3 elements along dimension 0 for 5"),
        (lambda: rgrad._fft_c2c(z, [0], 7, True), RuntimeError, "Unsupported normalization type 7"),
        (lambda: rgrad._fft_c2c(z, [0, 0], 0, True), RuntimeError, "FFT dims must be unique"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words):
            call()


def test_the_three_below() -> None:
    x, z = drawn(4, 6), drawn(4, 6, dtype=np.complex128)
    for number, factor in enumerate((1, 6**-0.5, 1 / 6)):
        close(rgrad._fft_c2c(rgrad.tensor(z), [1], number, True), np.fft.fft(z) * factor, 5e-16, 6)
        close(rgrad._fft_c2c(rgrad.tensor(z), [1], number, False), np.fft.ifft(z) * 6 * factor, 5e-16, 6)
        close(rgrad._fft_r2c(rgrad.tensor(x), [1], number, True), np.fft.rfft(x) * factor, 5e-16, 6)
        close(rgrad._fft_r2c(rgrad.tensor(x), [1], number, False), np.fft.fft(x) * factor, 5e-16, 6)
        close(rgrad._fft_c2r(rgrad.tensor(z[:, :4]), [1], number, 6), np.fft.irfft(z[:, :4], 6) * 6 * factor, 5e-16, 6)


def test_results_in_given_tensors() -> None:
    x = rgrad.tensor(drawn(4, 6))
    out = rgrad.empty(0, dtype=rgrad.complex128)
    assert rgrad.fft.fft(x, out=out) is out
    assert rgrad.equal(out, rgrad.fft.fft(x))
    out = rgrad.empty(4, 6, dtype=rgrad.float64)
    rgrad.fft.irfft(rgrad.fft.rfft(x), out=out)
    assert rgrad.allclose(out, x)
    with pytest.raises(RuntimeError, match="cast"):
        rgrad.fft.fft(x, out=rgrad.empty(4, 6, dtype=rgrad.float64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        rgrad.fft.fft(x.clone().requires_grad_(), out=rgrad.empty(4, 6, dtype=rgrad.complex128))


def test_infinite_elements_spread_and_inputs_stay() -> None:
    x = rgrad.tensor([1.0, float("nan"), 2.0, 3.0])
    before = x.clone()
    assert np.isnan(rgrad.fft.fft(x).numpy()).all()
    assert rgrad.equal(x.nan_to_num(7.0), before.nan_to_num(7.0))


def test_other_devices() -> None:
    """The meta device has shapes; no other has transforms."""
    made = rgrad.fft.rfft(rgrad.zeros(2, 4, device="meta"))
    assert made.shape == (2, 3)
    assert made.dtype == rgrad.complex64


def test_frequencies() -> None:
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.25):
            assert rgrad.fft.fftfreq(n, d).tolist() == np.fft.fftfreq(n, d).astype(np.float32).tolist()
            assert rgrad.fft.rfftfreq(n, d).tolist() == np.fft.rfftfreq(n, d).astype(np.float32).tolist()
    assert rgrad.fft.fftfreq(0).shape == (0,)
    assert rgrad.fft.fftfreq(4, dtype=rgrad.float64).dtype == rgrad.float64
    assert rgrad.fft.rfftfreq(4, requires_grad=True).requires_grad
    out = rgrad.empty(0)
    assert rgrad.fft.fftfreq(4, out=out) is out
    assert out.tolist() == [0.0, 0.25, -0.5, -0.25]
    for function in (rgrad.fft.fftfreq, rgrad.fft.rfftfreq):
        with pytest.raises(RuntimeError, match="requires a floating point or complex dtype"):
            function(4, dtype=rgrad.int64)
        with pytest.raises(RuntimeError, match="negative dimension -"):
            function(-4)
        with pytest.raises(TypeError, match=r"argument 'n' \(position 1\) must be int, not float"):
            function(4.5)
        with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
            function(4, out=rgrad.empty(0), dtype=rgrad.float64)


def test_shifts() -> None:
    x = np.arange(30).reshape(5, 6)
    t = rgrad.tensor(x)
    for dim in (None, 0, -1, (0, 1)):
        assert rgrad.fft.fftshift(t, dim).tolist() == np.fft.fftshift(x, dim).tolist()
        assert rgrad.fft.ifftshift(t, dim).tolist() == np.fft.ifftshift(x, dim).tolist()
    assert rgrad.equal(rgrad.fft.fftshift(t, ()), t)
    with pytest.raises(IndexError):
        rgrad.fft.fftshift(t, 3)
    with pytest.raises(RuntimeError, match="`shifts` required"):
        rgrad.fft.ifftshift(rgrad.tensor(1.0))


def test_autocast_computes_in_float32() -> None:
    x = rgrad.ones(4, 4, dtype=rgrad.bfloat16)
    with rgrad.autocast("cpu", dtype=rgrad.bfloat16):
        for function in (rgrad.fft.fft, rgrad.fft.rfft, rgrad.fft.ihfft, rgrad.fft.fft2, rgrad.fft.rfftn):
            assert function(x).dtype == rgrad.complex64
        for function in (rgrad.fft.irfft, rgrad.fft.hfft, rgrad.fft.irfftn):
            assert function(x).dtype == rgrad.float32
        assert rgrad.stft(x[0], 4, window=rgrad.ones(4), return_complex=True).dtype == rgrad.complex64
