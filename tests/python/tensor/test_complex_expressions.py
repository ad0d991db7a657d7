"""Expressions of complex tensors, beside their stored outcomes on PyTorch: values, texts and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rgrad
from complex_expressions import EXPRESSIONS, agrees, worded_outcome
from places import DATA

STORED = json.loads((DATA / "complex_expressions.json").read_text())

# What differs, and why. The list may only get shorter.
OTHERWISE = {
    "T.iinfo(T.complex64)": "PyTorch's message names itself in place of the dtype",
    'T.zeros(4).view("a")': "PyTorch lists the signatures of a function",
    "T.nn.functional.pad(T.tensor([1j]), (1,1), value=2j)": "the message is Python's",
}


def test_all_expressions_are_stored() -> None:
    assert list(STORED) == EXPRESSIONS
    assert set(OTHERWISE) <= set(EXPRESSIONS)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    mine = worded_outcome(lambda: eval(expression, {"T": rgrad, "np": np}), "rgrad")
    if expression in OTHERWISE:
        assert not agrees(mine, STORED[expression])
    else:
        assert agrees(mine, STORED[expression]), mine
