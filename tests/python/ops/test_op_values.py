"""Values of every operation against NumPy and SciPy: layouts, dtypes, special values, in-place and out= variants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import devices
import dtypes
import rgrad
import rotation
from op_kit import Op, Sample, as_tuple, leaves, to_numpy, told, views
from op_table import BY_NAME, OPS, rows
from places import DATA

pytestmark = pytest.mark.usefixtures("device")

# On wgpu floats are float32 for the most part; tests of float64 there are further down.
FLOATS = ["float32", pytest.param("float64", marks=pytest.mark.cpu_only)]
WORKING = {"cpu": "float64", "wgpu": "float32"}
TOLERANCE = {"float32": 2e-6, "float64": 4e-15}


def compare(got: Any, want: Any, dtype: str, factor: float) -> None:
    outs, refs = as_tuple(got), as_tuple(want)
    assert len(outs) == len(refs)
    for o, r in zip(outs, refs, strict=True):
        ref = np.asarray(r)
        assert tuple(o.shape) == ref.shape
        tol = TOLERANCE[dtype] * factor
        value = to_numpy(o)
        assert value.dtype == (np.dtype(dtype) if ref.dtype.kind == "f" else ref.dtype)
        np.testing.assert_allclose(value, ref, rtol=tol, atol=tol, equal_nan=True)


EACH = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
IGNORE = pytest.mark.filterwarnings("ignore:.*(divide by zero|invalid value|empty slice|All-NaN).*:RuntimeWarning")


def check_values(op: Op, sample: Sample, dtype: str, factor: float = 4) -> None:
    """Beside the reference, which runs in float64 on the values as rounded to `dtype`; the inputs stay as they were."""
    rounded = Sample(tuple(a.cast(dtype) for a in sample.args), sample.params)
    assert op.ref is not None
    want = op.ref(*[a.cast("float64").array() for a in rounded.args], **sample.params)
    leaf = leaves(rgrad, rounded)
    versions = [t._version for t in leaf]
    out = as_tuple(op.call(rgrad, *views(rounded, leaf), **sample.params))
    result = "float64" if op.name == "to_double" else dtype
    compare(out if len(out) > 1 or isinstance(want, tuple) else out[0], want, result, factor * op.tol)
    for t, a, v in zip(leaf, rounded.args, versions, strict=True):
        assert t._version == v
        if not t.is_wgpu:
            np.testing.assert_array_equal(t.numpy(), a.base)


@IGNORE
@EACH
def test_values(op: Op, device: str) -> None:
    """Half of the samples and dtypes; on wgpu a third, in float32."""
    dtypes = ("float32", "float64") if device == "cpu" else ("float32",)
    combinations = [(sample, dtype) for sample in op.all_samples() for dtype in dtypes]
    take = -(-len(combinations) // (2 if device == "cpu" else 3))
    for sample, dtype in rotation.some(combinations, take, f"values {op.name} on {device}"):
        with told(op, sample, dtype):
            check_values(op, sample, dtype)


@pytest.mark.wgpu_only
@pytest.mark.needs("float64")
@IGNORE
@EACH
def test_float64_on_wgpu(op: Op, device: str) -> None:
    """One sample of every row."""
    for sample in rotation.some(op.all_samples(), 1, f"values {op.name} of float64 on wgpu"):
        with told(op, sample, "float64"):
            check_values(op, sample, "float64", 16)


# Rows that wait for the device, once: the size of the result depends on values, or a value decides what is done.
READS_BACK = {
    *("masked_select", "getitem_mask", "getitem_mask0", "setitem_mask", "setitem_mask0", "setitem_mask_scalar"),
    *("setitem_mask0_scalar", "unique", "unique_consecutive", "median", "nanmedian", "nanmedian_with_nan"),
    *("quantile", "nanquantile", "quantile_with_nan", "nanquantile_with_nan"),
}


@pytest.mark.wgpu_only
@EACH
def test_work_stays_on_wgpu(op: Op, device: str) -> None:
    """Results are there, and nothing is submitted, so nothing was read back to be computed elsewhere."""
    most = 0
    for sample in op.all_samples():
        inputs = views(sample, leaves(rgrad, sample, "float32"))
        rgrad.wgpu.synchronize()
        before = rgrad._core._wgpu_counts()[0]
        for out in as_tuple(op.call(rgrad, *inputs, **sample.params)):
            assert out.is_wgpu
        most = max(most, rgrad._core._wgpu_counts()[0] - before)
    assert most == (1 if op.name in READS_BACK else 0)


# --- special values ----------------------------------------------------------------------------------

SPECIAL = {
    "float32": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-45, -1e-45, 1e-38, 1e38, -1e38, 88.0, -88.0, 1e5, -1e5]
    + [12345.678, np.inf, -np.inf, np.nan, 3.4028235e38, 1e-7, 16777217.0, 0.49999997],
    "float64": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 5e-324, -5e-324, 1e-308, 1e308, -1e308, 709.0, -709.0, 1e10]
    + [
        -1e10,
        12345.678,
        np.inf,
        -np.inf,
        np.nan,
        1.7976931348623157e308,
        1e-17,
        9007199254740993.0,
        0.49999999999999994,
    ],
}
ULPS = {"erf": 8, "erfc": 64, "sigmoid": 8}  # of the others: 4


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", rows("unary"))
def test_special_values(op: Op, dtype: str) -> None:
    """Infinities, nan, signed zeros, subnormals and large arguments, each alone and inside a long vector."""
    x = np.array(SPECIAL[dtype], dtype)
    exact = op.ref(x.astype(np.longdouble if op.name not in ("erf", "erfc", "sigmoid") else np.float64))
    want = np.asarray(exact).astype(dtype if exact.dtype.kind == "f" else exact.dtype)
    if devices.flushes(rgrad.get_default_device().type):
        kept = ~(devices.subnormal(x) | devices.subnormal(want))
        x, want = x[kept], want[kept]
    long = op.call(rgrad, rgrad.tensor(np.tile(x, 8))).cpu().numpy().reshape(8, -1)
    single = np.array([op.call(rgrad, rgrad.tensor(v)).item() for v in x], want.dtype)
    for got in (*long, single):
        np.testing.assert_array_equal(np.isnan(got.astype("f8")), np.isnan(want.astype("f8")))
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        ok = ~np.isnan(want)
        zero = ok & (want == 0)
        if op.name not in ("frac", "sign", "relu"):  # PyTorch leaves the sign of these zeros open
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
        tiny = np.finfo(want.dtype).tiny
        with np.errstate(over="ignore"):
            spacing = np.spacing(np.maximum(np.abs(want[ok]), tiny))
        finite = np.isfinite(want[ok])
        np.testing.assert_array_equal(got[ok][~finite], want[ok][~finite])
        error = np.abs(got[ok][finite].astype(np.longdouble) - want[ok][finite].astype(np.longdouble))
        far = error > ULPS.get(op.name, 4) * spacing[finite]
        assert not far.any(), (x[ok][finite][far], got[ok][finite][far])


PAIRS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e38]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "pow",
    "atan2",
    "maximum",
    "minimum",
    "fmod",
    "remainder",
    "hypot",
    "logaddexp",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "floor_divide",
]


def reference(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if name == "remainder":  # the sign follows the divisor; an infinite divisor of the other sign is returned
        r = np.fmod(x, y)
        return np.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)
    return np.asarray(BY_NAME[name].ref(x, y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_special_pairs(name: str, dtype: str) -> None:
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(PAIRS, PAIRS))
    want = reference(name, x, y)
    if name in ("fmod", "remainder"):  # a huge quotient: exact for C, nan for vectorised code
        huge = np.abs(x) > 1e6 * np.abs(y)
        x, y, want = x[~huge], y[~huge], want[~huge]
    if devices.flushes(rgrad.get_default_device().type):
        kept = ~devices.subnormal(want)
        x, y, want = x[kept], y[kept], want[kept]
    got = getattr(rgrad, name)(rgrad.tensor(x), rgrad.tensor(y)).cpu().numpy()
    assert got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "float32" else 1e-14, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("sigmoid", -100.0, 3.720075976020836e-44),
        ("sigmoid", -700.0, 9.859676543759770e-305),
        ("expm1", 1e-15, 1.0000000000000005e-15),
        ("log1p", 1e-15, 9.999999999999995e-16),
        ("sinh", 1e-12, 1e-12),
        ("sin", 1e8, 0.931639027109726),
        ("cos", 1e8, -0.3633850893556905),
        ("tan", 1e8, -2.5637789067283774),
        ("asinh", 1e-10, 1e-10),
        ("asinh", -1e10, -23.718998110500402),
        ("atanh", 1e-10, 1e-10),
        ("acosh", 1e200, 461.2101657793691),
        ("erfc", 10.0, 2.088487583762545e-45),
        ("log", 5e-324, -744.4400719213812),
        ("exp", -745.0, 5e-324),
        ("hypot", 1e200, 1.4142135623730951e200),
        ("logaddexp", 1000.0, 1000.6931471805599),
    ],
)
def test_accuracy_where_naive_formulas_fail(name: str, x: float, want: float) -> None:
    t = rgrad.tensor(x, dtype=rgrad.float64)
    f = getattr(rgrad, name)
    got = (f(t, t) if name in ("hypot", "logaddexp") else f(t)).item()
    assert got == pytest.approx(want, rel=1e-14, abs=0)


# --- dtypes ------------------------------------------------------------------------------------------

PROMOTION = json.loads((DATA / "promotion.json").read_text())
BY_KIND = {
    "tensor": lambda d: rgrad.ones(2, dtype=getattr(rgrad, d)),
    "0-d": lambda d: rgrad.ones((), dtype=getattr(rgrad, d)),
    "number": lambda d: {"bool": True, "int": 1, "float": 1.0}[d],
}


def outcome(f: Any) -> str:
    """The result's dtype, or the type of the error."""
    try:
        out = f()
    except Exception as error:
        kinds = (NotImplementedError, IndexError, TypeError, ValueError, RuntimeError)
        return next(k.__name__ for k in kinds if isinstance(error, k))
    return ",".join(str(o.dtype).split(".")[-1] for o in as_tuple(out))


