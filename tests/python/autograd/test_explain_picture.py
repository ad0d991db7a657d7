"""The picture of an explained gradient: the path, where it is cut, and what is on its edges."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rgrad
from pages import examples
from places import PICTURES, WRITE
from rgrad.autograd.graph import GradientExplanation, explain

SVG = "{http://www.w3.org/2000/svg}"
RED = "#c0392b"


def leaf(*values: float) -> Any:
    return rgrad.tensor(values, requires_grad=True)


def drawn(found: GradientExplanation, **options: Any) -> ET.Element:
    return ET.fromstring(found.svg(**options))


def texts(root: ET.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def boxes(root: ET.Element) -> list[str]:
    """The titles of the boxes from above to below."""
    found = []
    for group in root.iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert text is not None
        found.append((float(rect.attrib["y"]), text.text or ""))
    assert found == sorted(found)
    return [title for _, title in found]


def exploding(steps: int) -> GradientExplanation:
    x = leaf(1.0)
    y = x
    for _ in range(steps):
        y = y * 10
    return explain(y.sum(), wrt=x, name="x")


def test_a_path_has_a_box_for_each_operation_and_its_norms() -> None:
    w = leaf(3.0, 4.0)
    found = explain((w * w).sum(), wrt=w, name="w")
    root = drawn(found)
    assert boxes(root) == ["SumBackward0", "MulBackward0", "w"]
    written = texts(root)
    assert written[0] == "The gradient with respect to w: arrives, with norm 10"
    # Both factors are the leaf.
    assert "norm 1.41 · rms 1 · shape (2,)" in written
    assert "norm 5 · rms 3.54 · shape (2,) · 1 other way, norm 5" in written
    assert any("test_explain_picture.py" in text for text in written)
    assert RED not in found.svg()


def test_a_cut_is_a_cross_with_the_line() -> None:
    w = leaf(1.0)
    found = explain((w.detach() * leaf(2.0)).sum(), wrt=w, name="w")
    root = drawn(found)
    assert boxes(root) == ["the tensor", "detach", "w"]
    written = texts(root)
    assert "no gradient goes on from here" in written
    assert any(text.startswith("what to do: leave out detach()") for text in written)
    assert found.cut is not None
    assert any(f"test_explain_picture.py:{found.cut.line.number} in test_a_cut" in text for text in written)
    # The cross.
    assert any(path.get("stroke") == RED for path in root.iter(f"{SVG}path"))


def test_where_there_is_no_path_the_picture_says_why() -> None:
    w = leaf(1.0)
    assert "no operation leads there" in texts(drawn(explain(leaf(1.0).sum(), wrt=w)))
    assert "it does not require grad" in texts(drawn(explain(leaf(1.0).sum(), wrt=rgrad.ones(1))))
    assert boxes(drawn(explain(w, wrt=w, name="w"))) == ["the tensor", "w"]


def test_the_first_trouble_is_red() -> None:
    x = leaf(0.0, 3.0)
    root = drawn(explain((x * x).sqrt().sum(), wrt=x, name="x"))
    red = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("fill") == RED][1:]
    assert [text.split(" · ")[0] for text in red if text.startswith("norm")] == ["norm inf", "norm nan"]
    filled = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect[@stroke='{RED}']") is not None]
    assert [group.findtext(f"{SVG}text") or texts(group)[0] for group in filled] == ["MulBackward0"]


def test_bars_show_orders_of_magnitude() -> None:
    root = drawn(exploding(4))
    full = [float(r.attrib["width"]) for r in root.iter(f"{SVG}rect") if r.get("fill") == "#eef1f4"]
    bars = [float(r.attrib["width"]) for r in root.iter(f"{SVG}rect") if r.get("fill") == "#6f9bd1"]
    assert len(full) == len(bars) == 5
    steps = [b - a for a, b in pairwise(bars)]
    assert bars == sorted(bars)
    assert bars[-1] == full[-1]
    assert max(steps) - min(steps) < 0.2


@pytest.mark.parametrize(("steps", "shown"), [(20, 6), (300, 6), (300, 1), (300, 1000)])
def test_of_a_long_path_the_middle_is_left_out(steps: int, shown: int) -> None:
    found = exploding(steps)
    root = drawn(found, shown=shown)
    most = min(steps + 2, 4 * shown + 2)
    titles = boxes(root)
    assert (titles[0], titles[-1]) == ("SumBackward0", "x")
    assert len(titles) <= most
    left_out = sum(int(text.removesuffix(" more")) for text in texts(root) if text.endswith(" more"))
    assert left_out == len(found.path) - (len(titles) - 1)
    # Nothing lies outside of the picture, and boxes lie below each other.
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    below = 0.0
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, w, h = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + w <= width
        assert y >= below
        assert y + h <= height
        below = y + h


def test_names_are_escaped_and_cut() -> None:
    w = leaf(1.0)
    name = "<layer & 'head'>" + "." + "x" * 200
    svg = explain((w * 2).sum(), wrt=w, name=name).svg()
    root = ET.fromstring(svg)
    assert all(len(title) <= 60 for title in boxes(root))
    assert boxes(root)[-1].startswith("<layer & 'head'>.xx")


def test_notebooks_and_files(tmp_path: Path) -> None:
    w = leaf(1.0)
    found = explain((w * 2).sum(), wrt=w)
    assert found._repr_svg_() == found.svg()
    assert found.svg() in found._repr_html_()
    found.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == found.svg()
    found.save(str(tmp_path / "a.html"), shown=2)
    assert "<!DOCTYPE html>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"ends in '\.png', expected \.svg or \.html"):
        found.save("a.png")
    with pytest.raises(ValueError, match="shown=0, expected 1 or more"):
        found.svg(shown=0)
    for wrong in (True, 1.5, "3"):
        with pytest.raises(TypeError, match="expected an int"):
            found.svg(shown=wrong)  # type: ignore[arg-type]


def test_the_picture_of_the_documents_is_current() -> None:
    page = "docs/memory-and-gradients.md"
    (example,) = [e for e in examples(page) if "picture = found.svg()" in e.code]
    scope: dict[str, Any] = {"__name__": "__example__", "rgrad": rgrad, "explain": explain}
    exec(compile("\n" * (example.line - 1) + example.code, page, "exec"), scope)
    file = PICTURES / "gradient-nan.svg"
    if os.environ.get(WRITE) == "1":
        file.write_text(scope["picture"], encoding="utf-8")
    assert file.read_text(encoding="utf-8") == scope["picture"], "RGRAD_WRITE_PICTURES=1 writes the pictures anew"
    assert re.search(r"norm nan", scope["picture"])
