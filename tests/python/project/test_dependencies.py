"""The crates that rgrad is built with: licences, sources, and that none is there in two versions (deny.toml)."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import Counter
from typing import Any

import pytest

from places import ROOT

DENY = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))


def cargo(*command: str) -> str:
    done = subprocess.run(
        ["cargo", *command, "--offline", "--locked"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages() -> list[dict[str, Any]]:
    """All crates of the lock file for this platform, those of tests as well."""
    found: list[dict[str, Any]] = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    return found


def allowed(licence: str) -> bool:
    """Whether an SPDX expression can be met: `AND` joins what all must hold, `OR` and the older `/` give a choice."""
    parts = [part.strip(" ()") for part in licence.split(" AND ")]
    names = set(DENY["licenses"]["allow"])
    return all(names & {name.strip(" ()") for name in re.split(r" OR |/", part)} for part in parts)


def test_the_rule() -> None:
    assert allowed("MIT OR GPL-3.0")
    assert allowed("(MIT OR Apache-2.0) AND Unicode-3.0")
    assert not allowed("(MIT OR Apache-2.0) AND GPL-3.0")
    assert not allowed("LGPL-2.1-or-later")


def test_licences(packages: list[dict[str, Any]]) -> None:
    assert len(packages) > 20
    assert [(p["name"], p["license"]) for p in packages if not allowed(p["license"] or "none")] == []


def test_sources(packages: list[dict[str, Any]]) -> None:
    elsewhere = {p["source"] for p in packages} - {None}
    assert all(source.startswith("registry+") for source in elsewhere), elsewhere
    assert {p["name"] for p in packages if p["source"] is None} == {"rgrad", "rgrad-kernels"}


def test_one_version_of_each(packages: list[dict[str, Any]]) -> None:
    twice = {name for name, count in Counter(p["name"] for p in packages).items() if count > 1}
    assert twice <= set(DENY["bans"]["skip"])
    # Of what the module itself is made of there is none.
    assert cargo("tree", "--edges", "normal", "--features", "python", "--duplicates").strip() == ""
