"""Every pointwise operation on the device beside the CPU: special values, dtypes, layouts, gradients of both orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import devices
import dtypes
import rgrad
from op_table import BY_NAME, OPS
from rgrad import Tensor, _core

Function = Callable[..., Any]
NAN, INF = float("nan"), float("inf")

# No subnormals: devices may flush them.
SPECIAL = np.float32(
    [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 7, -10, INF, -INF, NAN, 3.4e38, -3.4e38, 1.2e-38, -1.2e-38]
    + [8388607.5, 16777216, 1e10, -1e10, 88.7, 88.8, -87.3, 1e-7, -1e-7, 0.99999994, 1.0000001, -0.99999994, 3.1415927]
)


def names(text: str) -> list[str]:
    return text.split()


# Computed by the same IEEE operations on both devices, so the bits are the same.
EXACT = names(
    """
    mul floor_divide fmod remainder neg abs sign sgn copysign reciprocal square sqrt floor ceil trunc frac maximum
    minimum fmax fmin nan_to_num relu leaky_relu hardtanh threshold softshrink hardshrink eq ne lt le gt ge isnan
    isinf isfinite isposinf isneginf logical_and logical_or logical_xor logical_not addcmul_1 addcmul_0.5 addcdiv_1
    addcdiv_0.5 lerp lerp_tensor add sub rsub div true_divide div_floor div_trunc clamp clamp_min clamp_tensors where
    where_scalar masked_fill round add_alpha sub_alpha mse_loss_each x+c c+x x-c c-x x*c c*x x/c c/x x//c x%c c%x -x
    abs(x) x<c x==c c>=x
    """
)
# Of integers alone, so that they are not in the table of operations.
INTEGER = {
    "bitwise_and": 2,
    "bitwise_or": 2,
    "bitwise_xor": 2,
    "bitwise_not": 1,
    "bitwise_left_shift": 2,
    "bitwise_right_shift": 2,
}


def rows() -> Iterator[tuple[str, int, Function]]:
    """Of every operation of the table that works element by element: its name, number of operands, and call."""
    for op in OPS:
        if op.family in ("unary", "binary", "pointwise", "scalar", "activation") or op.name.endswith("_each"):
            samples = op.all_samples()
            params = list({repr(s.params): s.params for s in samples}.values())
            for p in params:
                label = ",".join(f"{k}={v}" for k, v in p.items())
                name = f"{op.name} {label}" if len(params) > 1 else op.name
                yield name, len(samples[0].args), lambda *xs, op=op, p=p: op.call(rgrad, *xs, **p)


FLOAT: dict[str, tuple[int, Function]] = {name: (arity, f) for name, arity, f in rows()}
CALLS = FLOAT | {name: (arity, getattr(rgrad, name)) for name, arity in INTEGER.items()}


def row_of(name: str) -> str:
    """The row of the table, without the numbers of one of its calls."""
    return name.partition(" ")[0]


def to_wgpu(t: Tensor) -> Tensor:
    return t.to("wgpu")


def grids(values: np.ndarray, arity: int) -> list[Tensor]:
    """Every combination of the values, as `arity` tensors; of three operands the third takes few."""
    if arity == 3:
        values = values[::2]
    return [rgrad.tensor(np.ascontiguousarray(g.ravel())) for g in np.meshgrid(*[values] * arity, indexing="ij")]


def close(got: Tensor, want: Tensor, ulps: float, label: str) -> None:
    """Equal up to units in the last place; nan where nan is wanted; what is subnormal may be 0."""
    assert got.device.type == "wgpu"
    assert (got.shape, got.dtype) == (want.shape, want.dtype), label
    a, b = dtypes.array(got), dtypes.array(want)
    if b.dtype.kind != "f":
        np.testing.assert_array_equal(a, b, err_msg=label)
        return
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=label)
    np.testing.assert_array_equal(np.isinf(a), np.isinf(b), err_msg=label)
    tiny = 1.2e-38 if b.dtype == np.float32 else 2.3e-308
    size = np.maximum(np.abs(b[np.isfinite(b)]), tiny, dtype=b.dtype)
    size = (size - np.nextafter(size, 0, dtype=b.dtype)).astype(np.float64)
    a, b = a[np.isfinite(b)].astype(np.float64), b[np.isfinite(b)].astype(np.float64)
    counted = np.abs(b) > tiny
    if flushed := got.dtype != rgrad.float64 and devices.flushes("wgpu"):
        # What a formula has made on the way may be taken for 0, too.
        counted &= np.abs(a - b) > tiny
    worst = np.max(np.abs(a - b) / size, initial=0.0, where=counted)
    assert worst <= ulps, f"{label}: {worst} units in the last place"
    assert np.all(np.abs(a - b) <= ulps * size + tiny), label
    if ulps == 0:
        signed = np.abs(b) > tiny if flushed else slice(None)
        np.testing.assert_array_equal(np.signbit(a[signed]), np.signbit(b[signed]), err_msg=label)


# Formulas of several functions lose more than one function does.
ULPS: dict[str, float] = {"gelu": 30, "gelu_tanh": 30, "mish": 30, "logaddexp": 40, "hypot": 4}
ULPS |= dict.fromkeys(("logit", "xlogy", "softplus", "logsigmoid"), 8)


def test_every_pointwise_row_is_in_the_table() -> None:
    """Under its own name, with a number or `_each` behind it, or as another name of one that is there."""
    there = {row_of(name) for name in CALLS}
    there |= {name.rpartition("_")[0] for name in there}
    # The host computes these: tests of special functions take the device, too.
    by_host = {"lgamma", "digamma", "igamma", "igammac", "erfinv", "i0"}
    left = set(_core.pointwise_names) - there - by_host

    def told(name: str) -> str:
        return getattr(_core, name).__doc__.partition("\n\n")[2]

    told_there = {told(name) for name in there if hasattr(_core, name)}
    assert {name for name in left if told(name) not in told_there} == set()
    assert set(EXACT) | set(ULPS) <= {row_of(name) for name in CALLS}


@pytest.mark.rotate("name")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOAT)
def test_special_values(name: str, dtype: str) -> None:
    arity, f = CALLS[name]
    xs = grids(SPECIAL.astype(dtype), arity)
    if name in ("rsqrt", "hardswish"):
        ulps = 2.0
    else:
        ulps = 0.0 if row_of(name) in EXACT else ULPS.get(row_of(name), 6.0)
    close(f(*map(to_wgpu, xs)), f(*xs), ulps, name)


ELEMENTARY = names(
    """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
    sigmoid sqrt rsqrt
    """
)


@pytest.mark.parametrize("name", [*ELEMENTARY, "pow", "atan2", "hypot", "div", "fmod"])
def test_accuracy_over_all_floats(name: str) -> None:
    """Beside the CPU's float64; random bits reach every exponent."""
    rng = np.random.default_rng(7)
    arity, f = CALLS[name]
    xs = []
    for _ in range(arity):
        bits = rng.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
        near = rng.normal(size=20000).astype(np.float32) * rng.choice(np.float32([0.01, 1, 8, 80]), 20000)
        x = np.concatenate([bits, near])
        xs.append(np.where(np.isnan(x) | (np.abs(x) < 1.2e-38), np.float32(0.75), x))
    got = f(*[to_wgpu(rgrad.tensor(x)) for x in xs])
    want = f(*[rgrad.tensor(x.astype(np.float64)) for x in xs]).to(rgrad.float32)
    exact = name in ("sqrt", "div", "fmod")
    close(got, want, 0.0 if exact else 4.0, name)


