"""Anomaly mode says which forward output of a graph was not finite first."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.autograd import Function, set_detect_anomaly

pytestmark = pytest.mark.usefixtures("device")


def here() -> int:
    """The number of the line before the caller's."""
    return sys._getframe(1).f_lineno - 1


def leaf(*values: float) -> Any:
    return rgrad.tensor(values, requires_grad=True)


def forward_notes(run: Callable[[], Any]) -> list[str]:
    """The notes about the forward on the error of a backward pass."""
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = run()
        with pytest.raises(RuntimeError, match="returned nan values") as error:
            root.backward()
    return [note for note in error.value.__notes__ if note.startswith("Forward")]


def test_infinity_and_nan_in_their_order() -> None:
    lines = []

    def run() -> Any:
        x = leaf(0.0, 1.0) * 1
        y = x.log()
        lines.append(here())
        z = y * 0
        lines.append(here())
        return (z + 1).sum()

    (note,) = forward_notes(run)
    first, second = note.split("; ")
    assert first.startswith("Forward: the first output with an infinity is that of LogBackward0, recorded at ")
    assert f"{__file__}:{lines[0]} in run" in first
    assert second.startswith("the first output with a nan is that of MulBackward0, recorded at ")
    assert f"{__file__}:{lines[1]} in run" in second


def test_a_finite_forward() -> None:
    assert forward_notes(lambda: ((leaf(0.0, 1.0) * 1).sqrt() * 0).sum()) == [
        "Forward: every output of this graph was finite, so the nan was made in backward"
    ]


def test_a_sum_that_overflows_is_no_infinity() -> None:
    def run() -> Any:
        x = leaf(3e38, 3e38, 0.0)
        return ((x * 1).sqrt() * 0).sum()

    assert forward_notes(run) == ["Forward: every output of this graph was finite, so the nan was made in backward"]


def test_large_results_views_writes_and_functions() -> None:
    class Divides(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x / 0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * float("nan")

    def by_function() -> Any:
        return Divides.apply(leaf(1.0) * 1).sum()

    def by_write() -> Any:
        x = leaf(0.0, 1.0) * 1
        x[:1].log_()
        return (x * 0).sum()

    def by_program() -> Any:
        x = rgrad.zeros(300, 300, requires_grad=True)
        return ((x * 1).log() * 0).sum()

    for run, name in ((by_function, "DividesBackward"), (by_write, "LogBackward0"), (by_program, "LogBackward0")):
        (note,) = forward_notes(run)
        assert f"the first output with an infinity is that of {name}" in note or "CopySlices" in note, note


def test_graphs_that_were_recorded_before_say_nothing() -> None:
    x = leaf(0.0, 1.0) * 1
    root = (x.sqrt() * 0).sum()
    assert forward_notes(lambda: root) == []


def test_other_graphs_do_not_matter() -> None:
    def run() -> Any:
        (leaf(0.0) * 1).log()
        return ((leaf(0.0, 1.0) * 1).sqrt() * 0).sum()

    assert forward_notes(run) == ["Forward: every output of this graph was finite, so the nan was made in backward"]


def test_nothing_is_looked_at_without_the_check() -> None:
    with set_detect_anomaly(True, check_nan=False):
        root = ((leaf(0.0, 1.0) * 1).log() * 0).sum()
    assert forward_notes(lambda: root) == []


@pytest.mark.cpu_only
def test_tensors_without_values_are_not_looked_at() -> None:
    with set_detect_anomaly(True):
        x = rgrad.ones(3, device="meta", requires_grad=True)
        assert (x * 2).log().sum().device.type == "meta"


@pytest.mark.cpu_only
def test_small_operations_take_the_fast_path_again() -> None:
    with set_detect_anomaly(True):
        pass
    assert not rgrad.is_anomaly_enabled()
    assert rgrad._core._set_fast_path(True)
    (note,) = forward_notes(lambda: ((leaf(0.0) * 1).log() * 0).sum())
    assert "LogBackward0" in note
