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


class Thing:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_what_was_allowed_is_loaded() -> None:
    name = f"{Thing.__module__}.Thing"
    for T in (rgrad, torch):
        file = io.BytesIO()
        T.save({"set": {1}, "thing": Thing(T.ones(2)), "layer": T.nn.ReLU()}, file)
        file.seek(0)
        unsafe = T.serialization.get_unsafe_globals_in_checkpoint(file)
        assert sorted(unsafe) == sorted([name, "torch.nn.modules.activation.ReLU"])
        with T.serialization.safe_globals([T.nn.ReLU]):
            file.seek(0)
            error = failure(lambda T=T, file=file: T.load(file))
            assert type(error).__name__ == "UnpicklingError"
            for words in (
                "Weights only load failed",
                f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use",
                f"serialization.add_safe_globals([{name}])`",
                "weights_only",
            ):
                assert words in str(error)
            before = T.serialization.get_safe_globals()
            T.serialization.add_safe_globals([Thing])
            file.seek(0)
            assert T.load(file, weights_only=True)["thing"].value.tolist() == [1.0, 1.0]
            assert {*T.serialization.get_safe_globals()} == {*before, Thing}
        assert T.nn.ReLU not in T.serialization.get_safe_globals()
        T.serialization.clear_safe_globals()
        assert T.serialization.get_safe_globals() == []
        file.seek(0)
        assert type(failure(lambda T=T, file=file: T.load(file))).__name__ == "UnpicklingError"


def saved(T: Any) -> io.BytesIO:
    file = io.BytesIO()
    T.save(1, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "call",
    [
        lambda T: T.serialization.set_default_load_endianness("x"),
        lambda T: T.serialization.set_default_mmap_options("a"),
        lambda T: T.serialization.add_safe_globals(3),
        lambda T: T.load(saved(T), mmap=True),
        lambda T: T.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no")),
    ],
)
def test_options_of_files(call: Any) -> None:
    mine, theirs = (failure(lambda T=T: call(T)) for T in (rgrad, torch))
    assert isinstance(mine, type(theirs))
    assert str(mine).replace("rgrad", "torch") == str(theirs)


def test_defaults_of_files() -> None:
    for name in ("get_default_mmap_options", "get_default_load_endianness", "get_crc32_options"):
        assert getattr(rgrad.serialization, name)() == getattr(torch.serialization, name)()
