"""The names of graph nodes beside torch's: every differentiable operation of the table, and forms the table has not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from node_forms import FORMS, NAMED_ONLY, SETUP  # noqa: E402
from op_functions import COMPOSED  # noqa: E402
from op_kit import Op, Sample, as_tuple, leaves, views  # noqa: E402
from op_table import OPS  # noqa: E402

pytestmark = pytest.mark.oracle

# A product of tensors with any leading dimensions is one node here; torch folds and unfolds dimensions around its
# products of two or three dimensions, and shows the last of these steps.
UNFOLDED = {("BmmBackward0", "UnsafeViewBackward0")}
VIEWED = {("MmBackward0", "ViewBackward0")}
# One node here for any number of dimensions behind the class; torch views them as two.
ANY_DIMS = {("NllLoss2DBackward0", "ViewBackward0")}

# Composed here and in PyTorch, with the same last step.
SAME_LAST_NODE = {"cosine_similarity"}
# (rgrad's name, torch's name) by operation: all the differences there are.
DIFFERENT: dict[str, set[tuple[str, str]]] = {
    # rgrad has a derivative, torch refuses one.
    "c%x": {("RemainderBackward1", "NotImplemented")},
    "matmul": UNFOLDED
    | {
        ("SqueezeBackward4", "UnsafeViewBackward0"),
        ("BmmBackward0", "CloneBackward0"),
        ("BmmBackward0", "TransposeBackward0"),
    },
    "x@y": UNFOLDED,
    "b @ b.mT": UNFOLDED,
    "m @ b": {("BmmBackward0", "CloneBackward0")},
    "T.inner(m, n)": VIEWED,
    "T.tensordot(m, n, dims=([0], [0]))": VIEWED,
    # Where nothing is left to permute, nothing is permuted.
    "einsum": VIEWED
    | {
        ("BmmBackward0", "ViewBackward0"),
        ("PermuteBackward0", "ViewBackward0"),
        ("DiagonalBackward0", "PermuteBackward0"),
    },
    "T.einsum('ij,kj->ik', m, n)": VIEWED,
    "T.einsum('bij,bkj->bik', b, b)": {("BmmBackward0", "ViewBackward0")},
    "T.einsum('ii->i', q)": {("DiagonalBackward0", "PermuteBackward0")},
    "nll_loss": ANY_DIMS,
    "cross_entropy": ANY_DIMS,
    "F.nll_loss(b, i[[0, 1, 0, 1]].expand(2, 4), reduction='none')": ANY_DIMS,
    "F.cross_entropy(b, i[[0, 1, 0, 1]].expand(2, 4), reduction='none')": ANY_DIMS,
}


def names(out: Any) -> list[str]:
    """Of each result's node; a result that is no tensor, or has none, says so."""
    return [type(t.grad_fn).__name__ if hasattr(t, "grad_fn") else "-" for t in as_tuple(out)]


def of_operation(T: Any, op: Op, sample: Sample) -> list[str]:
    leaf = leaves(T, sample, "float64", requires_grad=True)
    return names(op.call(T, *views(sample, leaf), **sample.params))


def of_form(T: Any, code: str) -> list[str]:
    scope: dict[str, Any] = {"T": T}
    exec(SETUP, scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return names(eval(code, scope))


def compare(name: str, pairs: list[tuple[list[str], list[str]]]) -> None:
    """The names agree, but for the differences that DIFFERENT tells; and these are there."""
    found = set()
    for mine, theirs in pairs:
        assert len(mine) == len(theirs)
        found |= {(a, b) for a, b in zip(mine, theirs, strict=True) if a != b}
    assert found == DIFFERENT.get(name, set())


@pytest.mark.parametrize("op", [op for op in OPS if op.grad != "none" and not op.composed], ids=lambda op: op.name)
def test_names_of_operations(op: Op) -> None:
    """Over all samples of each row, of every result."""
    compare(op.name, [(of_operation(rgrad, op, s), of_operation(torch, op, s)) for s in op.all_samples()])


@pytest.mark.parametrize("code", FORMS + NAMED_ONLY)
def test_names_of_forms(code: str) -> None:
    compare(code, [(of_form(rgrad, code), of_form(torch, code))])


def test_composed_functions_have_nodes_of_their_own() -> None:
    """For each function that is said to be composed there is a sample at which the names differ."""
    composed = [op for op in OPS if op.composed]
    assert {op.name for op in composed} == set(COMPOSED)
    for op in composed:
        pairs = [(of_operation(rgrad, op, s), of_operation(torch, op, s)) for s in op.all_samples()]
        assert any(a != b for a, b in pairs) == (op.name not in SAME_LAST_NODE), op.name
        assert any(COMPOSED[op.name] in theirs for _, theirs in pairs), op.name


def test_the_list_of_differences_is_no_longer_than_it_must_be() -> None:
    assert set(DIFFERENT) <= {op.name for op in OPS} | set(FORMS)


def test_name_and_type_agree() -> None:
    for T in (rgrad, torch):
        x = T.ones(3, requires_grad=True)
        y = (x * 2).exp()
        assert y.grad_fn.name() == type(y.grad_fn).__name__ == "ExpBackward0"
        assert y.grad_fn.next_functions[0][0].name() == "MulBackward0"
        z = x * 1
        z[0] = 2.0
        assert type(z.grad_fn).__name__ == "CopySlices"
        assert z.grad_fn.name().rpartition("::")[2] == "CopySlices"
        leaf = z.grad_fn.next_functions[0][0].next_functions[0][0]
        assert type(leaf).__name__ == "AccumulateGrad"
        assert leaf.name().rpartition("::")[2] == "AccumulateGrad"