def wrong_of(table: dict[str, str], call: Callable[[str], Any], device: str, key: str) -> dict[str, str]:
    """The entries of a table of result types that are not so; of those on wgpu a third is tried."""
    entries = list(table.items())
    if device != "cpu":
        if devices.widest(device) != rgrad.float64:
            entries = [(at, want) for at, want in entries if "float64" not in at + want]
        entries = rotation.some(entries, -(-len(entries) // 3), key)
    found = {at: (outcome(lambda at=at: call(at)), want) for at, want in entries}
    return {at: f"{got}, expected {want}" for at, (got, want) in found.items() if not agrees(got, want)}


def agrees(got: str, want: str) -> bool:
    """An error must be caught by who catches PyTorch's; what PyTorch has no kernel for may be computed."""
    if want == "NotImplementedError":
        return got in dtypes.ALL or got == want
    return got == want or (got, want) == ("NotImplementedError", "RuntimeError")


def operand(key: str) -> Any:
    kind, dtype = key.split(":")
    return BY_KIND[kind](dtype)


@pytest.mark.parametrize("name", PROMOTION["binary"])
def test_promotion_of_two(name: str, device: str) -> None:
    def call(pair: str) -> Any:
        a, b = pair.split(" ")
        return getattr(rgrad, name)(operand(a), operand(b))

    assert not wrong_of(PROMOTION["binary"][name], call, device, f"promotion of two {name}")


@pytest.mark.parametrize("name", PROMOTION["unary"])
def test_promotion_of_one(name: str, device: str) -> None:
    def call(dtype: str) -> Any:
        return eval(name, {"T": rgrad, "x": rgrad.ones((2, 2), dtype=getattr(rgrad, dtype))})

    assert not wrong_of(PROMOTION["unary"][name], call, device, f"promotion of one {name}")


@pytest.mark.parametrize("name", PROMOTION["inplace"])
def test_promotion_in_place(name: str, device: str) -> None:
    def call(pair: str) -> Any:
        a, b = pair.split(" ")
        return getattr(operand(a), name)(operand(b))

    assert not wrong_of(PROMOTION["inplace"][name], call, device, f"promotion in place {name}")


@pytest.mark.parametrize("a", dtypes.ALL)
def test_result_type_and_promote_types(a: str) -> None:
    def name(f: Callable[[], Any]) -> str:
        try:
            return str(f()).rpartition(".")[2]
        except RuntimeError:
            return "RuntimeError"

    for kind in ("tensor", "0-d"):
        for number, value in (("bool", True), ("int", 1), ("float", 1.0), ("complex", 1j)):
            x = rgrad.ones(1 if kind == "tensor" else (), dtype=getattr(rgrad, a), device="cpu")
            assert (
                name(lambda x=x, v=value: rgrad.result_type(x, v)) == PROMOTION["with_numbers"][f"{kind}:{a} {number}"]
            )
    for b in dtypes.ALL:
        want = PROMOTION["types"][f"{a} {b}"]
        assert name(lambda b=b: rgrad.promote_types(getattr(rgrad, a), getattr(rgrad, b))) == want
        x, y = (rgrad.ones(1, dtype=getattr(rgrad, d), device="cpu") for d in (a, b))
        assert name(lambda x=x, y=y: rgrad.result_type(x, y)) == want
        assert name(lambda x=x, y=y: rgrad.result_type(x, y[0])) == PROMOTION["with_0-d"][f"{a} {b}"]
        assert rgrad.can_cast(getattr(rgrad, a), getattr(rgrad, b)) == PROMOTION["can_cast"][f"{a} {b}"]


# --- integers ----------------------------------------------------------------------------------------

INTS = np.array([-7, -2, -1, 0, 1, 2, 3, 7])


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
def test_integer_arithmetic_wraps(name: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    x, y = (
        a.reshape(-1).astype(dtype) for a in np.meshgrid([info.min, info.max, 1, 2, 5], [info.max, 1, 3, info.min, 7])
    )
    numpy_name = {"sub": "subtract", "mul": "multiply"}.get(name, name)
    with np.errstate(over="ignore"):
        want = getattr(np, numpy_name)(x, y)
    got = getattr(rgrad, name)(rgrad.tensor(x), rgrad.tensor(y))
    np.testing.assert_array_equal(got.cpu().numpy(), want)
    assert got.cpu().numpy().dtype == want.dtype


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", *FLOATS])
def test_division_and_remainder_signs(dtype: str) -> None:
    x, y = (a.reshape(-1) for a in np.meshgrid(INTS, INTS[INTS != 0]))
    a, b = rgrad.tensor(x.astype(dtype)), rgrad.tensor(y.astype(dtype))
    np.testing.assert_array_equal(rgrad.remainder(a, b).cpu().numpy(), np.mod(x, y))
    np.testing.assert_array_equal((a % b).cpu().numpy(), np.mod(x, y))
    np.testing.assert_array_equal(rgrad.fmod(a, b).cpu().numpy(), np.fmod(x, y))
    np.testing.assert_array_equal((a // b).cpu().numpy(), x // y)
    np.testing.assert_array_equal(rgrad.div(a, b, rounding_mode="floor").cpu().numpy(), x // y)
    np.testing.assert_array_equal(rgrad.div(a, b, rounding_mode="trunc").cpu().numpy(), np.trunc(x / y))
    np.testing.assert_allclose((a / b).cpu().numpy(), (x / y).astype("f4"), rtol=1e-6)


def test_integer_division_by_zero_is_an_error_and_changes_nothing() -> None:
    x = rgrad.tensor([1, 2, 3])
    z = rgrad.tensor([1, 0, 1])
    for f in (rgrad.remainder, rgrad.fmod, rgrad.floor_divide):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            f(x, z).tolist()
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            f(x, 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.remainder_(z).tolist()
    assert z.tolist() == [1, 0, 1]
    if not x.is_wgpu:
        assert x.tolist() == [1, 2, 3]


def test_integer_reductions_accumulate_in_int64() -> None:
    for dtype in (*dtypes.INTEGERS, "bool"):
        x = rgrad.ones(300, dtype=getattr(rgrad, dtype))
        assert x.sum().dtype == rgrad.int64
        assert x.sum().item() == 300
        assert x.cumsum(0)[-1].item() == 300
        assert x.prod().dtype == rgrad.int64
    for dtype in (rgrad.float32, devices.real()):
        assert rgrad.ones(3, dtype=rgrad.int32).sum(dtype=dtype).dtype == dtype


def test_sum_into_integers_casts_first() -> None:
    assert rgrad.tensor([0.6, 0.6]).sum(dtype=rgrad.int64).item() == 0


def test_integers_are_close_by_their_difference(device: str) -> None:
    """Not by those of float32, where an adapter has no float64."""
    a = rgrad.tensor([2**24 + 1, -(2**63), 2**40, 5, 7, 2**62])
    b = rgrad.tensor([2**24, 2**63 - 1, 2**40 + 2**16 + 1, 6, 9, 2**62])
    assert rgrad.isclose(a, b, rtol=0, atol=1.0).tolist() == [True, False, False, True, False, True]
    assert rgrad.isclose(a, b, rtol=0, atol=0.5).tolist() == [False, False, False, False, False, True]
    assert rgrad.isclose(a, b, rtol=0, atol=7e4).tolist() == [True, False, True, True, True, True]
    assert rgrad.isclose(a, b, rtol=0.3, atol=0).tolist() == [True, False, True, True, True, True]


def test_lerp_of_two_dtypes_is_refused() -> None:
    with pytest.raises(RuntimeError, match="dtype"):
        rgrad.lerp(rgrad.ones(2), rgrad.ones(2, dtype=rgrad.float16), 0.5)


def test_bitwise_and_logic_operators() -> None:
    a, b = np.array([0b1100, 5, -1]), np.array([0b1010, 3, 7])
    x, y = rgrad.tensor(a), rgrad.tensor(b)
    assert (x & y).tolist() == (a & b).tolist()
    assert (x | y).tolist() == (a | b).tolist()
    assert (x ^ y).tolist() == (a ^ b).tolist()
    assert (~x).tolist() == (~a).tolist()
    m, n = rgrad.tensor([True, False]), rgrad.tensor([True, True])
    assert (m & n).tolist() == [True, False]
    assert (m | n).tolist() == [True, True]
    assert (m ^ n).tolist() == [False, True]
    assert (~m).tolist() == [False, True]
    assert (x & 1).tolist() == (a & 1).tolist()


def test_equal_and_allclose() -> None:
    x = rgrad.tensor([1.0, 2.0])
    assert rgrad.equal(x, x.clone())
    assert not rgrad.equal(x, rgrad.tensor([1.0, 2.0, 3.0]))
    assert rgrad.allclose(x, x + 1e-9)
    assert not rgrad.allclose(x, x + 1e-2)
    nan = rgrad.tensor([float("nan")])
    assert not rgrad.allclose(nan, nan)
    assert rgrad.allclose(nan, nan, equal_nan=True)


# --- in place, out=, methods --------------------------------------------------------------------------


def written(op: Op) -> list[Sample]:
    """The samples that an operation may write in place: no element is there twice, and the result is no larger."""
    found = []
    for sample in op.all_samples():
        shapes = [a.array().shape for a in sample.args]
        if sample.args[0].layout != "expanded" and np.broadcast_shapes(*shapes) == shapes[0]:
            found.append(sample)
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace], ids=lambda op: op.name)
def test_in_place_variant(op: Op, device: str) -> None:
    """The same values as out of place, the same object back, one step of the version counter; on wgpu three samples."""
    samples = written(op)
    for sample in samples if device == "cpu" else rotation.some(samples, 3, f"in place {op.name}"):
        with told(op, sample, WORKING[device]):
            first, *others = views(sample, leaves(rgrad, sample, WORKING[device]))
            want = op.call(rgrad, first, *others, **sample.params)
            if op.grad == "none":
                want = want.to(first.dtype)
            version = first._version
            back = getattr(first, op.inplace)(*others, **sample.params)
            assert back is first
            assert first._version == version + 1
            np.testing.assert_array_equal(first.cpu().numpy(), want.cpu().numpy())


@pytest.mark.parametrize("op", rows("unary", "binary"))
def test_method_is_the_function(op: Op, device: str) -> None:
    sample = op.all_samples()[3]
    first, *others = views(sample, leaves(rgrad, sample, WORKING[device]))
    got, want = getattr(first, op.name)(*others), op.call(rgrad, first, *others)
    np.testing.assert_array_equal(to_numpy(got), to_numpy(want))


MORE_IN_PLACE = {
    "masked_fill_": lambda T, x: (x > 0, 0.5),
    "scatter_": lambda T, x: (1, T.tensor([[0, 1], [2, 0]]), x[:, :2].clone()),
    "scatter_add_": lambda T, x: (1, T.tensor([[0, 0], [2, 0]]), x[:, :2].clone()),
    "index_add_": lambda T, x: (0, T.tensor([1, 1]), x.clone()),
    "tril_": lambda T, x: (-1,),
    "cumsum_": lambda T, x: (1,),
    "transpose_": lambda T, x: (0, 1),
    "unsqueeze_": lambda T, x: (1,),
    "squeeze_": lambda T, x: (),
    "t_": lambda T, x: (),
}


@pytest.mark.parametrize("name", MORE_IN_PLACE)
def test_other_in_place_variants(name: str) -> None:
    x = rgrad.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
    args = MORE_IN_PLACE[name](rgrad, x)
    want = getattr(x, name[:-1])(*args)
    assert getattr(x, name)(*args) is x
    assert x.stride() == want.stride()
    np.testing.assert_array_equal(x.cpu().numpy(), want.cpu().numpy())


def test_fill_zero_copy() -> None:
    x = rgrad.ones(2, 3)
    assert x.fill_(2.5) is x
    assert x.tolist() == [[2.5] * 3] * 2
    assert x.fill_(rgrad.tensor(4)).tolist() == [[4.0] * 3] * 2
    assert x.zero_().sum().item() == 0.0
    assert x.copy_(rgrad.tensor([1, 2, 3])).tolist() == [[1.0, 2.0, 3.0]] * 2
    assert x.t().copy_(x.clone().t() * 2).tolist() == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert x._version == 5


WITH_OUT = [
    op for op in OPS if op.family in ("unary", "binary") and op.name not in ("relu", "isnan", "isinf", "isfinite")
]


@pytest.mark.parametrize("op", WITH_OUT, ids=lambda op: op.name)
def test_out_argument(op: Op, device: str) -> None:
    """out= is filled and returned, in its own layout; a result with history is refused."""
    sample = op.all_samples()[3]
    xs = views(sample, leaves(rgrad, sample, WORKING[device]))
    want = op.call(rgrad, *xs)
    out = rgrad.zeros(tuple(reversed(want.shape)), dtype=want.dtype).permute(*reversed(range(want.dim())))
    assert getattr(rgrad, op.name)(*xs, out=out) is out
    np.testing.assert_array_equal(out.cpu().numpy(), want.cpu().numpy())
    if op.grad == "smooth":
        with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
            getattr(rgrad, op.name)(*[x.clone().requires_grad_() for x in xs], out=out)


def test_pairwise_sum_is_accurate() -> None:
    """A float32 sum of ten million equal terms keeps its digits."""
    x = rgrad.full((10_000_000,), 0.1)
    assert x.sum().item() == pytest.approx(1_000_000.0, rel=1e-5)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-5)


@pytest.mark.cpu_only
def test_norm_scales_and_logsumexp_is_stable() -> None:
    x = rgrad.tensor([1000.0, 1000.0], dtype=rgrad.float64)
    assert rgrad.logsumexp(x, 0).item() == pytest.approx(1000.0 + np.log(2.0), rel=1e-15)
    assert rgrad.logsumexp(rgrad.tensor([-float("inf")]), 0).item() == -np.inf
    assert rgrad.logsumexp(rgrad.tensor([float("inf"), 0.0]), 0).item() == np.inf


def test_nan_wins_in_maxima() -> None:
    x = rgrad.tensor([1.0, float("nan"), 3.0])
    assert np.isnan(x.max().item())
    assert np.isnan(x.amin().item())
    assert x.argmax().item() == 1
    assert np.isnan(rgrad.maximum(x, rgrad.zeros(3)).cpu().numpy()[1])
    assert np.isnan(x.clamp(0.0, 2.0).cpu().numpy()[1])


@pytest.mark.cpu_only
def test_erf_family_matches_scipy_over_the_whole_range() -> None:
    x = np.linspace(-30, 26, 20001)
    for name, f in (("erf", special.erf), ("erfc", special.erfc)):
        np.testing.assert_allclose(getattr(rgrad, name)(rgrad.tensor(x)).cpu().numpy(), f(x), rtol=3e-13, atol=1e-320)
