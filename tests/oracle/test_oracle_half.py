"""float16 and bfloat16 beside torch on the CPU: the same bits, but where torch rounds in the middle of an operation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import rgrad

DTYPES = ("float16", "bfloat16")
SHAPES = ((5, 7), (40, 300))

# Products and quotients see a Python number in float32; sums, powers and remainders round it.
SAME = """
x + y
x - y
x * y
x / y
x * 0.1
x / 0.3
0.3 / x
x + 0.1
0.1 - x
x < 0.1
x == y
x ** 2
x.abs() ** 0.5
x % 0.3
x // 0.3
T.fmod(x, 0.3)
T.remainder(x, y)
T.fmod(x, y)
T.atan2(x, y)
T.maximum(x, y)
T.clamp(x, -0.1, 0.3)
T.add(x, y, alpha=0.1)
T.sub(x, y, alpha=0.3)
T.addcmul(x, y, y, value=0.1)
T.tensor(0.1) * x
T.tensor(0.1, dtype=T.float64) * x
T.tensor(0.1, dtype=x.dtype) * x
x.exp()
x.tanh()
x.sin()
x.abs().sqrt()
x.sum()
x.sum(0)
x.mean()
x.mean(1)
x.var()
x.std(0)
T.var_mean(x, 1)
x.norm()
x.norm(p=1, dim=0)
x.norm(p=3)
x.norm(p=float('inf'))
x.amax(1)
x.max(1)
x.argmin(0)
x.cummax(0)[0]
x.sort(1)[0]
x.median()
x.log_softmax(0)
x @ y[0]
T.nn.functional.elu(x, 0.3)
T.nn.functional.leaky_relu(x, 0.1)
T.nn.functional.softplus(x)
T.nn.functional.hardtanh(x)
T.nn.functional.hardshrink(x, 0.3)
T.nn.functional.softshrink(x, 0.3)
T.nn.functional.mse_loss(x, y)
T.nn.functional.l1_loss(x, y)
T.nn.functional.smooth_l1_loss(x, y)
T.where(x > 0, x, 0.1)
T.arange(0, 2, 0.25, dtype=x.dtype)
T.full((3,), 0.1, dtype=x.dtype)
x.to(T.int32)
x.to(T.uint8)
x.to(T.float64)
x.to(T.float16)
x.to(T.bfloat16)
x.round()
x.floor()
x.frac()
x.bool()
T.nan_to_num(x)
T.copysign(x, y)
T.outer(x[0], y[0])
T.zeros(3, dtype=x.dtype).index_add(0, T.tensor([0, 0, 1, 2, 2]), x[0, :5])
x.trace()
x.diff()
T.reciprocal(x)
x.gather(1, T.tensor([[0, 1, 1]]))
""".strip().split("\n")

# Within units in the last place: elementary functions differ in their last float32 bits, and sums in their order;
# normalize is several rounded operations in torch.
NEAR = """
x.abs() ** 0.3: 1
x.abs() ** y: 1
x.sigmoid(): 1
x.erf(): 1
x.abs().log1p(): 1
x.abs().rsqrt(): 1
T.lerp(x.abs(), y.abs(), 0.3): 1
x.cumsum(0): 1
x.logsumexp(1): 1
x.softmax(1): 1
x.prod(1): 2
T.nn.functional.silu(x): 1
T.nn.functional.gelu(x): 2
T.nn.functional.logsigmoid(x): 1
T.nn.functional.normalize(x): 2
T.nn.functional.cross_entropy(x, T.arange(x.shape[0]) % x.shape[1]): 2
T.logaddexp(x, y): 1
T.hypot(x, y): 1
T.pow(0.3, x): 1
T.linspace(0, 1, 13, dtype=x.dtype): 1
""".strip().split("\n")


def operands(mod: Any, dtype: str, shape: tuple[int, int]) -> dict[str, Any]:
    rng = np.random.default_rng(shape[0])
    x, y = (mod.tensor(rng.standard_normal(shape).astype("float32")).to(getattr(mod, dtype)) for _ in range(2))
    return {"T": mod, "x": x, "y": y}


def both(expression: str, dtype: str, shape: tuple[int, int]) -> list[tuple[Any, Any]]:
    """The results of torch and of rgrad."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (eval(expression, operands(mod, dtype, shape)) for mod in (torch, rgrad))
    return list(zip(want, got, strict=True)) if isinstance(want, tuple) else [(want, got)]


