"""The files of tests/typing say with assert_type what comes back. mypy checks them with the package, pyright in
tests/oracle; here they run, and what comes back is looked at.
"""

from __future__ import annotations

import runpy
import typing
from pathlib import Path
from typing import Any

import pytest

from type_kit import holds

FILES = sorted((Path(__file__).resolve().parents[2] / "typing").glob("*.py"))


def test_there_are_files() -> None:
    assert [file.stem for file in FILES] == ["derivatives", "flags", "results"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_comes_back_is_of_the_asserted_type(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0

    def check(value: Any, kind: Any) -> Any:
        nonlocal seen
        seen += 1
        assert holds(value, kind), f"{type(value)} is no {kind}"
        return value

    monkeypatch.setattr(typing, "assert_type", check)
    runpy.run_path(str(file))
    assert seen == file.read_text(encoding="utf-8").count("assert_type(")
