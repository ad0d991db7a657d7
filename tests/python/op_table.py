"""The table of operations that every suite shares: numeric gradients, NumPy values, the comparison with PyTorch."""

from __future__ import annotations

import pytest

import op_index
import op_linalg
import op_order
import op_pointwise
import op_reduce
import op_views
from op_kit import Op, Sample

OPS: list[Op] = [*op_pointwise.OPS, *op_reduce.OPS, *op_linalg.OPS, *op_index.OPS, *op_views.OPS, *op_order.OPS]
BY_NAME: dict[str, Op] = {op.name: op for op in OPS}
assert len(BY_NAME) == len(OPS), "two rows of one name"


def cases(*grads: str) -> list[object]:
    """pytest parameters (op, sample) of all rows, or of those with the given kinds of gradient."""
    return [
        pytest.param(op, s, id=f"{op.name}-{s.id}-{n}")
        for op in OPS
        if not grads or op.grad in grads
        for n, s in enumerate(op.all_samples())
    ]


def rows(*families: str) -> list[object]:
    return [pytest.param(op, id=op.name) for op in OPS if not families or op.family in families]


__all__ = ["BY_NAME", "OPS", "Op", "Sample", "cases", "rows"]