@pytest.mark.needs("float64")
@pytest.mark.parametrize("name", [*ELEMENTARY, "pow", "atan2", "hypot", "div", "fmod", "remainder"])
def test_accuracy_of_float64(name: str) -> None:
    """Beside the CPU's, which is within one unit itself; random bits reach every exponent."""
    rng = np.random.default_rng(8)
    arity, f = CALLS[name]
    xs = []
    for _ in range(arity):
        bits = rng.integers(0, 2**64, 10000, dtype=np.uint64).view(np.float64)
        near = rng.normal(size=10000) * rng.choice([0.01, 1, 8, 500], 10000)
        x = np.concatenate([bits, near])
        xs.append(np.where(np.isnan(x) | (np.abs(x) < 2.3e-308), 0.75, x))
    tensors = [rgrad.tensor(x) for x in xs]
    close(f(*map(to_wgpu, tensors)), f(*tensors), 0.0 if name in EXACT else 3.0, name)


EXTREMES = {
    "int64": [
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        -7,
        2**31,
        -(2**31),
        2**32,
        2**32 + 5,
        -(2**40) - 3,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
    ],
    "int32": [0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 255, 256, 65537, 2**31 - 1, -(2**31)],
    "uint8": [0, 1, 2, 3, 7, 8, 9, 16, 127, 128, 200, 255],
    "int8": [0, 1, -1, 2, -2, 3, 7, -7, 8, 15, 16, 64, -100, 127, -128],
    "int16": [0, 1, -1, 2, -2, 3, 7, -7, 15, 16, 127, 128, 255, 256, 2**15 - 1, -(2**15)],
    "bool": [0, 1],
}


