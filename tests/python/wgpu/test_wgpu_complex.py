"""Complex numbers on the device: values, special values, views, gradients and refusals beside the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor

Call = Callable[..., Any]

UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "square",
    "neg",
    "abs",
    "angle",
    "sgn",
    "conj_physical",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
]
BINARY = ["add", "sub", "mul", "div", "pow", "eq", "ne", "logical_and", "logical_or", "logical_xor"]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    return rgrad.from_numpy((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64))


def edges() -> np.ndarray:
    """All pairs of special parts, which arithmetic on complex numbers would not make."""
    parts = np.stack(np.meshgrid(EDGES, EDGES, indexing="ij"), -1).astype(np.float32)
    return np.ascontiguousarray(parts.reshape(-1, 2)).view(np.complex64).reshape(-1)


def array(t: Tensor) -> np.ndarray:
    return t.detach().cpu().resolve_conj().numpy()


def same(got: Tensor, want: Tensor, scale: float = 1e-5) -> None:
    """Equal in shape and dtype, and close beside the largest number that is finite."""
    assert got.device.type == "wgpu"
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    a, b = array(got), array(want)
    if a.dtype.kind in "bi":
        np.testing.assert_array_equal(a, b)
        return
    finite = np.abs(b[np.isfinite(b)])
    np.testing.assert_allclose(a, b, rtol=scale, atol=scale * float(finite.max(initial=1e-3)))


def check(call: Call, *inputs: Tensor, scale: float = 1e-5) -> None:
    """The call on the device is that on the CPU."""
    same(call(*(x.to("wgpu") for x in inputs)), call(*inputs), scale)


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    f = getattr(rgrad, name)
    z = numbers(257)
    check(f, z)
    check(f, z[3:70].clone() * 30, scale=3e-5)
    check(f, numbers(6, 7).t())
    check(f, numbers(0, 3))


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str) -> None:
    f = getattr(rgrad, name)
    z = rgrad.from_numpy(edges())
    got, want = array(f(z.to("wgpu"))), array(f(z))
    if got.dtype.kind == "b":
        np.testing.assert_array_equal(got, want)
        return
    for part in (np.real, np.imag):
        a, b = part(got), part(want)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(a)[b == 0], np.signbit(b)[b == 0])


@pytest.mark.parametrize("name", BINARY)
def test_pairs(name: str) -> None:
    f = getattr(rgrad, name)
    a, b = numbers(5, 40), numbers(40, seed=1)
    check(f, a, b)
    check(f, a, b.real.clone())
    check(f, b.imag.clone(), a)
    check(lambda x: f(x, 1.5 - 2j), a)
    check(lambda x: f(x, 2), a)
    check(f, a, a.clone())


def test_products_and_quotients_of_special_values() -> None:
    z = edges()
    a, b = rgrad.from_numpy(np.repeat(z, len(z))), rgrad.from_numpy(np.tile(z, len(z)))
    for f in (rgrad.mul, rgrad.div, rgrad.add, rgrad.sub, rgrad.eq):
        np.testing.assert_allclose(array(f(a.to("wgpu"), b.to("wgpu"))), array(f(a, b)), rtol=1e-5)


def test_quotients_and_sizes_over_the_whole_range() -> None:
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(-75, 75, (2, 500)))
    a, b = (size * np.exp(1j * rng.uniform(-3, 3, size.shape))).astype(np.complex64)
    keep = (np.abs(np.log(size[0] / size[1])) < 80) & (np.abs(np.log(size).sum(0)) < 80)
    x, y = rgrad.from_numpy(a[keep]), rgrad.from_numpy(b[keep])
    for f in (rgrad.div, rgrad.mul):
        got, want = array(f(x.to("wgpu"), y.to("wgpu"))), f(x.to(rgrad.complex128), y.to(rgrad.complex128)).numpy()
        assert (np.abs(got - want) < 1e-6 * np.abs(want)).all()
    for g in (rgrad.abs, rgrad.sqrt, rgrad.log, rgrad.sgn):
        got, want = array(g(x.to("wgpu"))), g(x.to(rgrad.complex128)).numpy()
        assert (np.abs(got - want) < 1e-6 * np.abs(want)).all()


CALLS: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    "sum": (lambda x: x.sum(), ((300, 20),)),
    "sum of a dimension": (lambda x: x.sum(0), ((300, 20),)),
    "sum of the last dimension": (lambda x: x.t().sum(-1, keepdim=True), ((300, 20),)),
    "sum of nothing": (lambda x: x.sum(0), ((0, 3),)),
    "sum of steps": (lambda x: (x * x + 1j).sum(1), ((40, 700),)),
    "long sum": (lambda x: x.sum(), ((300_000,),)),
    "mean": (lambda x: x.mean((0, 2)), ((4, 5, 6),)),
    "prod": (lambda x: x.prod(1), ((7, 9),)),
    "var": (lambda x: x.var(1), ((7, 9),)),
    "std": (lambda x: x.std(), ((7, 9),)),
    "norm": (lambda x: rgrad.linalg.vector_norm(x, dim=1), ((7, 9),)),
    "norm 1": (lambda x: rgrad.linalg.vector_norm(x, 1, dim=0), ((7, 9),)),
    "count_nonzero": (lambda x: (x * (x.real > 0)).count_nonzero(1), ((7, 9),)),
    "all": (lambda x: (x * (x.real > -1)).all(1), ((40, 3),)),
    "any": (lambda x: (x * (x.real > 1)).any(1), ((40, 3),)),
    "cumsum": (lambda x: x.cumsum(0), ((300, 5),)),
    "long cumsum": (lambda x: x.cumsum(-1), ((2, 5000),)),
    "cumsum of steps": (lambda x: (x * 2j).cumsum(-1), ((3, 100),)),
    "cumprod": (lambda x: x.sgn().cumprod(1), ((5, 300),)),
    "matmul": (lambda x, y: x @ y, ((33, 40), (40, 21))),
    "small matmul": (lambda x, y: x @ y, ((3, 4), (4, 2))),
    "large matmul": (lambda x, y: x @ y, ((150, 130), (130, 140))),
    "transposed matmul": (lambda x, y: x.mT @ y.mH, ((40, 33), (21, 40))),
    "bmm": (lambda x, y: rgrad.bmm(x, y), ((3, 12, 7), (3, 7, 11))),
    "matmul of a broadcast batch": (lambda x, y: x @ y, ((2, 1, 12, 7), (3, 7, 11))),
    "matmul without terms": (lambda x, y: x @ y, ((12, 0), (0, 11))),
    "mv": (lambda x, y: x @ y, ((50, 60), (60,))),
    "dot": (lambda x, y: rgrad.dot(x, y), ((60,), (60,))),
    "vdot": (lambda x, y: rgrad.vdot(x, y), ((60,), (60,))),
    "addmm": (lambda x, y, z: rgrad.addmm(z, x, y, beta=2, alpha=0.5), ((12, 13), (13, 14), (14,))),
    "einsum": (lambda x, y: rgrad.einsum("bij,bkj->bik", x, y), ((2, 9, 8), (2, 7, 8))),
    "outer": (lambda x, y: rgrad.outer(x, y), ((9,), (5,))),
    "kron": (lambda x, y: rgrad.kron(x, y), ((2, 3), (3, 2))),
    "lerp": (lambda x, y: rgrad.lerp(x, y, 0.3), ((9,), (9,))),
    "addcmul": (lambda x, y: rgrad.addcmul(x, x, y, value=2), ((9,), (9,))),
    "addcdiv": (lambda x, y: rgrad.addcdiv(x, x, y, value=2), ((9,), (9,))),
    "where": (lambda x, y: rgrad.where(x.real > y.real, x, y), ((40,), (40,))),
    "masked_fill": (lambda x: x.masked_fill(x.imag > 0, 2 - 1j), ((40,),)),
    "cat": (lambda x, y: rgrad.cat([x, y.t()], 1), ((3, 4), (5, 3))),
    "stack": (lambda x, y: rgrad.stack([x, y], 1), ((3, 4), (3, 4))),
    "flip": (lambda x: x.flip(0), ((3, 4),)),
    "roll": (lambda x: x.roll(2, 1), ((3, 4),)),
    "tril": (lambda x: x.tril(-1), ((2, 5, 5),)),
    "index": (lambda x: x[rgrad.tensor([2, 0, 2], device=x.device)], ((3, 4),)),
    "gather": (lambda x: x.gather(1, rgrad.tensor([[1], [0], [3]], device=x.device)), ((3, 4),)),
    "index_add": (
        lambda x, y: x.index_add(0, rgrad.tensor([1, 1], device=x.device), y, alpha=2),
        ((3, 4), (2, 4)),
    ),
    "many index_add": (
        lambda x, y: x.index_add(0, rgrad.arange(900, device=x.device) % 3, y),
        ((3, 4), (900, 4)),
    ),
    "index_put": (lambda x: x.index_put((rgrad.tensor([1], device=x.device),), x[:1] * 2), ((3, 4),)),
    "scatter": (lambda x, y: x.scatter(1, rgrad.tensor([[1], [0], [3]], device=x.device), y), ((3, 4), (3, 1))),
    "masked_select": (lambda x: x[x.real > 0], ((40,),)),
    "nonzero": (lambda x: (x * (x.real > 0)).nonzero(), ((40,),)),
    "repeat": (lambda x: x.repeat(2, 3), ((2, 3),)),
    "polar": (lambda x: rgrad.polar(x.abs(), x.imag), ((40,),)),
    "complex": (lambda x: rgrad.complex(x.imag, x.real), ((40,),)),
    "a long chain": (lambda x: ((x * 0.3 + 1j).exp() / (x + 9)).sin() * x.conj(), ((200, 200),)),
    "real of a chain": (lambda x: (x * x + 1j).abs() + (x * 2).real, ((200, 200),)),
    "to real and back": (lambda x: x.real.to(rgrad.complex64) + x.imag.double().to(rgrad.float32) * 1j, ((40,),)),
}
WITHOUT_DOUBLE = "to real and back"


@pytest.mark.parametrize("name", CALLS)
def test_operations(name: str) -> None:
    if name == WITHOUT_DOUBLE and not {"shader-f64", "shader-int64"} <= rgrad.wgpu.current_device().features:
        pytest.skip("the adapter has no float64")
    call, shapes = CALLS[name]
    check(call, *(numbers(*s, seed=k) for k, s in enumerate(shapes)))


SMOOTH: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    **{
        n: (getattr(rgrad, n), ((9,),))
        for n in ["exp", "log", "sqrt", "sin", "tanh", "reciprocal", "abs", "angle", "sgn", "asin", "atanh"]
    },
    "mul": (rgrad.mul, ((5, 9), (9,))),
    "div": (rgrad.div, ((5, 9), (9,))),
    "pow": (lambda x: x**2.5, ((9,),)),
    "matmul": (lambda x, y: x @ y, ((9, 10), (10, 11))),
    "sum": (lambda x: x.sum(0), ((5, 9),)),
    "prod": (lambda x: x.prod(0), ((4, 9),)),
    "cumsum": (lambda x: x.cumsum(0), ((5, 9),)),
    "real and imag": (lambda x: x.real * x.imag, ((9,),)),
    "pairs": (lambda x: rgrad.view_as_real(x).prod(-1), ((9,),)),
    "complex": (lambda x: rgrad.view_as_complex(rgrad.stack([x.imag, x.real], -1)), ((9,),)),
    "conj": (lambda x: x.conj() * x * 1j, ((9,),)),
    "index": (lambda x: x[rgrad.tensor([2, 0, 2], device=x.device)], ((3, 4),)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_both_orders(name: str) -> None:
    call, shapes = SMOOTH[name]

    def gradients(device: str) -> list[Tensor]:
        xs = [numbers(*s, seed=k).to(device).requires_grad_() for k, s in enumerate(shapes)]
        out = call(*xs)
        out = rgrad.view_as_real(out) if out.is_complex() else out
        weights = rgrad.linspace(-1, 1, out.numel(), device=device).reshape(out.shape)
        first = rgrad.autograd.grad((out * out * weights).sum(), xs, create_graph=True)
        again = rgrad.autograd.grad(rgrad.stack([(g.abs() ** 2).sum() for g in first]).sum(), xs)
        return [*first, *again]

    for got, want in zip(gradients("wgpu"), gradients("cpu"), strict=True):
        same(got, want, 1e-4)


def test_views_share_memory() -> None:
    z = numbers(4, 6).to("wgpu")
    want = array(z).copy()
    z.real[1] = 7
    z.imag.t()[0].mul_(-2)
    want.real[1] = 7
    want.imag[:, 0] *= -2
    np.testing.assert_array_equal(array(z), want)
    pairs = rgrad.view_as_real(z)
    assert (pairs.shape, pairs.dtype) == ((4, 6, 2), rgrad.float32)
    pairs[..., 0].add_(1)
    want.real += 1
    np.testing.assert_array_equal(array(z), want)
    back = rgrad.view_as_complex(pairs[1:])
    back.mul_(1j)
    want[1:] *= 1j
    np.testing.assert_array_equal(array(z), want)
    assert z.conj().is_conj()
    z.conj()[0, 0] = 5 + 2j
    want[0, 0] = 5 - 2j
    np.testing.assert_array_equal(array(z), want)
    np.testing.assert_array_equal(array(z + z.real), want + want.real)
    z.copy_(z.imag.clone())
    np.testing.assert_array_equal(array(z), want.imag.astype(np.complex64))
    np.testing.assert_array_equal(array(z.view(rgrad.float32)), array(z).view(np.float32))


def test_creation_and_moves() -> None:
    with rgrad.device("wgpu"):
        made = [
            rgrad.tensor([1 + 2j, -3j], dtype=rgrad.complex64),
            rgrad.full((2,), 1 - 1j, dtype=rgrad.complex64),
            rgrad.zeros(2, dtype=rgrad.complex64),
            rgrad.ones(2, dtype=rgrad.complex64),
            rgrad.arange(2.0) * 1j,
            rgrad.eye(2, dtype=rgrad.complex64)[1],
        ]
    wants: list[list[complex]] = [[1 + 2j, -3j], [1 - 1j] * 2, [0, 0], [1, 1], [0, 1j], [0, 1]]
    for t, values in zip(made, wants, strict=True):
        assert (t.device.type, t.dtype, t.tolist()) == ("wgpu", rgrad.complex64, values)
    z = numbers(5, 3)
    for source in (z, z.t(), z.conj(), z[1:, ::2], z[:0]):
        there = source.to("wgpu")
        np.testing.assert_array_equal(array(there), array(source))
        np.testing.assert_array_equal(array(there.clone()), array(source))
    assert z.to("wgpu")[0, 0].item() == z[0, 0].item()
    assert repr(z.to("wgpu")).replace(", device='wgpu:0'", "") == repr(z)
    z.to("wgpu").fill_(2j)
    x = rgrad.arange(4, device="wgpu")
    assert x.to(rgrad.complex64).tolist() == [0, 1, 2, 3]
    assert (x.to(rgrad.complex64) * 1j).bool().tolist() == [False, True, True, True]


def test_random_numbers_are_those_of_the_cpu() -> None:
    made = []
    for device in ("cpu", "wgpu"):
        rgrad.manual_seed(3)
        made.append(rgrad.randn(400, dtype=rgrad.complex64, device=device))
    same(made[1], made[0])


@pytest.mark.parametrize("dtype", ["complex128", "complex32"])
def test_other_precisions_are_refused(dtype: str) -> None:
    z = numbers(3).to(getattr(rgrad, dtype))
    calls: list[Call] = [lambda: z.to("wgpu"), lambda: rgrad.zeros(2, dtype=z.dtype, device="wgpu")]
    for call in calls:
        with pytest.raises(NotImplementedError, match=rf"{dtype} are not on wgpu.*complex64.*cpu"):
            call()
    assert z.to("wgpu", rgrad.complex64).tolist() == z.to(rgrad.complex64).tolist()


def test_what_there_is_not_says_so() -> None:
    z: Any = numbers(2, 1, 8, 8).to("wgpu")
    before = array(z).copy()
    with pytest.raises(NotImplementedError, match=r"complex.*(cpu|to\(device\))"):
        z.logcumsumexp(-1)
    with pytest.raises(RuntimeError, match="complex"):
        z.max()
    with pytest.raises(RuntimeError, match="ComplexFloat"):
        z.lt(z)
    np.testing.assert_array_equal(array(z), before)
