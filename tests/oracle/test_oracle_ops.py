"""Every row of the operation table on rgrad and on torch: values, dtypes, strides, gradients, in-place variants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rotation  # noqa: E402
from compare import both, same, values  # noqa: E402 - torch must be there first
from op_kit import Op, Sample, as_tuple, leaves, told, views  # noqa: E402
from op_table import OPS  # noqa: E402

pytestmark = pytest.mark.oracle

# PyTorch has no derivative for a number % tensor; rgrad has.
NO_DERIVATIVE_IN_TORCH = {"c%x"}
# Where torch's result has strides by accident of its kernels, not by a rule.
FREE_STRIDES = {
    "loss",
    "c**x",
    "rpow_scalar",
    "index_add",
    "sort",
    "logsigmoid",
    "rsub",
    "renorm",
}
# torch computes the gradient with numbers that it has rounded to single precision.
SINGLE = {"celu", "hardsigmoid"}
# torch has no second derivative.
FIRST_ALONE = {
    "cdist",
    "hardsigmoid",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "pdist",
    "scaled_dot_product_attention",
}
# torch multiplies the infinite gradient of a mean of nothing by zero; rgrad's gradient of a nan is zero.
NAN_THERE = {"nanmean_with_nan"}


def call(T: Any, op: Op, sample: Sample, dtype: str, requires_grad: bool = False) -> Any:
    leaf = leaves(T, sample, dtype, requires_grad)
    return op.call(T, *views(sample, leaf), **sample.params)


EACH = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


def some(combinations: list[Any], share: int, key: str) -> list[Any]:
    """One of so many."""
    return rotation.some(combinations, -(-len(combinations) // share), key)


@EACH
def test_values_dtypes_strides(op: Op) -> None:
    """Half of the samples and dtypes."""
    strides = not {op.family, op.name} & FREE_STRIDES
    combinations = [(s, dtype) for s in op.all_samples() for dtype in ("float64", "float32")]
    for sample, dtype in some(combinations, 2, f"values {op.name}"):
        with told(op, sample, dtype):
            both(lambda T, s=sample, d=dtype: call(T, op, s, d), factor=4 * op.tol, strides=strides)


def integer_samples(op: Op) -> list[Sample]:
    """Every sample of the pointwise rows; of the other rows the first of each number of arguments."""
    if op.family in ("unary", "binary"):
        return op.all_samples()
    if op.family in ("loss", "nan"):
        return []
    return list({len(s.args): s for s in reversed(op.all_samples())}.values())


DIVIDE = ("fmod", "remainder", "floor_divide", "div_floor", "div_trunc", "pow", "c%x", "x//c", "x%c")


@pytest.mark.parametrize("op", [op for op in OPS if integer_samples(op)], ids=lambda op: op.name)
def test_other_dtypes(op: Op) -> None:
    """Integers and bools: the same result, or the same error; a third of the samples and dtypes."""
    combinations = [
        (s, dtype) for s in integer_samples(op) for dtype in ("int64", "int32", "int16", "int8", "uint8", "bool")
    ]
    for sample, dtype in some(combinations, 3, f"other dtypes {op.name}"):
        whole = Sample(tuple(a.cast("int64").cast(dtype) for a in sample.args), sample.params)
        if op.name in DIVIDE:
            whole = Sample(tuple(nonzero(a) if a.floating else a for a in whole.args), sample.params)
        with told(op, sample, dtype):
            both(lambda T, s=whole: raw(T, op, s), more=True, factor=4, strides=False)


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


DIFFERENTIABLE = [op for op in OPS if op.grad in ("smooth", "zero") and op.name not in NO_DERIVATIVE_IN_TORCH]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_gradients(op: Op) -> None:
    """PyTorch's gradients, None where it has None for what was not used; half of the samples and orders."""
    orders = (1,) if op.name in FIRST_ALONE else (1, 2)
    combinations = [(s, order) for s in op.all_samples() for order in orders]
    for sample, order in some(combinations, 2, f"gradients {op.name}"):
        with told(op, sample, f"float64, order {order}"):
            compare_gradients(op, sample, order)