@pytest.mark.rotate("name", take=2)
@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("name", CALLS)
def test_integers(name: str, dtype: str) -> None:
    """Integers wrap on both devices alike; what the CPU refuses is refused with the same words."""
    arity, f = CALLS[name]
    xs = grids(np.array(EXTREMES[dtype]).astype(dtype), arity)
    if "div" in name or name in ("fmod", "remainder", "c%x"):
        xs[-1] = rgrad.where(xs[-1] == 0, rgrad.ones_like(xs[-1]), xs[-1])
    if name == "pow":
        xs[-1] = xs[-1].abs() % 70 if dtype != "bool" else xs[-1]
    try:
        want = f(*xs)
    except (RuntimeError, TypeError) as e:
        refused = e
    else:
        refused = None
    if refused is not None:
        with pytest.raises(type(refused), match=re.escape(str(refused))):
            f(*map(to_wgpu, xs))
        return
    close(
        f(*map(to_wgpu, xs)), want, 0.0 if row_of(name) in EXACT else ULPS.get(row_of(name), 6.0), f"{name} of {dtype}"
    )


@pytest.mark.parametrize("dtype", dtypes.INTEGERS)
def test_integers_divided_by_zero_are_refused(dtype: str) -> None:
    x = rgrad.tensor([0, 1, 7], dtype=getattr(rgrad, dtype), device="wgpu")
    for f in (rgrad.floor_divide, rgrad.fmod, rgrad.remainder):
        out = f(x, rgrad.tensor([3, 0, 2], dtype=x.dtype, device="wgpu"))
        with pytest.raises(rgrad.RgradError, match="ZeroDivisionError") as caught:
            rgrad.wgpu.synchronize()
        assert "test_wgpu_rows.py" in "".join(caught.value.__notes__)
        assert out.tolist()[1] == 0
        for zero in (0, rgrad.tensor(0, dtype=x.dtype)):
            with pytest.raises(rgrad.RgradError, match="ZeroDivisionError"):
                f(x, zero)
        f(x, rgrad.zeros(3, 1, dtype=x.dtype, device="wgpu")[::2].expand(2, 3))
        with pytest.raises(rgrad.RgradError, match="ZeroDivisionError"):
            rgrad.wgpu.synchronize()
        assert f(x, rgrad.ones_like(x)).shape == (3,)
        assert f(x, x + 1).device.type == "wgpu"