def distance(want: Any, got: Any, dtype: str) -> float:
    """The largest difference, in units in the last place of the wanted numbers."""
    assert tuple(want.shape) == tuple(got.shape)
    a, b = (np.atleast_1d(t.double().tolist()) for t in (want, got))
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    kind = rgrad.finfo(getattr(rgrad, dtype))
    exponent = np.floor(np.log2(np.maximum(np.abs(a), kind.smallest_normal)))
    return float(np.max(apart / (kind.eps * 2.0**exponent), initial=0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", SAME)
def test_results_are_the_same_numbers(expression: str, dtype: str) -> None:
    for shape in SHAPES:
        for want, got in both(expression, dtype, shape):
            assert str(want.dtype).partition(".")[2] == str(got.dtype).partition(".")[2]
            assert distance(want, got, dtype) == 0


# The order in which PyTorch sums products, and so the last bit of some, depends on the processor.
PRODUCTS = ["x @ y.T", "T.bmm(x[None], y.T[None])", "T.einsum('ij,kj->ik', x, y)", "T.nn.functional.linear(x, y)"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", PRODUCTS)
def test_products_are_those_of_float64_rounded_once(expression: str, dtype: str) -> None:
    for shape in SHAPES:
        [(want, got)] = both(expression, dtype, shape)
        given = operands(torch, dtype, shape)
        exact = eval(expression, {"T": torch, "x": given["x"].double(), "y": given["y"].double()})
        assert want.shape == exact.shape
        # Sums in float32 that cancel: in units of the largest numbers of the sums.
        bound = float(rgrad.finfo(getattr(rgrad, dtype)).eps)
        apart = np.abs(np.array(got.double().tolist()) - exact.numpy())
        assert np.all(apart <= bound * 0.501 * np.abs(exact.numpy()) + 1e-6 * shape[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("line", NEAR)
def test_results_are_near(line: str, dtype: str) -> None:
    expression, _, limit = line.rpartition(": ")
    for shape in SHAPES:
        for want, got in both(expression, dtype, shape):
            assert str(want.dtype).partition(".")[2] == str(got.dtype).partition(".")[2]
            assert distance(want, got, dtype) <= int(limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pattern_of_bits_converts_as_in_torch(dtype: str) -> None:
    bits = np.arange(-(2**15), 2**15, dtype="int64").astype("int16")
    want = torch.from_numpy(bits).view(getattr(torch, dtype))
    wide = want.float()
    # Through float32, so that rgrad makes the 16 bits itself; and values between neighbours, which must be rounded.
    between = torch.cat([wide, torch.nextafter(wide, wide + 1), wide * 1.0005, wide * 0.9995, wide * 1.00390625])
    mine = rgrad.from_numpy(between.numpy()).to(getattr(rgrad, dtype))
    theirs = between.to(getattr(torch, dtype))
    np.testing.assert_array_equal(mine.float().numpy(), theirs.float().numpy())
    for target in ("float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16"):
        finite = torch.isfinite(wide) & (wide.abs() < 100)
        a = want[finite].to(getattr(torch, target)).double().numpy()
        b = rgrad.from_numpy(wide[finite].numpy()).to(getattr(rgrad, dtype)).to(getattr(rgrad, target)).double().numpy()
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_and_names(dtype: str) -> None:
    a, b = torch.finfo(getattr(torch, dtype)), rgrad.finfo(getattr(rgrad, dtype))
    for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(a, name) == getattr(b, name)
    one = {mod: mod.ones(1, dtype=getattr(mod, dtype)) for mod in (torch, rgrad)}
    assert one[torch].type().partition(".")[2] == one[rgrad].type().partition(".")[2]
    assert repr(one[torch]).replace("torch.", "") == repr(one[rgrad]).replace("rgrad.", "")
    assert one[rgrad].element_size() == 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "loss",
    [
        "(x * 0.1 + y).tanh().sum()",
        "(x @ y.T).relu().mean()",
        "(x * y).softmax(1).var()",
        "(x / (y.abs() + 1)).norm()",
        "x.sigmoid().prod(1).sum()",
        "x.sort(1)[0][:, :3].sum() + y.cumsum(0).mean()",
        "T.nn.functional.cross_entropy(x, T.arange(x.shape[0]) % x.shape[1]) * y.exp().mean()",
        "(x[1:, ::2] ** 3).sum() + y.max()",
    ],
)
def test_gradients(loss: str, dtype: str) -> None:
    grads = []
    for mod in (torch, rgrad):
        names = operands(mod, dtype, (5, 7))
        for k in ("x", "y"):
            names[k].requires_grad_()
        eval(loss, names).backward()
        grads.append([names[k].grad for k in ("x", "y")])
    for want, got in zip(*grads, strict=True):
        if want is None:
            assert got is None
            continue
        assert str(got.dtype).partition(".")[2] == dtype
        a, b = (np.array(t.double().tolist()) for t in (want, got))
        eps = rgrad.finfo(getattr(rgrad, dtype)).eps
        np.testing.assert_allclose(b, a, rtol=4 * eps, atol=2 * eps * max(np.abs(a).max(), 1e-3))