def compare_gradients(op: Op, sample: Sample, order: int) -> None:
    mine = gradients(rgrad, op, sample, "float64", order)
    theirs = gradients(torch, op, sample, "float64", order)
    first = sum(a.differentiable for a in sample.args)
    for n, (g, w) in enumerate(zip(mine, theirs, strict=False)):
        if n < first or (g is not None and w is not None):
            assert (g is None) == (w is None) or w.numel() == 0
            if g is not None and w is not None:
                assert tuple(g.shape) == tuple(w.shape)
                np.testing.assert_allclose(values(g), values(w), rtol=1e-7 if op.name in SINGLE else 1e-9, atol=1e-11)
        else:  # at second order a zero may be told or left out
            for one in (g, w):
                assert one is None or not values(one).any()


WITH_GRADIENTS = [op for op in OPS if op.grad != "none" and op.name not in NO_DERIVATIVE_IN_TORCH]


@pytest.mark.parametrize("op", WITH_GRADIENTS, ids=lambda op: op.name)
def test_float32_gradients(op: Op) -> None:
    for sample in rotation.some(op.all_samples(), 4, f"float32 gradients {op.name}"):
        with told(op, sample, "float32"):
            mine = gradients(rgrad, op, sample, "float32", 1)
            theirs = gradients(torch, op, sample, "float32", 1)
            for g, w in zip(mine, theirs, strict=True):
                if w is not None and w.numel():
                    if op.name in NAN_THERE:
                        assert not values(g)[np.isnan(values(w))].any()
                        w = w.nan_to_num()
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
        ("int8", (2, 3)),
        ("bool", (0,)),
    ):

        def into(T: Any, dtype: str = dtype, shape: tuple[int, ...] = shape) -> Any:
            out = T.zeros(shape, dtype=getattr(T, dtype))
            return getattr(T, op.name)(*views(sample, leaves(T, sample, "float64")), out=out)

        both(into)


def named(name: str) -> list[Op]:
    """The operations that an entry of a list above means: one, or a family."""
    return [op for op in OPS if name in (op.name, op.family)]


def differs(compared: Any, op: Op) -> bool:
    """Whether a comparison fails for one of an operation's samples, or PyTorch refuses it."""
    for sample in op.all_samples():
        try:
            compared(op, sample)
        except (AssertionError, RuntimeError, TypeError):
            return True
    return False


def strides_agree(op: Op, sample: Sample) -> None:
    both(lambda T: call(T, op, sample, "float64"), factor=4 * op.tol)


def digits_agree(op: Op, sample: Sample) -> None:
    for g, w in zip(*(gradients(T, op, sample, "float64", 1) for T in (rgrad, torch)), strict=True):
        np.testing.assert_allclose(values(g), values(w), rtol=1e-9, atol=1e-11)


def no_nan(op: Op, sample: Sample) -> None:
    assert not any(np.isnan(values(w)).any() for w in gradients(torch, op, sample, "float32", 1))


EXCEPTIONS = [
    *((name, lambda op, s: gradients(torch, op, s, "float64", 1)) for name in sorted(NO_DERIVATIVE_IN_TORCH)),
    *((name, strides_agree) for name in sorted(FREE_STRIDES)),
    *((name, digits_agree) for name in sorted(SINGLE)),
    *((name, lambda op, s: gradients(torch, op, s, "float64", 2)) for name in sorted(FIRST_ALONE)),
    *((name, no_nan) for name in sorted(NAN_THERE)),
    *((name, lambda op, s: getattr(torch, op.name)(torch.ones(1), out=torch.ones(1))) for name in sorted(NO_OUT)),
]


@pytest.mark.parametrize(("name", "compared"), EXCEPTIONS, ids=[name for name, _ in EXCEPTIONS])
def test_no_exception_outlives_its_reason(name: str, compared: Any) -> None:
    assert any(differs(compared, op) for op in named(name)), f"{name} need not be an exception any more"
