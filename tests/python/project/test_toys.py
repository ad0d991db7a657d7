"""The script that counts what a dtype and a family of requests cost finds the places where it adds one."""

from __future__ import annotations

import pytest

from loading import load

toys = load("scripts/toys.py")


@pytest.mark.parametrize(("name", "most"), [("dtype", 5), ("family", 9)])
def test_its_anchors_are_still_there(name: str, most: int) -> None:
    toy = toys.TOYS[name]
    assert toys.missing(toy) == []
    assert len({edit.file for edit in toy.edits}) <= most
