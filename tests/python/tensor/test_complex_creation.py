"""Complex tensors from numbers, random parts, conversions, and numbers from complex tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad

COMPLEX = [rgrad.complex64, rgrad.complex128]


def test_item_assignment_and_fill() -> None:
    z: Any = rgrad.zeros(3, dtype=rgrad.complex64)
    z[0] = 1 + 2j
    z[rgrad.tensor([1])] = 2j
    z[rgrad.tensor([False, False, True])] = rgrad.tensor([3.0])
    assert z.tolist() == [1 + 2j, 2j, 3]
    z.fill_(1j)
    assert z.tolist() == [1j] * 3
    x: Any = rgrad.zeros(2)
    for write in (lambda: x.fill_(1j), lambda: x.__setitem__(0, 1 + 2j), lambda: x.masked_fill_(x == 0, 1j)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            write()
    x[0] = 1 + 0j
    assert x.tolist() == [1.0, 0.0]


def test_parts_are_views_that_can_be_written() -> None:
    z: Any = rgrad.zeros(2, dtype=rgrad.complex64)
    z.real = 3
    z.imag = rgrad.tensor([1.0, 2.0])
    assert z.tolist() == [3 + 1j, 3 + 2j]
    z.real += 1
    z.imag[0] = 5.0
    assert z.tolist() == [4 + 5j, 4 + 2j]
    assert z.real.data_ptr() == z.data_ptr()
    with pytest.raises(RuntimeError, match="without overflow"):
        z.real = 1j
    with pytest.raises(TypeError, match=r"can't assign a str to a rgrad.FloatTensor"):
        z.imag = "a"


def test_python_numbers() -> None:
    z = rgrad.tensor(1 + 2j)
    assert (complex(z), z.item(), z.tolist(), bool(z)) == (1 + 2j, 1 + 2j, 1 + 2j, True)
    assert complex(rgrad.tensor([2.5])) == 2.5
    assert (float(rgrad.tensor(2 + 0j)), int(rgrad.tensor(2 + 0j))) == (2.0, 2)
    assert not rgrad.tensor(0j)
    assert rgrad.tensor(1e-3j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(z)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        int(z)
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][z]
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        complex(rgrad.tensor([1j, 2j]))
    assert 1 + 2j in rgrad.tensor([1 + 2j, 3])
    assert 4 not in rgrad.tensor([1 + 2j, 3])


def test_what_holds_no_complex_number_refuses_it() -> None:
    for data, dtype, words in (
        ([1 + 2j], rgrad.float32, "must be real number, not complex"),
        ([1 + 0j], rgrad.float16, "must be real number, not complex"),
        ([1 + 0j], rgrad.int64, "'complex' object cannot be interpreted as an integer"),
    ):
        with pytest.raises(TypeError, match=words):
            rgrad.tensor(data, dtype=dtype)
    assert rgrad.tensor([1j, 0j], dtype=rgrad.bool).tolist() == [True, False]


def test_ranges() -> None:
    assert rgrad.linspace(0, 1 + 1j, 5).tolist() == np.linspace(0, 1 + 1j, 5).tolist()
    assert rgrad.linspace(1j, 1, 3, dtype=rgrad.complex128).tolist() == [1j, 0.5 + 0.5j, 1]
    made = rgrad.logspace(0, 1 + 1j, 5, base=2.0, dtype=rgrad.complex128)
    assert np.allclose(made.numpy(), np.power(2.0, np.linspace(0, 1 + 1j, 5)), rtol=1e-14)
    for make in (rgrad.linspace, rgrad.logspace):
        call: Any = make
        with pytest.raises(
            RuntimeError, match=r"inferred dtype c10::complex<float> can't be safely cast to passed dtype Float"
        ):
            call(0, 1 + 1j, 5, dtype=rgrad.float32)
    with pytest.raises(NotImplementedError, match="\"arange_cpu\" not implemented for 'ComplexFloat'"):
        rgrad.arange(3, dtype=rgrad.complex64)
    unreal: Any = 3j
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        rgrad.arange(unreal)


@pytest.mark.parametrize("dtype", [rgrad.complex32, *COMPLEX], ids=str)
def test_random_parts(dtype: Any) -> None:
    rgrad.manual_seed(3)
    n = 40_000
    z = rgrad.randn(n, dtype=dtype).to(rgrad.complex128).numpy()
    assert np.mean(np.abs(z) ** 2) == pytest.approx(1, abs=0.03)
    assert [np.var(z.real), np.var(z.imag)] == pytest.approx([0.5, 0.5], abs=0.02)
    assert np.mean(z.real * z.imag) == pytest.approx(0, abs=0.01)
    u = rgrad.rand(n, dtype=dtype).to(rgrad.complex128).numpy()
    for part in (u.real, u.imag):
        assert part.min() >= 0
        assert part.max() <= 1
        assert part.mean() == pytest.approx(0.5, abs=0.01)
    filled = rgrad.zeros(n, dtype=dtype).normal_(3.0, 2.0).to(rgrad.complex128).numpy()
    assert filled.real.mean() == pytest.approx(3, abs=0.05)
    assert filled.imag.mean() == pytest.approx(0, abs=0.05)
    assert [filled.real.var(), filled.imag.var()] == pytest.approx([2, 2], abs=0.1)
    assert rgrad.randn_like(rgrad.zeros(2, 3, dtype=dtype)).dtype == dtype
    assert rgrad.rand_like(rgrad.zeros(2, 3, dtype=dtype).t()).stride() == (1, 3)


def test_normal_with_complex_means() -> None:
    mean = rgrad.full((20_000,), 2 + 5j)
    made = rgrad.normal(mean, 2.0).numpy()
    assert made.mean() == pytest.approx(2 + 5j, abs=0.1)
    assert np.mean(np.abs(made - (2 + 5j)) ** 2) == pytest.approx(4, abs=0.2)
    assert rgrad.normal(mean, rgrad.ones(20_000)).dtype == rgrad.complex64
    with pytest.raises(RuntimeError, match="normal expects standard deviation to be non-complex"):
        rgrad.normal(0.0, mean)


REFUSED: list[tuple[Callable[[Any], Any], Any, str]] = [
    (lambda z: z.random_(), NotImplementedError, "\"random_kernel_cpu\" not implemented for 'ComplexFloat'"),
    (
        lambda z: z.random_(5),
        RuntimeError,
        "check_random_bounds handles only integral, floating-point and boolean types",
    ),
    (lambda z: rgrad.randint(3, (2,), dtype=z.dtype), RuntimeError, "check_random_bounds handles only integral"),
    (lambda z: z.exponential_(), RuntimeError, "Exponential distribution is a continuous probability distribution"),
    (lambda z: z.cauchy_(), RuntimeError, "Cauchy distribution is a continuous probability distribution"),
    (lambda z: z.log_normal_(), NotImplementedError, '"log_normal_cpu" not implemented'),
    (lambda z: z.geometric_(0.5), NotImplementedError, '"geometric_cpu" not implemented'),
    (lambda z: z.bernoulli_(), NotImplementedError, '"bernoulli_scalar_cpu_" not implemented'),
    (rgrad.bernoulli, NotImplementedError, '"bernoulli_tensor_cpu_self_" not implemented'),
    (rgrad.poisson, NotImplementedError, '"poisson_cpu" not implemented'),
    (lambda z: rgrad.randperm(3, dtype=z.dtype), NotImplementedError, '"randperm" not implemented'),
]


@pytest.mark.parametrize(("draw", "error", "words"), REFUSED)
def test_other_distributions_are_refused(draw: Any, error: Any, words: str) -> None:
    z = rgrad.zeros(3, dtype=rgrad.complex64)
    with pytest.raises(error, match=words):
        draw(z)
    assert z.tolist() == [0j] * 3


def lost_parts(call: Callable[[], Any]) -> list[str]:
    rgrad.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
    finally:
        rgrad.set_warn_always(False)
    return [str(w.message) for w in seen]


def test_conversions_to_real_dtypes_warn() -> None:
    z, x = rgrad.tensor([1 + 2j]), rgrad.zeros(1)
    what = ["Casting complex values to real discards the imaginary part"]
    assert lost_parts(lambda: z.float()) == what
    assert lost_parts(lambda: z.to(rgrad.int64)) == what
    assert lost_parts(lambda: z.type(rgrad.float64)) == what
    assert lost_parts(lambda: x.copy_(z)) == what
    assert lost_parts(lambda: x.__setitem__(0, z[0])) == what
    assert lost_parts(lambda: x.fill_(z[0])) == what
    assert x.tolist() == [1.0]
    # bool loses nothing, nor do complex numbers of other sizes.
    assert lost_parts(lambda: (z.bool(), z.cdouble(), z.chalf(), x.cfloat(), z.real)) == []


def test_methods_that_convert() -> None:
    x = rgrad.tensor([1.5])
    for name, dtype in (("chalf", rgrad.complex32), ("cfloat", rgrad.complex64), ("cdouble", rgrad.complex128)):
        made = getattr(x, name)()
        assert made.dtype == dtype
        assert made.tolist() == [1.5]
        assert getattr(made, name)() is made
        assert made.is_complex()
        assert (
            made.type()
            == f"rgrad.{ {'chalf': 'ComplexHalf', 'cfloat': 'ComplexFloat', 'cdouble': 'ComplexDouble'}[name] }Tensor"
        )
    assert x.type("torch.ComplexFloatTensor").dtype == rgrad.complex64


def test_limits_and_partners() -> None:
    for dtype, part in ((rgrad.complex32, "float16"), (rgrad.complex64, "float32"), (rgrad.complex128, "float64")):
        assert repr(rgrad.finfo(dtype)) == repr(rgrad.finfo(getattr(rgrad, part)))
        assert str(dtype.to_real()) == f"rgrad.{part}"
        assert dtype.to_real().to_complex() == dtype
    with pytest.raises(TypeError, match="requires an integer input type"):
        rgrad.iinfo(rgrad.complex64)
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Int"):
        rgrad.int32.to_complex()
    with pytest.raises(TypeError):
        rgrad.set_default_dtype(rgrad.complex64)


def test_adjoints_and_tests() -> None:
    z = rgrad.tensor([[1 + 2j, 3]])
    want = [[1 - 2j], [3]]
    assert [m.tolist() for m in (z.mH, z.H, z.adjoint(), rgrad.adjoint(z))] == [want] * 4
    assert z.mT.tolist() == [[1 + 2j], [3]]
    with pytest.raises(RuntimeError, match=r"tensor.adjoint\(\) is only supported on matrices or batches of matrices"):
        z[0].adjoint()
    assert rgrad.isreal(rgrad.tensor([1j, 1, 2 + 0j])).tolist() == [False, True, True]
    assert rgrad.tensor([1.0, 2.0]).isreal().tolist() == [True, True]
    assert rgrad.isreal(rgrad.tensor([1, 2])).dtype == rgrad.bool


def test_powers_of_real_tensors_with_complex_exponents() -> None:
    x = rgrad.tensor([1.0, 2.0], dtype=rgrad.float64)
    assert np.allclose((x**1j).numpy(), np.array([1.0, 2.0]) ** 1j, rtol=1e-14)
    assert (x ** (2 + 0j)).tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="result type ComplexDouble can't be cast to the desired output type Double"):
        x.pow_(1j)
    z = rgrad.tensor([2j, 3], dtype=rgrad.complex128)
    want = z.numpy() ** 1j
    assert np.allclose(z.pow_(1j).numpy(), want, rtol=1e-14)


ORDERS: list[tuple[str, Any, str]] = [
    (
        "sign",
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn",
    ),
    ("floor", NotImplementedError, "floor is not supported for complex inputs"),
    ("ceil", NotImplementedError, "ceil is not supported for complex inputs"),
    ("trunc", NotImplementedError, "trunc is not supported for complex inputs"),
    ("round", NotImplementedError, "\"round_vml_cpu\" not implemented for 'ComplexFloat'"),
    ("frac", NotImplementedError, "\"frac_cpu\" not implemented for 'ComplexFloat'"),
    ("relu", NotImplementedError, "clamp is not supported for complex types"),
    ("isposinf", RuntimeError, "isposinf does not support complex inputs"),
    ("isneginf", RuntimeError, "isneginf does not support complex inputs"),
    ("rad2deg", RuntimeError, "rad2deg is not supported for complex tensors"),
    ("erf", NotImplementedError, "\"erf_vml_cpu\" not implemented for 'ComplexFloat'"),
    ("signbit", NotImplementedError, "signbit is not implemented for complex tensors"),
    ("lgamma", NotImplementedError, "\"lgamma_vml_cpu\" not implemented for 'ComplexFloat'"),
    ("digamma", NotImplementedError, "\"digamma\" not implemented for 'ComplexFloat'"),
    ("i0", NotImplementedError, "\"i0_vml_cpu\" not implemented for 'ComplexFloat'"),
    ("abs_", RuntimeError, "In-place abs is not supported for complex tensors"),
    ("bitwise_not", NotImplementedError, "\"bitwise_not_cpu\" not implemented for 'ComplexFloat'"),
]


@pytest.mark.parametrize(("name", "error", "words"), ORDERS, ids=[case[0] for case in ORDERS])
def test_what_has_no_meaning_is_refused(name: str, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        getattr(rgrad.tensor([1j]), name)()


PAIRS: list[tuple[str, Any, str]] = [
    *(
        (name, NotImplementedError, f"\"{name}_cpu\" not implemented for 'ComplexFloat'")
        for name in ("lt", "le", "gt", "ge")
    ),
    *(
        (name, RuntimeError, f"{name} not implemented for complex tensors")
        for name in ("maximum", "minimum", "fmax", "fmin")
    ),
    *(
        (name, NotImplementedError, f'"{name}_cpu" not implemented')
        for name in ("remainder", "fmod", "gcd", "nextafter")
    ),
    ("floor_divide", NotImplementedError, '"div_floor_cpu" not implemented'),
    ("heaviside", RuntimeError, "heaviside is not yet implemented for complex tensors"),
    ("clamp_min", NotImplementedError, "clamp is not supported for complex types"),
]


@pytest.mark.parametrize(("name", "error", "words"), PAIRS, ids=[case[0] for case in PAIRS])
def test_what_orders_pairs_is_refused(name: str, error: Any, words: str) -> None:
    z = rgrad.tensor([1j])
    with pytest.raises(error, match=words):
        getattr(z, name)(z if name != "clamp_min" else 0)


def test_comparisons_for_equality() -> None:
    z = rgrad.tensor([1 + 2j, 3])
    assert (z == 1 + 2j).tolist() == [True, False]
    assert (z != 3).tolist() == [True, False]
    assert (rgrad.tensor([1, 3]) == 1 + 2j).tolist() == [False, False]
    assert z.clone().eq_(3).tolist() == [0, 1]
    assert isinstance(hash(z), int)
