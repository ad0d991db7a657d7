"""The script that counts what a family of requests costs finds the places where it adds one."""

from __future__ import annotations

import pytest

from loading import load

toys = load("scripts/toys.py")


@pytest.mark.parametrize(("name", "most"), [("family", 9)])
def test_its_anchors_are_still_there(name: str, most: int) -> None:
    toy = toys.TOYS[name]
    assert toys.missing(toy) == []
    assert len({edit.file for edit in toy.edits}) <= most
