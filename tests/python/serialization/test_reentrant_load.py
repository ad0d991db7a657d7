"""Loads inside of loads, and beside them: in signal handlers, in threads, in classes that are being read."""

from __future__ import annotations

import contextvars
import io
import mmap
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rgrad
from rgrad import nn, serialization
from rgrad.serialization import safe_globals


class Inner:
    def __init__(self, value: Any = None) -> None:
        self.value = value


class Loading:
    """Reads another file while it is read."""

    file: Any = None

    def __setstate__(self, state: Any) -> None:
        with safe_globals([Inner]):
            self.found = rgrad.load(type(self).file)


@pytest.fixture(autouse=True)
def _nothing_allowed() -> Iterator[None]:
    serialization.clear_safe_globals()
    yield
    serialization.clear_safe_globals()


def written(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    rgrad.save(obj, file)
    file.seek(0)
    return file


class Interrupted(io.BytesIO):
    """A file that lets something else happen at every read."""

    def __init__(self, data: bytes, meanwhile: Callable[[], None]) -> None:
        super().__init__(data)
        self.meanwhile = meanwhile

    def readinto(self, target: Any) -> int:
        self.meanwhile()
        return super().readinto(target)

    def read(self, size: int | None = -1) -> bytes:
        self.meanwhile()
        return super().read(size)


def other() -> None:
    with safe_globals([Inner, nn.Linear]):
        found = rgrad.load(written({"inner": Inner(rgrad.ones(2)), "w": rgrad.zeros(3)}))
    assert found["inner"].value.tolist() == [1.0, 1.0]
    assert found["w"].tolist() == [0.0] * 3


def test_a_signal_handler_may_load_while_a_load_is_under_way() -> None:
    calls = []

    def handle(number: int, frame: Any) -> None:
        calls.append(number)
        other()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        file = Interrupted(
            written({"layer": nn.ReLU(), "w": rgrad.arange(5.0)}).getvalue(),
            lambda: signal.raise_signal(signal.SIGUSR1),
        )
        with safe_globals([nn.ReLU]):
            found = rgrad.load(file)
            assert serialization.get_safe_globals() == [nn.ReLU]
        with pytest.raises(pickle.UnpicklingError, match="ReLU was not an allowed global"):
            rgrad.load(file)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(calls) > 4
    assert type(found["layer"]) is nn.ReLU
    assert found["w"].tolist() == [0, 1, 2, 3, 4]
    assert serialization.get_safe_globals() == []


def loading() -> Loading:
    made = Loading()
    made.state = 1  # type: ignore[attr-defined]
    return made


def test_a_class_may_load_while_it_is_read() -> None:
    Loading.file = written(Inner(3))
    with safe_globals([Loading]):
        found = rgrad.load(written(loading()))
        assert found.found.value == 3
        # What the class allowed for its own file does not hold for this one.
        with pytest.raises(pickle.UnpicklingError, match="Inner was not an allowed global"):
            rgrad.load(written([loading(), Inner(1)]))


def test_blocks_inside_of_each_other() -> None:
    with safe_globals([Inner]):
        with safe_globals([Inner, nn.ReLU]):
            assert set(serialization.get_safe_globals()) == {Inner, nn.ReLU}
        assert serialization.get_safe_globals() == [Inner]
        assert rgrad.load(written(Inner(1))).value == 1
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([Inner])
    with safe_globals([Inner]):
        pass
    # The block has taken back what it had given, and nothing else.
    assert serialization.get_safe_globals() == [Inner]


def test_a_block_whose_names_are_cleared() -> None:
    with safe_globals([Inner]), safe_globals([nn.ReLU]):
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
        serialization.add_safe_globals([nn.Linear])
    assert serialization.get_safe_globals() == [nn.Linear]


def in_a_thread(work: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(contextvars.Context().run(work)))
    thread.start()
    thread.join()
    return found[0]


def test_blocks_are_those_of_their_thread() -> None:
    with safe_globals([Inner]):
        assert in_a_thread(serialization.get_safe_globals) == []
        serialization.add_safe_globals([nn.ReLU])
        assert in_a_thread(serialization.get_safe_globals) == [nn.ReLU]


def test_the_kind_of_maps_is_that_of_its_block_and_thread() -> None:
    kind, options = serialization.get_default_mmap_options, serialization.set_default_mmap_options
    with options(mmap.MAP_SHARED):
        assert kind() == mmap.MAP_SHARED
        assert in_a_thread(kind) == mmap.MAP_PRIVATE
        with options(mmap.MAP_PRIVATE):
            assert kind() == mmap.MAP_PRIVATE
            options(mmap.MAP_SHARED)
            assert kind() == mmap.MAP_SHARED
        assert kind() == mmap.MAP_SHARED
    assert kind() == mmap.MAP_PRIVATE
    try:
        options(mmap.MAP_SHARED)
        assert kind() == in_a_thread(kind) == mmap.MAP_SHARED
    finally:
        options(mmap.MAP_PRIVATE)
