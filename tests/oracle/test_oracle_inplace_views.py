"""Random programs that write to tensors and reshape them in place while others look: rgrad beside torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import rgrad  # noqa: E402
from compare import same  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

# x is an inner tensor of shape (3, 3), v and w are views of it, y a scalar leaf, z a sum of what was seen so far.
LINES = (
    "x.transpose_(0, 1)",
    "x.t_()",
    "x.unsqueeze_(0)",
    "x.unsqueeze_(-1)",
    "x.squeeze_()",
    "x.squeeze_(0)",
    "x.swapaxes_(0, -1)",
    "with T.no_grad(): x.transpose_(0, -1)",
    "v.transpose_(0, -1)",
    "v.unsqueeze_(0)",
    "v.squeeze_()",
    "w.t_()",
    "v = x[0]",
    "v = x[..., 1]",
    "v = x.view(-1)[1:4]",
    "v = x.diagonal()",
    "v = x.as_strided((2, 2), (1, 2), 1)",
    "v = v.detach()",
    "with T.no_grad(): v = x[0]",
    "w = x.t()",
    "w = x[1:]",
    "w = x[:, ::2]",
    "w = x.unsqueeze(1)",
    "w = v[1:]",
    "w = v.unsqueeze(0)",
    "x.sin_()",
    "x.mul_(3)",
    "x[0].mul_(y)",
    "v.sin_()",
    "v.mul_(2)",
    "v.zero_()",
    "v.add_(w.sum())",
    "v[0] = y",
    "w.mul_(y)",
    "w.add_(v.detach().sum())",
    "w.copy_(y.expand_as(w))",
    "w *= w.detach()",
    "z = (v * w.sum()).sum()",
    "z = z + (x * x).sum()",
    "z = z + (v * v).sum()",
    "z = z + (w * w * w).sum()",
    "v = x.chunk(2)[0]",
    "v = x.unbind(0)[-1]",
    "w = x.split(1)[-1]",
    "v.requires_grad_()",
    "x.requires_grad_()",
    "x.detach_()",
    "v.detach_()",
    "x.detach().mul_(0.5)",
    "x.data.add_(0.25)",
    "v.data.mul_(0.5)",
    "with T.no_grad(): v.mul_(0.5)",
    "with T.no_grad(): x[0] = 0.5",
    "with T.no_grad(): w = x[1:].t()",
    "with T.inference_mode(): v = x[0]",
    "with T.enable_grad(): w.add_(y)",
    "v.view_as(v).mul_(1.5)",
    "v[...].add_(y)",
    "x.fill_(0.5)",
    "v.fill_(y)",
    "x.copy_(x.flip(0))",
    "x = x * 1.5",
    "x = x.clone()",
)


def run(T: Any, program: list[str], second_order: bool) -> tuple[list[Any], Any]:
    leaf = T.tensor(np.linspace(-1.0, 1.3, 9).reshape(3, 3), requires_grad=True)
    y = T.tensor(0.7, dtype=T.float64, requires_grad=True)
    x = leaf * 1
    space: dict[str, Any] = {"T": T, "x": x, "y": y, "v": x[1], "w": x[:, 1:], "z": y * 0}
    seen: list[Any] = []
    for line in program:
        try:
            exec(line, space)
        except (RuntimeError, IndexError) as error:
            seen.append("IndexError" if isinstance(error, IndexError) else "RuntimeError")
            break
        for name in "xvw":
            t = space[name]
            seen.append((t.detach().clone(), t.requires_grad, t._version, t.is_contiguous()))
            try:
                seen.append((t.grad_fn is None, t.is_leaf))
            except RuntimeError:
                seen.append("no grad_fn")
    try:
        total = space["z"] + (space["x"] ** 2).sum() + space["v"].sum() + (space["w"] ** 3).sum()
        first = T.autograd.grad(total, [leaf, y], create_graph=second_order, materialize_grads=True)
        if not second_order:
            return seen, list(first)
        squares = sum((g * g).sum() for g in first)
        second = T.autograd.grad(squares, [leaf, y], materialize_grads=True) if squares.requires_grad else ()
        return seen, [g.detach() for g in (*first, *second)]
    except RuntimeError:
        return seen, None


@settings(max_examples=800)
@given(st.lists(st.sampled_from(LINES), min_size=2, max_size=9), st.booleans())
def test_views_of_tensors_that_change_their_shape(program: list[str], second_order: bool) -> None:
    seen, grads = run(rgrad, program, second_order)
    want_seen, want = run(torch, program, second_order)
    same(seen, want_seen, strides=False)
    if want is not None:
        assert grads is not None, "only rgrad refuses"
        same(grads, want, strides=False, factor=100)
