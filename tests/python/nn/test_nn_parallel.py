"""`nn.parallel` where there are no CUDA devices: what needs none works, the rest says so."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import nn
from rgrad.nn import parallel

Pair = namedtuple("Pair", ["left", "right"])


def test_objects_are_scattered_as_they_are() -> None:
    assert parallel.scatter((1, "a", [2]), ["cpu", "cpu"]) == [(1, "a", [2]), (1, "a", [2])]
    assert parallel.scatter({"a": 1}, [0, 1]) == [{"a": 1}, {"a": 1}]
    assert parallel.scatter(Pair(1, 2), [0]) == [Pair(1, 2)]
    assert parallel.scatter((), [0]) == [()]
    assert parallel.scatter((1, 2), []) == []


def test_tensors_are_scattered_over_the_cpu() -> None:
    x = rgrad.arange(6.0).reshape(3, 2)
    parts = parallel.scatter({"x": [x], "n": 1}, [-1, -1])
    assert [part["x"][0].tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [part["n"] for part in parts] == [1, 1]
    assert [part.tolist() for part in parallel.scatter(x, [-1, -1], dim=1)] == [[[0], [2], [4]], [[1], [3], [5]]]


def test_replicas_without_parameters() -> None:
    first, second = parallel.replicate(nn.Sequential(nn.ReLU()), [0, 1])
    assert first is not second
    assert first(rgrad.tensor([-1.0, 1.0])).tolist() == [0, 1]
    assert parallel.replicate(nn.Linear(2, 2), []) == []


NET, X = nn.Linear(3, 2), rgrad.ones(4, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: parallel.replicate(NET, ["cpu"]), ValueError, "Expected a non cpu device, but got: cpu"),
        (lambda: parallel.replicate(NET, [0]), AssertionError, "Broadcast function not implemented for CPU tensors"),
        (lambda: parallel.replicate(NET, [0], True), RuntimeError, "All tensors must be on devices"),
        (lambda: parallel.replicate(NET, [1.5]), ValueError, "index or an integer"),
        (lambda: parallel.scatter(X, ["cpu"]), ValueError, "Expected a non cpu device"),
        (lambda: parallel.scatter(X, []), RuntimeError, "Expected at least one device to scatter to"),
        (lambda: parallel.scatter([X], [0]), RuntimeError, "Found no NVIDIA driver"),
        (lambda: parallel.scatter([X], [None]), ValueError, "index or an integer"),
        (lambda: parallel.gather([X, X], "cpu"), AssertionError, "Gather function not implemented for CPU tensors"),
        (lambda: parallel.gather([[X], [X]], -1), AssertionError, "Gather function not implemented"),
        (lambda: parallel.gather([], "cpu"), IndexError, "out of range"),
        (lambda: parallel.gather([{"a": X}, {}], "cpu"), ValueError, "same number of keys"),
        (lambda: parallel.parallel_apply([NET], [X, X]), AssertionError, "is not equal to the number of inputs 2"),
        (
            lambda: parallel.parallel_apply([NET], [X], None, ["cpu"]),
            ValueError,
            "Expected a cuda device, but got: cpu",
        ),
        (lambda: parallel.parallel_apply([NET], [X]), RuntimeError, "Found no NVIDIA driver"),
        (lambda: parallel.data_parallel(NET, X), RuntimeError, "device type could not be determined"),
    ],
)
def test_what_needs_devices(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_the_wrapper_has_the_parts_as_methods() -> None:
    net = nn.DataParallel(NET)
    assert rgrad.equal(net(X), NET(X))
    (inputs, names) = net.scatter((X,), {"n": 1}, [-1, -1])
    assert [part[0].shape for part in inputs] == [(2, 3), (2, 3)]
    assert names == ({"n": 1}, {"n": 1})
    with pytest.raises(AssertionError, match="Broadcast"):
        net.replicate(NET, [0])
    with pytest.raises(AssertionError, match="Gather"):
        net.gather([X], 0)
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver"):
        net.parallel_apply([], [], None)
