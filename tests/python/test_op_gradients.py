"""First and second derivatives of every operation against finite differences in float64.

The finite differences here are our own on purpose: `rgrad.autograd.gradcheck` is itself under test elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rgrad
from op_kit import Op, Sample, as_tuple, leaves, to_numpy, views
from op_table import BY_NAME, OPS, cases

EPS = 1e-6
ATOL = 2e-6
RTOL = 2e-6


def numeric(
    f: Callable[[Sequence[np.ndarray]], float], arrays: Sequence[np.ndarray], which: Sequence[int]
) -> list[np.ndarray]:
    """Central differences of a scalar function with respect to every element of arrays[which]."""
    out = []
    for k in which:
        grad = np.zeros(arrays[k].shape)
        for at in np.ndindex(*arrays[k].shape):
            values = []
            for step in (EPS, -EPS):
                moved = [a.copy() for a in arrays]
                moved[k][at] += step
                values.append(f(moved))
            grad[at] = (values[0] - values[1]) / (2 * EPS)
        out.append(grad)
    return out


def tensors(sample: Sample, arrays: Sequence[np.ndarray], which: Sequence[int]) -> list[Any]:
    out = [rgrad.tensor(a) for a in arrays]
    for k in which:
        out[k].requires_grad_()
    return out


def cotangents(op: Op, sample: Sample) -> list[Any]:
    """Fixed random weights, one for each output that can carry a gradient."""
    rng = np.random.default_rng(7)
    outs = as_tuple(op.call(rgrad, *views(sample, leaves(rgrad, sample)), **sample.params))
    return [rgrad.tensor(rng.uniform(0.5, 1.5, tuple(o.shape))) if o.dtype.is_floating_point else None for o in outs]


def weighted_sum(op: Op, sample: Sample, leaf: Sequence[Any], weights: Sequence[Any]) -> Any:
    outs = as_tuple(op.call(rgrad, *views(sample, leaf), **sample.params))
    terms = [(o * w).sum() for o, w in zip(outs, weights, strict=True) if w is not None]
    return sum(terms[1:], terms[0])


def analytic(y: Any, xs: Sequence[Any], create_graph: bool = False) -> list[Any]:
    if not y.requires_grad:
        return [rgrad.zeros_like(x) for x in xs]
    grads = rgrad.autograd.grad(y, xs, create_graph=create_graph, allow_unused=True)
    return [rgrad.zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True)]


def assert_grads(got: Sequence[Any], want: Sequence[np.ndarray]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == rgrad.float64
        assert tuple(g.shape) == w.shape
        scale = max(1.0, float(np.abs(w).max(initial=0.0)))
        np.testing.assert_allclose(to_numpy(g), w, rtol=RTOL, atol=ATOL * scale)


@pytest.mark.parametrize(("op", "sample"), cases("smooth", "zero"))
def test_first_order(op: Op, sample: Sample) -> None:
    arrays = [a.base for a in sample.args]
    which = [k for k, a in enumerate(sample.args) if a.differentiable]
    weights = cotangents(op, sample)

    def value(moved: Sequence[np.ndarray]) -> float:
        return float(weighted_sum(op, sample, tensors(sample, moved, []), weights).item())

    leaf = tensors(sample, arrays, which)
    got = analytic(weighted_sum(op, sample, leaf, weights), [leaf[k] for k in which])
    assert_grads(got, numeric(value, arrays, which))


@pytest.mark.parametrize(("op", "sample"), cases("smooth"))
def test_second_order(op: Op, sample: Sample) -> None:
    arrays = [a.base for a in sample.args]
    which = [k for k, a in enumerate(sample.args) if a.differentiable]
    weights = cotangents(op, sample)
    rng = np.random.default_rng(11)
    directions = [rng.uniform(0.5, 1.5, arrays[k].shape) for k in which]

    def first(moved: Sequence[np.ndarray], create_graph: bool) -> tuple[Any, list[Any]]:
        """The directional derivative, as a function that can itself be differentiated."""
        leaf = tensors(sample, moved, which)
        xs = [leaf[k] for k in which]
        grads = analytic(weighted_sum(op, sample, leaf, weights), xs, create_graph)
        terms = [(g * rgrad.tensor(d)).sum() for g, d in zip(grads, directions, strict=True)]
        return sum(terms[1:], terms[0]), xs

    derivative, xs = first(arrays, create_graph=True)
    got = analytic(derivative, xs)
    assert_grads(got, numeric(lambda moved: float(first(moved, False)[0].item()), arrays, which))


def derivatives(op: Op, sample: Sample, dtype: str) -> list[np.ndarray]:
    """Of the weighted sum of the outputs: the gradients, and those of their own weighted sum, on the default device."""
    which = [k for k, a in enumerate(sample.args) if a.differentiable]
    leaf = leaves(rgrad, sample, dtype)
    xs = [leaf[k].requires_grad_() for k in which]
    rng = np.random.default_rng(7)

    def weighted(tensors: Sequence[Any]) -> Any:
        terms = [(t * rgrad.tensor(rng.uniform(0.5, 1.5, tuple(t.shape)).astype(dtype))).sum() for t in tensors]
        return sum(terms[1:], terms[0])

    outs = as_tuple(op.call(rgrad, *views(sample, leaf), **sample.params))
    first = analytic(weighted([o for o in outs if o.dtype.is_floating_point]), xs, create_graph=op.grad == "smooth")
    second = analytic(weighted(first), xs) if op.grad == "smooth" else []
    return [to_numpy(g) for g in (*first, *second)]


@pytest.mark.wgpu
@pytest.mark.parametrize(("op", "sample"), cases("smooth", "zero"))
def test_derivatives_on_wgpu(op: Op, sample: Sample) -> None:
    """First and second order in float32 on wgpu beside float64 on the CPU, which the numeric tests above vouch for."""
    want = derivatives(op, sample, "float64")
    with rgrad.device("wgpu"):
        got = derivatives(op, sample, "float32")
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        assert g.dtype == np.float32
        scale = max(1.0, float(np.abs(w).max(initial=0.0)))
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * scale)


@pytest.mark.parametrize("op", [op for op in OPS if op.grad == "smooth"], ids=lambda op: op.name)
def test_only_the_inputs_that_ask_get_gradients(op: Op) -> None:
    """Each floating argument alone requires grad: its gradient is the one it gets together with the others."""
    samples = op.all_samples()
    sample = next((s for s in samples if all(a.base.size for a in s.args)), samples[0])
    which = [k for k, a in enumerate(sample.args) if a.differentiable]
    weights = cotangents(op, sample)
    arrays = [a.base for a in sample.args]
    together = tensors(sample, arrays, which)
    want = analytic(weighted_sum(op, sample, together, weights), [together[k] for k in which])
    for n, k in enumerate(which):
        alone = tensors(sample, arrays, [k])
        (got,) = analytic(weighted_sum(op, sample, alone, weights), [alone[k]])
        np.testing.assert_allclose(to_numpy(got), to_numpy(want[n]), rtol=1e-12, atol=1e-14)


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


def test_the_checker_notices_a_small_error() -> None:
    """A derivative that is wrong by 0.1 % must fail, at first and at second order."""
    x = np.array([0.3, -0.7])
    for wrong in (np.cos(x) * 1.001, np.cos(x) + 1e-3):
        with pytest.raises(AssertionError):
            assert_grads([rgrad.tensor(wrong)], numeric(lambda a: float(np.sin(a[0]).sum()), [x], [0]))


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
