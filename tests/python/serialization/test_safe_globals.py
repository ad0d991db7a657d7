"""Objects in files that are not trusted: what `load` may use for them, and what it refuses."""

from __future__ import annotations

import collections
import io
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import rgrad
from container_writer import container
from rgrad import nn, serialization


class Thing:
    def __init__(self, value: Any = None) -> None:
        self.value = value

    class Inner:
        pass


class Harmful:
    def __init__(self, call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


FORM = ["file"]


def written(obj: Any) -> io.BytesIO:
    """A file with an object: one of PyTorch's, or rgrad's own container."""
    if FORM == ["container"]:
        return container(obj)
    file = io.BytesIO()
    rgrad.save(obj, file)
    file.seek(0)
    return file


@pytest.fixture(autouse=True, params=["file", "container"])
def _nothing_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    FORM[:] = [request.param]
    serialization.clear_safe_globals()
    yield
    serialization.clear_safe_globals()
    FORM[:] = ["file"]


def test_objects_of_plain_classes_need_no_trust() -> None:
    obj = {"set": {1, 2}, "counter": collections.Counter("aab"), "bytes": bytearray(b"x")}
    found = rgrad.load(written(obj))
    assert found["set"] == {1, 2}
    assert found["counter"] == {"a": 2, "b": 1}


def test_allowed_classes_are_read_without_a_warning() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    file = written({"net": net, "thing": Thing(rgrad.ones(2))})
    name = f"{Thing.__module__}.Thing"
    package = "rgrad" if FORM == ["container"] else "torch"
    refused = [f"{package}.nn.modules.{rest}" for rest in ("activation.ReLU", "container.Sequential", "linear.Linear")]
    found = serialization.get_unsafe_globals_in_checkpoint(file)
    assert found == sorted([*refused, name])
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed.*Unsupported global: GLOBAL"):
        rgrad.load(file)
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
        with pytest.raises(pickle.UnpicklingError, match=rf"GLOBAL {name} was not an allowed global"):
            rgrad.load(file)
        serialization.add_safe_globals([Thing])
        back = rgrad.load(file, weights_only=True)
    assert repr(back["net"]) == repr(net)
    assert back["thing"].value.tolist() == [1.0, 1.0]
    assert serialization.get_safe_globals() == [Thing]
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        rgrad.load(file)


def test_a_name_in_files_may_be_another() -> None:
    file = written(Thing(1))
    serialization.add_safe_globals([(Thing.Inner, f"{Thing.__module__}.Thing")])
    assert type(rgrad.load(file)) is Thing.Inner


def test_classes_inside_of_classes() -> None:
    file = written(Thing.Inner())
    serialization.add_safe_globals([Thing])
    with pytest.raises(pickle.UnpicklingError, match=r"Thing\.Inner was not an allowed"):
        rgrad.load(file)
    serialization.add_safe_globals([Thing.Inner, Thing])
    assert type(rgrad.load(file)) is Thing.Inner


def test_some_modules_are_never_allowed() -> None:
    file = written(Harmful((os.getpid, ())))
    serialization.add_safe_globals([os.getpid])
    with pytest.raises(pickle.UnpicklingError, match=r"unsupported GLOBAL posix.getpid whose module posix is blocked"):
        rgrad.load(file)


@pytest.mark.parametrize("protocol", range(6))
def test_names_are_found_in_pickles_of_every_protocol(protocol: int) -> None:
    from rgrad._files import safe_globals

    # The same strings twice: later protocols look them up in the memo.
    obj = [Thing(1), Thing(2), {"a": nn.ReLU}, collections.OrderedDict(a=Thing)]
    found = safe_globals.named([pickle.dumps(obj, protocol)])
    assert {f"{Thing.__module__}.Thing", "rgrad.nn.modules.activation.ReLU", "collections.OrderedDict"} <= found


def test_what_is_hidden_from_the_search_is_refused_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(Thing(1))
    monkeypatch.setattr("rgrad._files.container_reader.safe_globals.unsafe", lambda pickles, permitted: [])
    with pytest.raises(pickle.UnpicklingError, match=r"Thing was not an allowed global"):
        rgrad.load(file)


def test_damaged_objects_are_one_clear_error() -> None:
    import zipfile

    whole = zipfile.ZipFile(written([Thing(1)]))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name in whole.namelist():
            is_pickle = name.startswith("objects/") or name.endswith("data.pkl")
            out.writestr(name, b"\xff\xfe" if is_pickle else whole.read(name))
    file.seek(0)
    with pytest.raises(RuntimeError, match="is damaged"):
        rgrad.load(file)


def test_entries_that_are_no_pairs() -> None:
    file = written(Thing(1))
    serialization.add_safe_globals([(Thing, "a", "b")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Expected tuple of length 2"):
        rgrad.load(file)
    serialization.clear_safe_globals()
    serialization.add_safe_globals([(Thing, 3)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="Expected second item in tuple to be str"):
        rgrad.load(file)


def test_a_file_that_is_no_archive_has_no_names() -> None:
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no"))
