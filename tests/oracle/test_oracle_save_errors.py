"""Files that `load` cannot read and places where `save` cannot write, beside PyTorch: types and key words."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402


def failure(run: Any) -> BaseException:
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


@pytest.mark.parametrize(
    ("kept", "words"), [(0, ""), (300, "failed finding central directory"), (-30, "failed finding central directory")]
)
def test_files_that_end_early(tmp_path: Path, kept: int, words: str) -> None:
    kinds = []
    for T in (rgrad, torch):
        file = io.BytesIO()
        T.save({"w": T.ones(100)}, file)
        path = tmp_path / T.__name__
        path.write_bytes(file.getvalue()[:kept])
        for source in (path, io.BytesIO(path.read_bytes())):
            error = failure(lambda T=T, source=source: T.load(source))
            assert words in str(error)
            kinds.append(next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins"))
    assert len(set(kinds)) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda T, folder: T.save({}, folder / "missing" / "x"), "Parent directory"),
        (lambda T, folder: T.load(folder / "missing"), "No such file or directory"),
        (lambda T, folder: T.load(3), "'int' object has no attribute 'seek'"),
        (lambda T, folder: T.load(folder), "Is a directory"),
    ],
)
def test_places(call: Any, words: str, tmp_path: Path) -> None:
    mine, theirs = (failure(lambda T=T: call(T, tmp_path)) for T in (rgrad, torch))
    assert words in str(mine)
    assert words in str(theirs)
    assert isinstance(mine, type(theirs))
