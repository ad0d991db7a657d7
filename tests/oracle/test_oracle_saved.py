"""What nodes keep, and what hooks around saved tensors see, on rgrad and on torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
import rotation  # noqa: E402
from op_kit import Op, Sample, as_tuple, leaves, told, views  # noqa: E402
from op_table import OPS as ALL  # noqa: E402

pytestmark = pytest.mark.oracle

# Functions that are several nodes here keep what those read.
OPS = [op for op in ALL if not op.composed]


def results(T: Any, op: Op, sample: Sample) -> tuple[list[Any], list[Any]]:
    leaf = leaves(T, sample, "float64", True)
    return leaf, [t for t in as_tuple(op.call(T, *views(sample, leaf), **sample.params)) if t.requires_grad]


def is_tensor(x: Any) -> bool:
    return isinstance(x, (rgrad.Tensor, torch.Tensor))


def kept(node: Any) -> dict[str, Any]:
    """What a node keeps: tensors as lists of numbers, by name."""
    found: dict[str, Any] = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            if is_tensor(value):
                found[name] = np.array(value.detach().numpy())
            elif isinstance(value, tuple) and any(map(is_tensor, value)):
                found[name] = [np.array(v.detach().numpy()) for v in value if is_tensor(v)]
    return found


@pytest.mark.parametrize("op", [op for op in OPS if op.grad != "none"], ids=lambda op: op.name)
def test_nodes_keep_the_same_tensors_under_the_same_names(op: Op) -> None:
    for sample in rotation.some(op.all_samples(), 2, f"nodes keep {op.name}"):
        with told(op, sample):
            compare_kept(op, sample)


def compare_kept(op: Op, sample: Sample) -> None:
    _, mine = results(rgrad, op, sample)
    _, theirs = results(torch, op, sample)
    for a, b in zip(mine, theirs, strict=True):
        if a.grad_fn is None or b.grad_fn is None or a.grad_fn.name() != b.grad_fn.name():
            continue  # names have a test of their own
        got, want = kept(a.grad_fn), kept(b.grad_fn)
        # Formulas differ in what they read; what both keep under one name is the same.
        for name in set(got) & set(want):
            one = isinstance(got[name], np.ndarray)
            if one != isinstance(want[name], np.ndarray) or (one and got[name].dtype != want[name].dtype):
                continue  # positions here, a mask there
            if one and got[name].ndim != want[name].ndim:
                continue  # a target as a row of its own
            for g, w in zip(*(([v] if one else v) for v in (got[name], want[name])), strict=False):
                if g.shape == w.shape and g.dtype == w.dtype:
                    np.testing.assert_allclose(g, w, rtol=1e-12, err_msg=name)


PROGRAMS: dict[str, Any] = {
    "mul": lambda T, x, y, w: x * y,
    "number": lambda T, x, y, w: (x * 2 + 1) / 3 - y,
    "div": lambda T, x, y, w: x / y,
    "chain": lambda T, x, y, w: ((x * y).exp() * x).tanh().sqrt(),
    "pow": lambda T, x, y, w: x**y + x**2,
    "product": lambda T, x, y, w: x @ w,
    "addmm": lambda T, x, y, w: T.addmm(w, x, w),
    "softmax": lambda T, x, y, w: x.softmax(1) + y.log_softmax(0),
    "reductions": lambda T, x, y, w: x.max() + x.max(1)[0] + x.logsumexp(0).sum() + x.prod(0).sum(),
    "std": lambda T, x, y, w: x.std(1) + x.var(0).sum(),
    "lerp": lambda T, x, y, w: T.lerp(x, y, x) + T.addcmul(x, x, y),
    "views": lambda T, x, y, w: x.t().reshape(-1)[2:].unsqueeze(0) * 3,
    "norm": lambda T, x, y, w: x.norm() + T.nn.functional.mse_loss(x, y),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks_see_the_same_in_the_same_order(name: str) -> None:
    seen = []
    for T in (rgrad, torch):
        x = T.tensor([[0.5, 1.5, 2.5], [1.0, 2.0, 0.25], [3.0, 0.75, 1.25]], dtype=T.float64, requires_grad=True)
        y, w = (x.detach().flip(i).requires_grad_() for i in (0, 1))
        log: list[Any] = []

        def pack(t: Any, log: list[Any] = log) -> Any:
            node = t.grad_fn.name() if t.grad_fn is not None else None
            log.append(("packed", t.detach().numpy().round(9).tolist(), node, t.requires_grad))
            return t.detach()

        def unpack(t: Any, log: list[Any] = log) -> Any:
            log.append(("unpacked", t.numpy().round(9).tolist()))
            return t

        with T.autograd.graph.saved_tensors_hooks(pack, unpack):
            out = PROGRAMS[name](T, x, y, w)
        out.sum().backward()
        seen.append((log, [None if t.grad is None else t.grad.numpy().round(9).tolist() for t in (x, y, w)]))
    assert seen[0] == seen[1]
