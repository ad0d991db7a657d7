"""Each difference that docs/differences.md lists is there: what rgrad does, and what PyTorch does instead."""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = pytest.mark.oracle

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"

# Title on the page: a program that sets `result`, what that is here, what it is there. A text is part of an error.
DIFFERENCES: dict[str, tuple[str, Any, Any]] = {
    "A write that fails leaves its target as it was": (
        """
        with T.inference_mode():
            x = T.zeros(2)
        try:
            x.fill_(1.0)
        except RuntimeError:
            pass
        result = x.tolist()
        """,
        [0.0, 0.0],
        [1.0, 1.0],
    ),
    "The source of a write by index may share memory with the target": (
        """
        x = T.tensor([1.0, 2.0, 3.0])
        x[T.tensor([2, 0])] = x[:2]
        result = x.tolist()
        """,
        [2.0, 2.0, 1.0],
        "refer to a single memory location",
    ),
    "An expanded tensor takes one number everywhere, and nothing else": (
        """
        x = T.zeros(1, 2).expand(3, 2)
        x.zero_()
        x.masked_fill_(T.tensor([True, False]), 1.0)
        result = x.tolist()
        """,
        "refers to a single memory location",
        [[1.0, 0.0]] * 3,
    ),
    "A view that is older than its base's history stays a view of it": (
        """
        x = T.zeros(2)
        v = x[0]
        y = T.ones(2, requires_grad=True)
        x.mul_(y)
        v.mul_(2.0)
        result = v.is_leaf
        """,
        False,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "A second pass is refused only where something was saved": (
        """
        x, y = T.ones(2, requires_grad=True), T.zeros(2)
        y[0] = x[0]
        y.sum().backward()
        y.sum().backward()
        result = x.grad.tolist()
        """,
        [2.0, 0.0],
        "backward through the graph a second time",
    ),
    "Operations save less": (
        """
        x, seen = T.ones(2, requires_grad=True), []
        with T.autograd.graph.saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)), lambda t: t):
            x.gather(0, T.tensor([0]))
        result = seen
        """,
        [(1,)],
        [(1,), (2,)],
    ),
    "Inference tensors keep their tangents": (
        """
        with T.inference_mode():
            x, t = T.ones(2), T.ones(2)
        with T.autograd.forward_ad.dual_level():
            tangent = T.autograd.forward_ad.unpack_dual(T.autograd.forward_ad.make_dual(x, t)).tangent
        result = None if tangent is None else tangent.tolist()
        """,
        [1.0, 1.0],
        None,
    ),
    "A tangent has the primal's dtype": (
        """
        with T.autograd.forward_ad.dual_level():
            x = T.autograd.forward_ad.make_dual(T.ones(2), T.ones(2, dtype=T.float64))
        result = None
        """,
        "same dtype as the primal",
        None,
    ),
    "No zeros are added to tangents": (
        """
        x, c = T.ones(2, requires_grad=True), T.ones(2)
        result = T.func.jvp(lambda x: x * c, (x,), (c,))[1].requires_grad
        """,
        False,
        True,
    ),
    "`jacfwd` takes expanded tensors": (
        """
        result = T.func.jacfwd(lambda x: x.sum())(T.ones(1).expand(3)).tolist()
        """,
        [1.0, 1.0, 1.0],
        "refers to a single memory location",
    ),
    "Hooks of several leaves run in `autograd.grad`": (
        """
        x, y, seen = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True), []
        T.autograd.graph.register_multi_grad_hook([x, y], lambda grads: seen.append([g is None for g in grads]))
        T.autograd.grad((x * y).sum(), [x, y])
        result = seen
        """,
        [[False, False]],
        "A leaf node was passed to _will_engine_execute_node",
    ),
    "`backward` takes as many gradients as tensors": (
        """
        x = T.ones((), requires_grad=True)
        T.autograd.backward([x * 2], [None, None])
        result = x.grad.item()
        """,
        "got 1 tensors and 2 gradients",
        2.0,
    ),
    "`setup_context` and keyword-only parameters": (
        """
        class Scale(T.autograd.Function):
            @staticmethod
            def forward(x, *, by=3.0):
                return x * by
            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
            @staticmethod
            def backward(ctx, *grads):
                return grads[0] * 3.0, None
        result = Scale.apply(T.ones(2)).tolist()
        """,
        [3.0, 3.0],
        "unexpected keyword argument 'by'",
    ),
    "Masks and positions are inputs of a node": (
        """
        x = T.ones(2, requires_grad=True)
        result = len(x[T.tensor([0])].grad_fn.next_functions)
        """,
        2,
        1,
    ),
    "Sums at one position are rounded once": (
        """
        one = T.ones(1000, dtype=T.bfloat16)
        result = T.zeros(1, dtype=T.bfloat16).index_add(0, T.zeros(1000, dtype=T.int64), one).tolist()
        """,
        [1000.0],
        [256.0],
    ),
    "An operation rounds once": (
        """
        result = T.logit(T.tensor([0.52], dtype=T.bfloat16)).tolist()
        """,
        [0.078125],
        [0.0751953125],
    ),
}


def outcome(T: Any, program: str) -> Any:
    scope: dict[str, Any] = {"T": T}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(textwrap.dedent(program), scope)
        except Exception as error:
            return str(error)
    return scope["result"]


def agrees(got: Any, want: Any) -> bool:
    return isinstance(got, str) and want in got if isinstance(want, str) else bool(got == want)


@pytest.mark.parametrize("title", DIFFERENCES)
def test_differences(title: str) -> None:
    program, here, there = DIFFERENCES[title]
    got, theirs = outcome(rgrad, program), outcome(torch, program)
    assert agrees(got, here), f"rgrad: {got}"
    assert agrees(theirs, there), f"PyTorch: {theirs}"
    assert got != theirs


def test_the_page_lists_these() -> None:
    assert re.findall(r"^- \*\*(.+?)\.\*\*", PAGE.read_text(), flags=re.MULTILINE) == list(DIFFERENCES)