def test_dividing_integers_does_not_wait() -> None:
    x = rgrad.arange(5, device="wgpu")
    rgrad.wgpu.synchronize()
    before = rgrad._core._wgpu_counts()[0]
    for y in (x // (x + 1), x % (x + 1), x.remainder_(x + 1)):
        assert y.is_wgpu
    assert rgrad._core._wgpu_counts()[0] == before
    assert x.tolist() == [0, 1, 2, 3, 4]


def layouts() -> list[Function]:
    """Ways to see a tensor of shape (6, 8, 10); each gives the shape (3, 4, 5)."""
    return [
        lambda t: t[:3, :4, :5],
        lambda t: t[::2, ::2, ::2],
        lambda t: t[3:, 4:, 5:].clone(),
        lambda t: t.permute(2, 0, 1)[:3, :4, :5],
        lambda t: t.permute(1, 2, 0)[1:4, 2:6, 1:],
        lambda t: t[:1, :1, :5].expand(3, 4, 5),
        lambda t: t[2, 3, 4].expand(3, 4, 5),
        lambda t: t[:, 1:2, 1:2][:3].expand(3, 4, 5),
        lambda t: t.flatten()[7:67].view(3, 4, 5),
    ]


@pytest.mark.rotate("i", take=4)
@pytest.mark.parametrize(("i", "j"), list(product(range(9), range(9))))
def test_layouts(i: int, j: int) -> None:
    rng = np.random.default_rng(i)
    a, b = (rgrad.tensor(rng.normal(size=(6, 8, 10)).astype(np.float32)) for _ in range(2))
    v, w = layouts()[i], layouts()[j]
    close(v(to_wgpu(a)) * w(to_wgpu(b)), v(a) * w(b), 0, "mul")
    # Written through a view: what lies beside it stays.
    out, there = a.clone(), to_wgpu(a)
    if i not in (5, 6, 7):
        v(out).copy_(w(b))
        v(there).copy_(w(to_wgpu(b)))
        v(out).add_(w(b), alpha=2)
        v(there).add_(w(to_wgpu(b)), alpha=2)
        close(there, out, 0, "add_")


def test_many_dimensions() -> None:
    x = rgrad.arange(2**9, dtype=rgrad.float32).view(*[2] * 9)
    y = x.permute(8, 0, 6, 2, 4, 1, 5, 7, 3)
    gx = to_wgpu(x)
    gy = gx.permute(8, 0, 6, 2, 4, 1, 5, 7, 3)
    close(gx - gy, x - y, 0, "sub")
    close(gy.contiguous(), y.contiguous(), 0, "contiguous")


def test_broadcasting_of_every_operand() -> None:
    a, b, c = rgrad.randn(4, 1, 5), rgrad.randn(3, 1), rgrad.randn(5)
    close(rgrad.addcmul(to_wgpu(a), to_wgpu(b), to_wgpu(c)), rgrad.addcmul(a, b, c), 0, "addcmul")
    assert (to_wgpu(rgrad.empty(0, 3)) + to_wgpu(c[:3])).shape == (0, 3)


def test_numbers_are_operands() -> None:
    x = rgrad.tensor(SPECIAL)
    for number in (0.0, -0.0, NAN, INF, -INF, 1e-30, 3, True, 2**40):
        close(to_wgpu(x) * number, x * number, 0, f"mul {number}")
        close(number + to_wgpu(x), number + x, 0, f"add {number}")
        close(to_wgpu(x) == number, x == number, 0, f"eq {number}")
    i = rgrad.tensor([1, -5, 2**40])
    close(to_wgpu(i) + 2**35, i + 2**35, 0, "int64 and a number")
    close(to_wgpu(i) / 3, i / 3, 0, "int64 / 3")


@pytest.mark.parametrize(("left", "right"), list(product(dtypes.ON_WGPU, repeat=2)))
def test_operands_of_different_dtypes(left: str, right: str) -> None:
    a = rgrad.tensor([0, 1, 2, 250]).to(getattr(rgrad, left))
    b = rgrad.tensor([3, 1, 0, 7]).to(getattr(rgrad, right))
    for f in (rgrad.add, rgrad.mul, rgrad.maximum, rgrad.lt, rgrad.logical_xor):
        close(f(to_wgpu(a), to_wgpu(b)), f(a, b), 0, f"{f.__name__} {left} {right}")
    close(rgrad.where(to_wgpu(a) > 1, to_wgpu(a), to_wgpu(b)), rgrad.where(a > 1, a, b), 0, "where")


def test_in_place_on_its_own_operand() -> None:
    x = rgrad.randn(5, 5)
    y = to_wgpu(x)
    x.mul_(x)
    y.mul_(y)
    x.sub_(x.clone().t())
    y.sub_(y.clone().t())
    close(y, x, 0, "in place")
    x.copy_(x.clone().t())
    y.copy_(y.t())
    close(y, x, 0, "copy of its own transpose")


@pytest.mark.parametrize(("source", "target"), list(product(dtypes.ON_WGPU, repeat=2)))
def test_conversions(source: str, target: str) -> None:
    is_float = getattr(rgrad, source).is_floating_point
    values = SPECIAL if is_float else np.array(EXTREMES[source]).astype(source)
    more = np.float32([2.0**31, -(2.0**31), 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 300.7, -1.9, 4294967296.0, 1e20])
    x = dtypes.tensor(np.concatenate([values, more]) if is_float else values, source)
    to = getattr(rgrad, target)
    close(to_wgpu(x).to(to), x.to(to), 0, f"{source} to {target}")
    wide = x.repeat(3, 1).t()[1:]
    close(to_wgpu(x).repeat(3, 1).t()[1:].to(to), wide.to(to), 0, f"strided {source} to {target}")


def test_large_int64_become_the_nearest_float() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**63), 2**63 - 1, 5000) >> rng.integers(0, 62, 5000)
    got = rgrad.tensor(x, device="wgpu").to(rgrad.float32)
    np.testing.assert_array_equal(got.cpu().numpy(), x.astype(np.float32))


