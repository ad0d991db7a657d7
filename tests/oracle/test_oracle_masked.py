"""Masked reductions beside PyTorch, for the samples of its own tests: values, dtypes, gradients of both orders."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

from complex_samples import function_of, outcome  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

OPERATORS = [op for op in op_db if op.name.startswith("masked.")]


def test_there_are_operators() -> None:
    assert len(OPERATORS) == len({op.name for op in OPERATORS}) == 19


@pytest.mark.parametrize("kind", ["float64", "int64", "uint8"])
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_an_operator_holds(op: Any, kind: str) -> None:
    dtype = getattr(torch, kind)
    if dtype not in op.supported_dtypes("cpu"):
        assert not dtype.is_floating_point
        return
    graded = dtype.is_floating_point and op.supports_autograd
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=graded))
        # Where one operand of `logaddexp` is masked PyTorch's second derivative is nan, a product of 0 and infinity.
        order = (2 if op.supports_gradgrad and op.name != "masked.logaddexp" else 1) if graded else 0
        told = [outcome(op, function_of(op), s, dtype, order) for s in samples[:: max(1, len(samples) // 60)]]
    assert [t for t in told if t is not None] == []
