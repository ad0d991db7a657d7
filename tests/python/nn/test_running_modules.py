"""The one place that tells which modules run, for profiles, counters and recordings of memory."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import rgrad
from rgrad import memory, nn
from rgrad.nn.modules import _global_hooks
from rgrad.nn.modules._running_modules import Running, RunningModules
from rgrad.profiler import profile
from rgrad.utils.flop_counter import FlopCounterMode

pytestmark = pytest.mark.cpu_only


class Failing(nn.Module):
    def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
        raise ValueError("no")


class Watched:
    """Notes calls as text."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.watch = RunningModules(self.enter, lambda name: self.seen.append(f"-{name}"))

    def enter(self, module: Any, around: Running[str] | None) -> str:
        name = (f"{around.state}." if around else "") + type(module).__name__
        self.seen.append(name)
        return name


def test_calls_nest_and_end_with_errors() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Sequential(Failing()))
    watched = Watched()
    with pytest.raises(ValueError, match="no"):
        model(rgrad.ones(2))
    nn.Tanh()(rgrad.ones(2))
    watched.watch.stop()
    nn.Tanh()(rgrad.ones(2))
    inner = "Sequential.Sequential"
    assert watched.seen == [
        "Sequential",
        "Sequential.ReLU",
        "-Sequential.ReLU",
        inner,
        f"{inner}.Failing",
        f"-{inner}.Failing",
        f"-{inner}",
        "-Sequential",
        "Tanh",
        "-Tanh",
    ]
    assert not _global_hooks.hooked()


def test_a_call_that_began_before_is_not_told_of() -> None:
    found: list[Watched] = []

    class Starts(nn.Module):
        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            found.append(Watched())
            return nn.Tanh()(x)

    Starts()(rgrad.ones(2))
    found[0].watch.stop()
    assert found[0].seen == ["Tanh", "-Tanh"]


def test_threads_have_their_own_nesting() -> None:
    watched = Watched()

    class Starts(nn.Module):
        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            other = threading.Thread(target=lambda: nn.Tanh()(x))
            other.start()
            other.join()
            return x

    Starts()(rgrad.ones(2))
    watched.watch.stop()
    assert watched.seen == ["Starts", "Tanh", "-Tanh", "-Starts"]


def test_what_runs_at_the_end_is_left() -> None:
    watched = Watched()

    class Stops(nn.Module):
        def forward(self, x: rgrad.Tensor) -> rgrad.Tensor:
            watched.watch.stop()
            return x

    Stops()(rgrad.ones(2))
    assert watched.seen == ["Stops", "-Stops"]


def test_all_readers_at_once() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    gc.collect()  # else what an earlier test has left may be freed meanwhile, and the peak be at the beginning
    with (
        memory.record() as recording,
        profile(with_modules=True) as prof,
        FlopCounterMode(display=False) as counter,
    ):
        kept = model(rgrad.ones(3, 4))
    assert {"Sequential", "Sequential.0", "Sequential.1"} <= set(counter.get_flop_counts())
    assert {"nn.Module: Linear_0", "nn.Module: Linear_1"} <= {e.name for e in prof.events()}
    assert "Sequential.1" in dict(recording.snapshot().peak_by("module"))
    assert not _global_hooks.hooked()
    del kept