def test_fills() -> None:
    for value, dtype in (
        (NAN, "float32"),
        (-INF, "float32"),
        (-0.0, "float32"),
        (-(2**63), "int64"),
        (255, "uint8"),
        (-128, "int8"),
        (-(2**15), "int16"),
        (True, "bool"),
    ):
        x = rgrad.zeros(3, 4, dtype=getattr(rgrad, dtype))
        y = to_wgpu(x)
        x[:, 1::2].fill_(value)
        y[:, 1::2].fill_(value)
        close(y, x, 0, f"fill {value}")


def test_more_workgroups_than_one_dimension_has() -> None:
    n = 65535 * 256 + 1000
    x = rgrad.full((n,), 2.0, device="wgpu")
    x[-1] = 5.0
    y = x * 3
    assert y[[0, n // 2, n - 2, n - 1]].tolist() == [6.0, 6.0, 6.0, 15.0]


@pytest.mark.rotate("row", take=2)
@pytest.mark.parametrize(("row", "name"), [(row_of(n), n) for n in FLOAT if BY_NAME[row_of(n)].grad != "none"])
def test_gradients_of_first_and_second_order(row: str, name: str) -> None:
    """At smooth points, at zeros and at nan and infinities: what the CPU has."""
    arity, f = CALLS[name]
    rng = np.random.default_rng(5)
    edges = np.float32([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, NAN, 30.0, -30.0])
    values = []
    for _ in range(arity):
        parts = [rng.uniform(0.1, 0.9, 40), rng.uniform(-3, 3, 40), rng.permutation(edges)]
        values.append(np.concatenate(parts).astype(np.float32))

    def run(device: str) -> list[Tensor]:
        xs = [rgrad.tensor(v).to(device).requires_grad_() for v in values]
        y = f(*xs)
        if not y.requires_grad:
            return []
        weight = rgrad.linspace(0.5, 2.0, y.numel()).to(device)
        first = rgrad.autograd.grad(y, xs, weight, create_graph=True, allow_unused=True)
        out = [g for g in first if g is not None]
        for g in [g for g in out if g.requires_grad]:
            out += [
                h for h in rgrad.autograd.grad(g, xs, weight, retain_graph=True, allow_unused=True) if h is not None
            ]
        return out

    got, want = run("wgpu"), run("cpu")
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        x, y = a.detach().cpu().numpy(), b.detach().numpy()
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5, equal_nan=True, err_msg=name)


@pytest.mark.needs("float64")
def test_float64_arithmetic_is_the_cpus() -> None:
    rng = np.random.default_rng(2)
    a, b = (rgrad.tensor(rng.normal(size=1000) * 10.0 ** rng.integers(-200, 200, 1000)) for _ in range(2))
    a[:3] = rgrad.tensor([NAN, INF, -0.0])
    for f in (rgrad.add, rgrad.sub, rgrad.mul, rgrad.div, rgrad.maximum, rgrad.fmin, rgrad.lt, rgrad.eq, rgrad.ne):
        got, want = f(to_wgpu(a), to_wgpu(b)).cpu(), f(a, b)
        np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=f.__name__)
    for f in (
        rgrad.isnan,
        rgrad.isinf,
        rgrad.sqrt,
        rgrad.floor,
        rgrad.round,
        rgrad.sign,
        rgrad.relu,
        rgrad.logical_not,
    ):
        np.testing.assert_array_equal(f(to_wgpu(a)).cpu().numpy(), f(a).numpy(), err_msg=f.__name__)
    for number in (0.1, -1e-300, 1e300, INF, -INF, NAN, -0.0, 5e-324 * 2**52):
        got, want = (to_wgpu(a) * number).cpu(), a * number
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=0, atol=1e-307, equal_nan=True)
        np.testing.assert_array_equal(
            rgrad.full((2,), number, dtype=rgrad.float64, device="wgpu").cpu().numpy(), [number] * 2
        )
    i = rgrad.tensor([0, 1, -1, 2**53 + 2, -(2**62), 2**63 - 1])
    assert to_wgpu(i).to(rgrad.float64).cpu().equal(i.to(rgrad.float64))
    x = rgrad.tensor([0.0, -1.9, 1e10, -3e18, 1e19, NAN, INF, 4294967296.5], dtype=rgrad.float64)
    for dtype in dtypes.of(dtypes.ON_WGPU):
        here, there = dtypes.array(x.to(dtype)), dtypes.array(to_wgpu(x).to(dtype))
        np.testing.assert_array_equal(there, here, err_msg=str(dtype))
