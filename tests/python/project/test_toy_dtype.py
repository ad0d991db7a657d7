"""The script that counts what a dtype costs finds the places where it adds one."""

from __future__ import annotations

from loading import load

toy_dtype = load("scripts/toy_dtype.py")


def test_its_anchors_are_still_there() -> None:
    assert toy_dtype.missing() == []
    assert len({edit.file for edit in toy_dtype.EDITS}) <= 5
