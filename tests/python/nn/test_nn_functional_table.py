"""docs/nn-functional.md says what is so: every row is computed again."""

from __future__ import annotations

import pytest

from loading import load
from nn_functional_calls import CALLS
from rgrad.nn import functional

TABLE = load("scripts/nn_functional_table.py")


def test_the_page_has_every_function_and_no_other() -> None:
    rows = [line for line in TABLE.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == TABLE.names()
    assert set(functional.__all__) <= set(CALLS)


@pytest.mark.wgpu
@pytest.mark.parametrize("name", TABLE.names())
def test_a_row_is_what_the_function_does(name: str) -> None:
    assert TABLE.line(TABLE.row(name)) in TABLE.PAGE.read_text(encoding="utf-8")
