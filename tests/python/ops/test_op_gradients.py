"""Gradients at kinks and ends, their dtypes, and that what has none leaves no history."""

from __future__ import annotations

import numpy as np
import pytest

import rgrad
from op_kit import Op, as_tuple, leaves, views
from op_table import BY_NAME, OPS

# Of the rows without gradient these have floating results; their history is compared with PyTorch's elsewhere.
FLOATING = ("floor_divide", "x//c", "norm_zero", "detach", "unique", "unique_consecutive")


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.grad == "none" and op.name not in FLOATING], ids=lambda op: op.name
)
def test_no_gradient_means_no_history(op: Op) -> None:
    sample = next(s for s in op.all_samples() if all(a.base.size for a in s.args))
    leaf = leaves(rgrad, sample, requires_grad=True)
    for out in as_tuple(op.call(rgrad, *views(sample, leaf), **sample.params)):
        assert not out.requires_grad
        assert out.grad_fn is None


UNIT = {name: BY_NAME[name] for name in ("exp", "tanh", "mul", "matmul", "sum", "cat")}


@pytest.mark.parametrize("name", UNIT)
def test_float32_gradients_have_the_input_dtype(name: str) -> None:
    op = UNIT[name]
    sample = next(s for s in op.all_samples() if all(a.base.size for a in s.args))
    leaf = leaves(rgrad, sample, "float32", requires_grad=True)
    outs = as_tuple(op.call(rgrad, *views(sample, leaf), **sample.params))
    rgrad.autograd.backward(outs, [rgrad.ones_like(o) for o in outs])
    for x in leaf:
        assert x.grad.dtype == rgrad.float32
        assert x.grad.shape == x.shape


@pytest.mark.parametrize(
    ("name", "point", "want"),
    [
        ("relu", 0.0, 0.0),
        ("abs", 0.0, 0.0),
        ("sign", 0.0, 0.0),
        ("sqrt", 0.0, np.inf),
        ("log", 0.0, np.inf),
        ("rsqrt", 0.0, -np.inf),
        ("reciprocal", 0.0, -np.inf),
        ("sigmoid", -1000.0, 0.0),
        ("sigmoid", 1000.0, 0.0),
        ("tanh", 1000.0, 0.0),
        ("exp", -np.inf, 0.0),
        ("log1p", -1.0, np.inf),
        ("expm1", -np.inf, 0.0),
        ("square", 0.0, 0.0),
        ("erf", np.inf, 0.0),
        ("frac", 1.0, 1.0),
        ("asinh", 0.0, 1.0),
    ],
)
def test_derivative_at_kinks_and_ends(name: str, point: float, want: float) -> None:
    x = rgrad.tensor(point, dtype=rgrad.float64, requires_grad=True)
    getattr(rgrad, name)(x).backward()
    assert x.grad.item() == want


def test_ties_share_the_gradient() -> None:
    """amax and maximum split evenly between equal values; max with dim picks one."""
    x = rgrad.tensor([1.0, 3.0, 3.0], requires_grad=True)
    rgrad.amax(x, 0).backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
    x.grad = None
    x.max().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
    a = rgrad.tensor(2.0, requires_grad=True)
    b = rgrad.tensor(2.0, requires_grad=True)
    rgrad.maximum(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (0.5, 0.5)
    x.grad = None
    x.max(0).values.backward()
    assert sorted(x.grad.tolist()) == [0.0, 0.0, 1.0]


def test_clamp_passes_the_gradient_at_its_bounds() -> None:
    x = rgrad.tensor([-1.0, 0.0, 1.0, 2.0], requires_grad=True)
    x.clamp(0.0, 1.0).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_pow_at_zero() -> None:
    x = rgrad.tensor([0.0, 0.0], dtype=rgrad.float64, requires_grad=True)
    y = rgrad.tensor([0.0, 2.0], dtype=rgrad.float64, requires_grad=True)
    (x**y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert y.grad.tolist()[1] == 0.0


def test_where_keeps_nan_of_the_other_branch_out_only_where_masked() -> None:
    x = rgrad.tensor([-1.0, 4.0], dtype=rgrad.float64, requires_grad=True)
    rgrad.where(x > 0, x, rgrad.zeros_like(x)).sqrt().sum().backward()
    assert x.grad.tolist()[1] == 0.25
    assert x.grad.tolist()[0] == 0.0
