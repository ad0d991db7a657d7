"""Call sites find the user's frame wherever Python runs one, and objects of dead tensors are used again unseen."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rgrad
from rgrad import _core


def same_line() -> bool:
    """Whether the record names the line that Python's own interface names, for the frame of this very call."""
    said, line = _core._call_site(), sys._getframe().f_lineno
    return said == f"{__file__}:{line} in same_line"


class Ends:
    def __init__(self, said: list[Any]) -> None:
        self.said = said

    def __del__(self) -> None:
        self.said.append(_core._call_site())


def generator() -> Iterator[bool]:
    yield same_line()
    yield same_line()


async def coroutine() -> bool:
    return same_line()


def deep(n: int) -> bool:
    return deep(n - 1) if n else same_line()


def from_a_finalizer() -> bool:
    said: list[Any] = []
    Ends(said)
    return str(said[0]).endswith("in __del__")


def from_a_thread() -> bool:
    said: list[bool] = []
    thread = threading.Thread(target=lambda: said.append(same_line()))
    thread.start()
    thread.join()
    return said == [True]


def in_a_coroutine() -> bool:
    with pytest.raises(StopIteration) as stop:
        coroutine().send(None)
    return bool(stop.value.value)


def while_traced() -> bool:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        return same_line()
    finally:
        sys.settrace(before)


CALLS: dict[str, Callable[[], bool]] = {
    "a call": same_line,
    "a generator": lambda: list(generator()) == [True, True],
    "a coroutine": in_a_coroutine,
    "a key of sorted": lambda: sorted([2, 1], key=lambda x: x if same_line() else -x) == [1, 2],
    "a comprehension": lambda: [same_line() for _ in range(3)] == [True] * 3,
    "many frames": lambda: deep(200),
    "eval": lambda: bool(eval("same_line()")),
    "a finalizer": from_a_finalizer,
    "a thread": from_a_thread,
    "a trace": while_traced,
}


@pytest.mark.parametrize("where", CALLS)
def test_record_names_the_running_line(where: str) -> None:
    # The first time and the next ones go different ways.
    for _ in range(3):
        assert CALLS[where]()


def test_frames_of_the_package_are_passed_over() -> None:
    path = f"{rgrad.__path__[0]}/made_up.py"
    space: dict[str, Any] = {}
    exec(compile("def outer(f): return inner(f)\ndef inner(f): return f()\n", path, "exec"), space)
    line = sys._getframe().f_lineno + 1
    assert space["outer"](_core._call_site) == f"{__file__}:{line} in test_frames_of_the_package_are_passed_over"


def test_objects_of_dead_tensors_come_back_as_new() -> None:
    a = rgrad.ones(2)
    for round_ in range(3):
        # More than are kept for the next ones.
        made: list[Any] = [a + float(i) for i in range(200)]
        assert [t.tolist() for t in made] == [[1.0 + i] * 2 for i in range(200)]
        assert all(type(t) is rgrad.Tensor and gc.is_tracked(t) and not vars(t) for t in made)
        assert len({id(t) for t in made}) == 200
        dead: list[object] = []
        watched = [weakref.ref(t, dead.append) for i, t in enumerate(made) if i % 7 == round_]
        for i, t in enumerate(made):
            if i % 3 == 0:
                t.tag = i
        del t
        made.clear()
        assert len(dead) == len(watched)
        assert all(w() is None for w in watched)


def test_dead_objects_leave_neither_their_class_nor_cycles_behind() -> None:
    a = rgrad.ones(2)

    def work() -> None:
        for _ in range(500):
            t = a + a
            t.self = t
            del t
            a + a
        gc.collect()

    work()
    before = sys.getrefcount(rgrad.Tensor)
    objects = len(gc.get_objects())
    work()
    # As many as are kept at most.
    assert abs(sys.getrefcount(rgrad.Tensor) - before) <= 64
    assert abs(len(gc.get_objects()) - objects) <= 64
