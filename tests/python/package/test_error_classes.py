"""docs/differences.md lists rgrad's classes of errors, and what is raised is of them."""

from __future__ import annotations

import builtins
import re

import pytest

import rgrad
from places import ROOT

TABLE = dict(
    re.findall(
        r"^\| `(\w+Error)` \| `(\w+Error)` \|",
        (ROOT / "docs" / "differences.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
)


def test_the_table_has_every_class() -> None:
    found = {name: value for name in dir(rgrad) if isinstance(value := getattr(rgrad, name), type)}
    classes = {name for name, value in found.items() if issubclass(value, rgrad.RgradError)} - {"RgradError"}
    assert set(TABLE) == classes
    for name, builtin in TABLE.items():
        assert found[name].__bases__ == (rgrad.RgradError, getattr(builtins, builtin))


def backward_twice() -> None:
    x = rgrad.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("ShapeError", lambda: rgrad.ones(2) + rgrad.ones(3)),
        ("DTypeError", lambda: rgrad.ones(2, 2) @ rgrad.ones(2, 2, dtype=rgrad.float64)),
        ("GraphError", backward_twice),
        ("MissingError", lambda: rgrad.ones(2) & 1),
        ("OutOfMemoryError", lambda: rgrad.empty(2**60)),
        ("OutOfRangeError", lambda: rgrad.ones(2)[5]),
        ("ArgumentTypeError", lambda: rgrad.sin("x")),
        ("OperationError", lambda: rgrad.ones(2).sum().backward()),
    ],
)
def test_what_is_raised(name: str, call) -> None:
    with pytest.raises(getattr(rgrad, name)) as caught:
        call()
    assert type(caught.value).__name__ == name
    assert isinstance(caught.value, getattr(builtins, TABLE[name]))


def test_the_numbers_of_a_seed() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    said = re.search(r"`randn\(3\)` is `\[(.*?)\]`", page)
    assert said is not None
    rgrad.manual_seed(0)
    assert rgrad.randn(3).tolist() == pytest.approx([float(x) for x in said[1].split(",")], abs=5e-5)
