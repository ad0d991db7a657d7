"""`gradcheck` and `gradgradcheck`, slow and fast, of every differentiable operation in float64.

The truth of the derivatives is tested in `test_op_gradients`, with differences of its own; here it is that both agree.
"""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from op_kit import Op, Sample, as_tuple, leaves, views
from op_table import OPS, cases
from rgrad.autograd import gradcheck, gradgradcheck


def samples() -> list[Any]:
    """Of each row the first two samples that have elements."""
    seen: dict[str, int] = {}
    out = []
    for p in cases("smooth", "zero"):
        op, sample = p.values  # type: ignore[attr-defined]
        if seen.get(op.name, 0) < 2 and all(a.base.size for a in sample.args):
            seen[op.name] = seen.get(op.name, 0) + 1
            out.append(p)
    return out


@pytest.mark.parametrize(("op", "sample"), samples())
def test_every_operation_passes(op: Op, sample: Sample) -> None:
    leaf = leaves(rgrad, sample, "float64")
    inputs = tuple(x.requires_grad_() for x, a in zip(leaf, sample.args, strict=True) if a.differentiable)

    def f(*_: Any) -> Any:
        # The checks write to the memory of the inputs, which are the leaves.
        outs = as_tuple(op.call(rgrad, *views(sample, leaf), **sample.params))
        return tuple(o for o in outs if o.dtype.is_floating_point and o.requires_grad)

    if not f():
        return  # none of the outputs depends on its input by a derivative
    for fast in (False, True):
        assert gradcheck(f, inputs, fast_mode=fast)
        if op.grad == "smooth" and op.order >= 2:
            assert gradgradcheck(f, inputs, fast_mode=fast)


def test_every_differentiable_row_has_a_sample() -> None:
    checked = {p.values[0].name for p in samples()}
    differentiable = {op.name for op in OPS if op.grad in ("smooth", "zero")}
    assert differentiable - checked == {"setitem_empty"}  # nothing but samples without elements


def test_the_check_sees_a_wrong_derivative() -> None:
    x = rgrad.tensor([0.5, 1.5], dtype=rgrad.float64, requires_grad=True)
    for fast in (False, True):
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            gradcheck(lambda _: (x.detach() * x,), (x,), fast_mode=fast)
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            # The gradient is right, its own derivative is not.
            gradgradcheck(lambda _: (x.detach() * x * 2 - x.detach() ** 2 + x**3 - x**3,), (x,), fast_mode=fast)
