"""docs/nn-and-optim.md says what is so: every row is computed again."""

from __future__ import annotations

import pytest

import rgrad
from devices import widest
from loading import load
from nn_module_calls import CASES, NOT_CALLED

TABLE = load("scripts/nn_and_optim_table.py")
TEXT = TABLE.PAGE.read_text(encoding="utf-8")
ALL = [(part, name) for part, listed in TABLE.names().items() for name in listed]


def section(part: str) -> str:
    return TEXT.split(f"## {part}\n")[1].split("\n## ")[0]


def test_the_page_has_every_name_and_no_other() -> None:
    for part, listed in TABLE.names().items():
        rows = [line.split("`")[1] for line in section(part).splitlines() if line.startswith("| `")]
        assert rows == listed
    assert {n for n in rgrad.nn.__all__ if isinstance(getattr(rgrad.nn, n), type)} == {*CASES, *NOT_CALLED}


def test_what_is_left_out_has_a_reason() -> None:
    missing = {(part, name): TABLE.left_out(part, name) for part, name in ALL}
    assert "missing" not in missing.values()
    given = {(part, name) for part, reasons in TABLE.LEFT_OUT.items() for name in reasons}
    assert given == {key for key, why in missing.items() if why is not None}


def cells(part: str, name: str) -> list[str]:
    (line,) = [line for line in section(part).splitlines() if line.startswith(f"| `{name}` |")]
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


@pytest.mark.parametrize(("part", "name"), ALL, ids=[f"{part}-{name}" for part, name in ALL])
def test_a_row_is_what_is_found(part: str, name: str) -> None:
    row = TABLE.row(part, name, dtype=None)
    told = cells(part, name)
    assert len(row) == len(told)
    assert all(found == TABLE.UNKNOWN or found == cell for found, cell in zip(row, told, strict=True))
    assert "no" not in row


ON_WGPU = [("nn", name) for name in CASES] + [
    ("optim", name) for name in filter(TABLE.is_optimizer, rgrad.optim.__all__)
]


@pytest.mark.wgpu
@pytest.mark.parametrize(("part", "name"), ON_WGPU, ids=[f"{part}-{name}" for part, name in ON_WGPU])
def test_wgpu_computes_the_same(part: str, name: str) -> None:
    """The page is about float64; adapters without it compute the same in float32."""
    told = cells(part, name)[1 + TABLE.COLUMNS[part].index("wgpu")]
    dtype = str(widest("wgpu")).removeprefix("rgrad.")
    assert TABLE.on_wgpu(part, name, dtype) == told == "yes"
