"""Every row of the operation table on rgrad and on torch: values, dtypes, strides, gradients, in-place variants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import both, same, values  # noqa: E402 - torch must be there first
from op_kit import Op, Sample, as_tuple, leaves, views  # noqa: E402
from op_table import OPS, cases  # noqa: E402

pytestmark = pytest.mark.oracle

# PyTorch has no derivative for a number % tensor; rgrad has.
NO_DERIVATIVE_IN_TORCH = {"c%x"}
# Where torch's result has strides by accident of its kernels, not by a rule.
FREE_STRIDES = {
    "matmul",
    "loss",
    "c**x",
    "rpow_scalar",
    "flip",
    "index_add",
    "scatter",
    "scatter_add",
    "scatter_value",
    "sort",
}


def call(T: Any, op: Op, sample: Sample, dtype: str, requires_grad: bool = False) -> Any:
    leaf = leaves(T, sample, dtype, requires_grad)
    return op.call(T, *views(sample, leaf), **sample.params)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("op", "sample"), cases())
def test_values_dtypes_strides(op: Op, sample: Sample, dtype: str) -> None:
    both(lambda T: call(T, op, sample, dtype), factor=4 * op.tol, strides=not {op.family, op.name} & FREE_STRIDES)


def integer_cases() -> list[Any]:
    """Every sample of the pointwise rows; of the other rows the first of each number of arguments."""
    seen: set[tuple[str, int]] = set()
    out = []
    for p in cases():
        op, sample = p.values
        key = (op.name, len(sample.args))
        if op.family in ("unary", "binary") or (key not in seen and op.family not in ("loss", "nan")):
            out.append(p)
        seen.add(key)
    return out


DIVIDE = ("fmod", "remainder", "floor_divide", "div_floor", "div_trunc", "pow", "c%x", "x//c", "x%c")


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize(("op", "sample"), integer_cases())
def test_other_dtypes(op: Op, sample: Sample, dtype: str) -> None:
    """Integers and bools: the same result, or the same error."""
    whole = Sample(tuple(a.cast("int64").cast(dtype) for a in sample.args), sample.params)
    if op.name in DIVIDE:
        whole = Sample(tuple(nonzero(a) if a.floating else a for a in whole.args), sample.params)
    both(lambda T: raw(T, op, whole), more=True, factor=4, strides=False)


def nonzero(a: Any) -> Any:
    return replace(a, base=np.where(a.base == 0, np.ones_like(a.base), a.base))


def raw(T: Any, op: Op, sample: Sample) -> Any:
    return op.call(T, *views(sample, [T.tensor(a.base) for a in sample.args]), **sample.params)


def gradients(T: Any, op: Op, sample: Sample, dtype: str, order: int) -> list[Any]:
    leaf = leaves(T, sample, dtype, requires_grad=True)
    xs = [t for t in leaf if t.requires_grad]
    outs = as_tuple(op.call(T, *views(sample, leaf), **sample.params))
    rng = np.random.default_rng(3)
    result: list[Any] = []
    for n in range(order):
        tracked = [o for o in outs if o.requires_grad]
        if not tracked:
            break
        weights = [T.tensor(rng.uniform(0.5, 1.5, tuple(o.shape)).astype(dtype)) for o in tracked]
        grads = T.autograd.grad(tracked, xs, weights, create_graph=n + 1 < order, allow_unused=True)
        result.extend(grads)
        outs = tuple(g for g in grads if g is not None)
    return result


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("op", "sample"), [p for p in cases("smooth", "zero") if p.values[0].name not in NO_DERIVATIVE_IN_TORCH]
)
def test_gradients(op: Op, sample: Sample, order: int) -> None:
    """PyTorch's gradients, None where it has None for what was not used."""
    mine = gradients(rgrad, op, sample, "float64", order)
    theirs = gradients(torch, op, sample, "float64", order)
    first = sum(a.differentiable for a in sample.args)
    for n, (g, w) in enumerate(zip(mine, theirs, strict=False)):
        if n < first or (g is not None and w is not None):
            assert (g is None) == (w is None) or w.numel() == 0
            if g is not None and w is not None:
                assert tuple(g.shape) == tuple(w.shape)
                np.testing.assert_allclose(values(g), values(w), rtol=1e-9, atol=1e-11)
        else:  # at second order a zero may be told or left out
            for one in (g, w):
                assert one is None or not values(one).any()


