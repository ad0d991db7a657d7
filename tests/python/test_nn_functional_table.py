"""docs/nn-functional.md says what is so: every row is computed again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from nn_functional_calls import CALLS
from rgrad.nn import functional

ROOT = Path(__file__).resolve().parents[2]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("nn_functional_table", ROOT / "scripts" / "nn_functional_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLE = script()


def test_the_page_has_every_function_and_no_other() -> None:
    rows = [line for line in TABLE.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == TABLE.names()
    assert set(functional.__all__) <= set(CALLS)


@pytest.mark.wgpu
@pytest.mark.parametrize("name", TABLE.names())
def test_a_row_is_what_the_function_does(name: str) -> None:
    assert TABLE.line(TABLE.row(name)) in TABLE.PAGE.read_text(encoding="utf-8")
