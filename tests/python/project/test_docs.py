"""Every example of the documents runs, and prints what the document says."""

from __future__ import annotations

import contextlib
import gc
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rgrad
from pages import examples
from places import ROOT

PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))]
# What a page may leave out: code that starts a window, trains for minutes or needs what a reader has to bring.
# The programs for several processes run in tests/python/distributed.
NOT_RUN = {"docs/in-torchs-place.md": 1, "docs/several-machines.md": 2}
# Packages that a page's examples need, and rgrad itself does not.
NEEDS = {"docs/onnx.md": ("onnx", "onnxruntime")}


def marked(page: str) -> Any:
    """The page as a parameter; one whose examples need a device is a test on that device."""
    needs_device = any("wgpu" in example.code for example in examples(page) if example.run)
    return pytest.param(page, marks=pytest.mark.wgpu) if needs_device else page


@pytest.fixture
def _settings() -> Iterator[None]:
    """What an example sets for the whole process goes at the end of its page."""
    yield
    rgrad.set_default_device(None)
    rgrad.set_default_dtype(rgrad.float32)
    rgrad.set_printoptions(profile="default")


@pytest.mark.usefixtures("_settings")
@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    scope: dict[str, Any] = {"__name__": "__example__"}
    for example in examples(page):
        if not example.run:
            continue
        # As many empty lines before it as the page has: tracebacks and call sites then name the page's own lines.
        code = compile("\n" * (example.line - 1) + example.code, str(ROOT / page), "exec")
        printed = io.StringIO()
        # What the collector frees in the middle of an example would change the bytes that it compares.
        gc.collect()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, scope)
        if example.said is not None:
            assert printed.getvalue() == example.said, f"{page}:{example.line}"


def test_examples_that_are_not_run_are_counted() -> None:
    left_out = {page: sum(not e.run for e in examples(page)) for page in PAGES}
    assert {page: n for page, n in left_out.items() if n} == {page: n for page, n in NOT_RUN.items() if n}


def test_each_topic_has_a_page_with_examples_that_print() -> None:
    for topic in ("gradcheck", "hooks", "tensor-subclasses", "grad-modes", "forward-mode", "vmap", "transforms"):
        assert sum(e.said is not None for e in examples(f"docs/{topic}.md")) >= 3, topic