@pytest.mark.parametrize("op", [op for op in OPS if op.grad != "none"], ids=lambda op: op.name)
def test_float32_gradients(op: Op) -> None:
    if op.name in NO_DERIVATIVE_IN_TORCH:
        return
    for sample in op.all_samples()[:6]:
        mine = gradients(rgrad, op, sample, "float32", 1)
        theirs = gradients(torch, op, sample, "float32", 1)
        for g, w in zip(mine, theirs, strict=True):
            if w is not None and w.numel():
                same(g, w, factor=50, strides=False)


def written(op: Op) -> list[Sample]:
    """The samples whose first argument has no element twice."""
    return [s for s in op.all_samples() if s.args[0].layout != "expanded"]


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace], ids=lambda op: op.name)
def test_in_place(op: Op) -> None:
    """In place on a dense tensor, a transposed one, a part of one; the version counter and the base agree."""
    for sample in written(op):

        def change(T: Any, sample: Sample = sample) -> Any:
            leaf = leaves(T, sample, "float64")
            first, *others = views(sample, leaf)
            out = getattr(first, op.inplace)(*others, **sample.params)
            assert out is first
            return first, leaf[0], leaf[0]._version

        both(change, factor=4 * op.tol)


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace and op.grad != "none"], ids=lambda op: op.name)
def test_in_place_under_autograd(op: Op) -> None:
    """In place on a part of an inner tensor: the gradient of the base, or the same refusal."""
    for sample in written(op):

        def change(T: Any, sample: Sample = sample) -> Any:
            leaf = leaves(T, sample, "float64", requires_grad=True)
            base = leaf[0] * 1.0
            others = views(sample, leaf)[1:]
            target = sample.args[0].view(base)
            getattr(target, op.inplace)(*others, **sample.params)
            base.sum().backward()
            return [t.grad for t in leaf]

        both(change, more=True, factor=100, strides=False)


@pytest.mark.parametrize("op", [op for op in OPS if op.family == "view"], ids=lambda op: op.name)
def test_views_and_copies(op: Op) -> None:
    """A view shares its base's memory exactly where PyTorch's does."""
    for sample in op.all_samples():

        def share(T: Any, sample: Sample = sample) -> Any:
            (x,) = views(sample, leaves(T, sample))
            whole = x if x._base is None else x._base
            outs = as_tuple(op.call(T, x, **sample.params))
            return [
                (
                    o._is_view(),
                    o.storage_offset(),
                    (o.data_ptr() - x.data_ptr()) if o._is_view() and o._base is whole and o.numel() else None,
                )
                for o in outs
            ]

        mine, theirs = share(rgrad), share(torch)
        assert mine == theirs


# These have no out= in torch.
NO_OUT = {"relu", "isnan", "isinf", "isfinite"}
WITH_OUT = [op for op in OPS if op.family in ("unary", "binary") and op.name not in NO_OUT]


@pytest.mark.parametrize("op", WITH_OUT, ids=lambda op: op.name)
def test_out(op: Op) -> None:
    """out=: filled, resized when empty, refused where the dtype does not fit."""
    sample = op.all_samples()[3]
    for dtype, shape in (
        ("float64", (0,)),
        ("float64", (2, 3)),
        ("int32", (2, 3)),
        ("bool", (0,)),
    ):

        def into(T: Any, dtype: str = dtype, shape: tuple[int, ...] = shape) -> Any:
            out = T.zeros(shape, dtype=getattr(T, dtype))
            return getattr(T, op.name)(*views(sample, leaves(T, sample, "float64")), out=out)

        both(into)
