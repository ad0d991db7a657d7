"""The table of operations that every suite shares: numeric gradients, NumPy values, the comparison with PyTorch."""

from __future__ import annotations

import pytest

import op_activations
import op_attention
import op_conv
import op_functions
import op_index
import op_linalg
import op_norms
import op_order
import op_pointwise
import op_pool
import op_recurrent
import op_reduce
import op_views
from op_kit import Op

OPS: list[Op] = [
    *op_pointwise.OPS,
    *op_activations.OPS,
    *op_reduce.OPS,
    *op_linalg.OPS,
    *op_norms.OPS,
    *op_attention.OPS,
    *op_conv.OPS,
    *op_recurrent.OPS,
    *op_index.OPS,
    *op_views.OPS,
    *op_order.OPS,
    *op_pool.OPS,
    *op_functions.OPS,
]
BY_NAME: dict[str, Op] = {op.name: op for op in OPS}
assert len(BY_NAME) == len(OPS), "two rows of one name"


def rows(*families: str) -> list[object]:
    return [pytest.param(op, id=op.name) for op in OPS if not families or op.family in families]


__all__ = ["BY_NAME", "OPS", "Op", "rows"]
