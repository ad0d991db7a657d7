"""Every path and every name on docs/architecture.md exists."""

from __future__ import annotations

import re
from functools import cache

import pytest

from places import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def code() -> list[str]:
    text = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


@cache
def sources() -> str:
    files = [
        p
        for folder, kind in (("src", "rs"), ("src", "wgsl"), ("python", "py"), ("scripts", "py"))
        for p in (ROOT / folder).rglob(f"*.{kind}")
    ]
    return "\n".join(p.read_text(encoding="utf-8") for p in files) + "".join(
        p.read_text() for p in (ROOT / "tests" / "rust").glob("*.rs")
    )


def is_path(text: str) -> bool:
    return ("/" in text and " " not in text) or bool(re.fullmatch(r"[\w]+\.(rs|py|md)", text))


def exists(path: str) -> bool:
    candidates = [ROOT / path, ROOT / "src" / path, ROOT / "src" / "kernels" / path]
    # A file that its sentence has placed already.
    return any(p.exists() for p in candidates) or ("/" not in path and any(ROOT.glob(f"src/**/{path}")))


@pytest.mark.parametrize("path", sorted({t for t in code() if is_path(t)} - {"./run"}))
def test_a_path_exists(path: str) -> None:
    assert exists(path), path


@pytest.mark.parametrize(
    "name", sorted({t for t in code() if not is_path(t) and re.fullmatch(r"[A-Za-z_][\w.:!]*", t)})
)
def test_a_name_exists(name: str) -> None:
    for part in re.split(r"::|\.", name.rstrip("!")):
        assert not part or re.search(rf"\b{part}\b", sources()), f"{part} of {name}"


def test_the_page_names_enough() -> None:
    assert sum(is_path(t) for t in code()) > 60
    assert not exists("autograd/door.rs")
    assert not re.search(r"\bNoSuchName\b", sources())
