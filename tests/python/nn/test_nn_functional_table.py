"""docs/nn-functional.md says what is so: every row is computed again."""

from __future__ import annotations

import pytest

import rgrad
from devices import widest
from loading import load
from nn_functional_calls import CALLS
from rgrad.nn import functional

TABLE = load("scripts/nn_functional_table.py")
TEXT = TABLE.PAGE.read_text(encoding="utf-8")


def test_the_page_has_every_function_and_no_other() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == TABLE.names()
    assert set(functional.__all__) <= set(CALLS)


def cells(name: str) -> list[str]:
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{name}` |")]
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


@pytest.mark.parametrize("name", TABLE.names())
def test_a_row_is_what_the_function_does(name: str) -> None:
    first, here, _, *derivatives = cells(name)
    assert TABLE.row(name, devices=["cpu"]) == (first, here, *derivatives)


@pytest.mark.wgpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.names())
def test_a_row_is_what_the_function_does_on_wgpu(name: str) -> None:
    """The page is about adapters with float64; on others the rest of it is so."""
    tried = [dtype for dtype in TABLE.DTYPES if dtype != "float64" or widest("wgpu") == rgrad.float64]
    wanted = [dtype for dtype in TABLE.listed(cells(name)[2]) if dtype in tried]
    assert TABLE.dtypes_of(name, "wgpu", tried) == wanted
