"""The stored outcomes of expressions of complex tensors are those of the torch that is installed."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from complex_expressions import EXPRESSIONS, worded_outcome  # noqa: E402
from places import DATA  # noqa: E402

pytestmark = pytest.mark.oracle

STORED = json.loads((DATA / "complex_expressions.json").read_text())


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    assert worded_outcome(lambda: eval(expression, {"T": torch, "np": np}), "torch") == STORED[expression]
