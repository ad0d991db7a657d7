"""What notebooks show: well-formed HTML and SVG, in which names are text and never markup."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

import rgrad
from rgrad import memory, nn
from rgrad.autograd.graph import draw

EVIL = '<evil a="1">&\''
#: Elements without an end tag.
VOID = {"br", "img", "hr"}


class Checker(HTMLParser):
    """Every element is closed, and in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        # An ampersand or a bracket in a text that was escaped is a reference, not data.
        assert not set(data) & set("<&"), data
        self.text += data

    def handle_entityref(self, name: str) -> None:
        assert name in {"lt", "gt", "amp", "quot", "nbsp"}, name

    def handle_charref(self, name: str) -> None:
        assert name.lstrip("x").isalnum(), name


def check(html: str) -> set[str]:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert "evil" not in checker.tags
    # SVG and the HTML here are XML, too, but for elements without an end tag.
    ElementTree.fromstring(f"<all>{html.replace('<br>', '<br/>').replace('&nbsp;', ' ')}</all>")
    return checker.tags


class Evil(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # A name of a module must have no dot, anything else it may have.
        self.add_module(EVIL, type(EVIL, (nn.Linear,), {})(4, 4))
        self.last = nn.Linear(4, 1)

    def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
        return self.last(self._modules[EVIL](x)).sum()  # type: ignore[misc]


def from_an_evil_file(memory_of: bool) -> Any:
    """A result that was recorded in a function and a file of such a name."""
    scope: dict[str, Any] = {"rgrad": rgrad}
    made = "rgrad.ones(300, 300)" if memory_of else "rgrad.ones(3, requires_grad=True) * 2"
    exec(compile(f"def f():\n    return {made}\n", f"{EVIL}.py", "exec"), scope)
    return scope["f"]()


def recorded(device: str) -> memory.Snapshot:
    with memory.record() as recording:
        model = Evil().to(device)
        kept = model(rgrad.ones(2, 4, device=device)), from_an_evil_file(True)
    del kept
    return recording.snapshot()


SHOWN: list[tuple[str, Callable[[str], str]]] = [
    ("model", lambda d: draw(Evil(), rgrad.ones(2, 4))._repr_html_()),
    ("model as SVG", lambda d: draw(Evil(), rgrad.ones(2, 4))._repr_svg_()),
    ("folded", lambda d: draw(Evil(), rgrad.ones(2, 4), depth=0)._repr_html_()),
    ("names", lambda d: draw((x := rgrad.ones(3, requires_grad=True)) * 2, params={EVIL: x})._repr_html_()),
    ("lines", lambda d: draw(from_an_evil_file(False), group="function")._repr_html_()),
    ("gradients", lambda d: draw(from_an_evil_file(False).sum(), gradients=True)._repr_html_()),
    ("summary", lambda d: rgrad.summary(Evil(), rgrad.ones(2, 4))._repr_html_()),
    ("parameters", lambda d: rgrad.summary(Evil())._repr_html_()),
    ("memory by line", lambda d: recorded(d).svg("line")),
    ("memory by module", lambda d: recorded(d).svg("module")),
    ("memory", lambda d: recorded(d)._repr_svg_()),
    ("tensor", lambda d: rgrad.randn(5, 7, requires_grad=True)._repr_html_()),
    ("result", lambda d: (rgrad.randn(5, requires_grad=True) * 2)._repr_html_()),
    ("parameter", lambda d: nn.Linear(3, 2).weight._repr_html_()),
    ("number", lambda d: rgrad.tensor(1.0)._repr_html_()),
    ("empty", lambda d: rgrad.ones(0)._repr_html_()),
    ("nan", lambda d: rgrad.tensor([float("nan"), float("inf"), 1.0])._repr_html_()),
    ("subclass", lambda d: rgrad.ones(3).as_subclass(type(EVIL, (rgrad.Tensor,), {}))._repr_html_()),
]


@pytest.mark.parametrize(("name", "show"), SHOWN, ids=[name for name, _ in SHOWN])
def test_what_is_shown_is_well_formed(name: str, show: Callable[[str], str], device: str) -> None:
    assert check(show(device)) & {"svg", "table", "pre"}


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "html", ["<b>", "<b></i>", "<p>a & b</p>", "<evil></evil>", '<p a="1" a="2"></p>', "<p><b></p></b>"]
)
def test_the_check_finds_what_is_wrong(html: str) -> None:
    with pytest.raises((AssertionError, ElementTree.ParseError)):
        check(html)


@pytest.mark.cpu_only
def test_names_are_there_as_text() -> None:
    assert EVIL in unescape(draw(Evil(), rgrad.ones(2, 4)).svg)
    assert EVIL in unescape(rgrad.summary(Evil(), rgrad.ones(2, 4))._repr_html_())
