"""The pictures of the documents are what the examples on their pages draw. RGRAD_WRITE_PICTURES=1 writes them anew."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pages import examples
from pixels import pixels
from places import PICTURES, ROOT, WRITE


def of_notebook(html: str) -> str:
    """The pictures of a tensor side by side, as a notebook shows them."""
    parts = re.findall(r"<svg .*?</svg>", html, flags=re.DOTALL)
    sizes = [(float(m[1]), float(m[2])) for part in parts if (m := re.search(r'width="(\d+)" height="(\d+)"', part))]
    height = max(h for _, h in sizes)
    out, x = [], 0.0
    for part, (w, h) in zip(parts, sizes, strict=True):
        out.append(part.replace("<svg ", f'<svg x="{x:g}" y="{height - h:g}" ', 1))
        x += w + 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{x:g}" height="{height:g}">'
    return f'{head}<rect width="{x:g}" height="{height:g}" fill="#ffffff"/>{"".join(out)}</svg>\n'


# By file: how it is made of what the examples of the page define.
DRAWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "graph-small.svg": lambda scope: scope["small"].svg,
    "graph-blocks.svg": lambda scope: scope["blocks"].svg,
    "graph-resnet18.svg": lambda scope: scope["overview"].svg,
    "tensor.svg": lambda scope: of_notebook(scope["shown"]._repr_html_()),
}


def comparable(svg: str) -> str:
    """Images as their pixels: zlib may compress them in several ways."""

    def decoded(found: re.Match[str]) -> str:
        width, height, _, data = pixels(base64.b64decode(found[1]))
        return f"{width} x {height} {hashlib.sha256(data).hexdigest()}"

    return re.sub(r"data:image/png;base64,([^\"]*)", decoded, svg)


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples of the page define."""
    found: dict[str, Any] = {"__name__": "__example__"}
    for example in examples("docs/drawing.md"):
        code = "\n" * (example.line - 1) + example.code
        exec(compile(code, "docs/drawing.md", "exec"), found)
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_current(name: str, scope: dict[str, Any]) -> None:
    svg = DRAWN[name](scope)
    file = PICTURES / name
    if os.environ.get(WRITE) == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(svg, encoding="utf-8")
    assert comparable(file.read_text(encoding="utf-8")) == comparable(svg), (
        "RGRAD_WRITE_PICTURES=1 writes the pictures anew"
    )
    ET.fromstring(svg)
    assert len(svg) < 100_000


def test_every_picture_is_shown_and_every_shown_one_exists() -> None:
    shown = set()
    for page in Path(ROOT / "docs").glob("*.md"):
        for text, target in re.findall(r"!\[([^\]]*)\]\(pictures/([^)]*)\)", page.read_text(encoding="utf-8")):
            assert len(text) > 10, f"{page.name}: {target} needs a description"
            shown.add(target)
    # Other pages may have pictures of their own, with tests of their own; those named here are all there.
    assert set(DRAWN) <= shown
    assert [name for name in shown if not (PICTURES / name).is_file()] == []
    assert {p.name for p in PICTURES.iterdir()} == shown
