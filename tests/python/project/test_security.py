"""SECURITY.md names what there is."""

from __future__ import annotations

import functools
import re

import rgrad
from places import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_names_exist() -> None:
    names = [name for name in re.findall(r"`rgrad\.([\w.]+)", PAGE) if not name.startswith("_")]
    assert len(names) >= 4
    for name in names:
        assert functools.reduce(getattr, name.split("."), rgrad), name


def test_readme_leads_to_the_page() -> None:
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_newest_version_is_supported() -> None:
    assert f"Version {'.'.join(rgrad.__version__.split('.')[:2])} is the newest" in PAGE


def test_no_place_is_named_that_the_package_does_not_have() -> None:
    assert re.findall(r"https?://|[\w.]+@[\w.]+", PAGE) == []
