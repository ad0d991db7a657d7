"""Profilers that are started, stopped and lost in the wrong order, as a notebook does it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.autograd import profiler as autograd_profiler
from rgrad.autograd.profiler_util import FunctionEvent, FunctionEventAvg
from rgrad.profiler import itt, profile, record_function
from rgrad.utils.flop_counter import FlopCounterMode


def records() -> bool:
    """Whether a new profiler works."""
    with profile() as prof:
        (rgrad.ones(3) * 2).sum()
    return any(event.name == "aten::mul" for event in prof.events())


def on_another_thread(f: Callable[[], object]) -> BaseException | None:
    found: list[BaseException] = []

    def run() -> None:
        try:
            f()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0] if found else None


@pytest.mark.parametrize("kind", [profile, autograd_profiler.profile])
def test_a_profiler_that_is_lost_ends(kind: Any) -> None:
    lost = kind()
    lost.__enter__()
    with pytest.raises(RuntimeError, match="profilers cannot be nested"):
        records()
    del lost
    assert records()


def test_an_exception_between_start_and_stop_loses_nothing() -> None:
    def cell() -> None:
        profile().start()
        raise KeyError("x")

    with pytest.raises(KeyError):
        cell()
    assert records()


def test_started_twice_it_goes_on() -> None:
    prof = profile()
    prof.start()
    rgrad.ones(2) + 1
    with pytest.raises(RuntimeError, match="it records already; stop it before"):
        prof.start()
    rgrad.ones(2) * 2
    prof.stop()
    assert {"aten::add", "aten::mul"} <= {event.name for event in prof.events()}
    assert records()


def test_stopped_on_another_thread_it_goes_on() -> None:
    prof = profile()
    prof.start()
    rgrad.ones(2) + 1
    error = on_another_thread(prof.stop)
    assert isinstance(error, RuntimeError)
    assert "the thread that started it" in str(error)
    rgrad.ones(2) * 2
    prof.stop()
    assert {"aten::add", "aten::mul"} <= {event.name for event in prof.events()}
    assert records()


def test_lost_on_another_thread_it_is_in_nobodys_way() -> None:
    kept: list[Any] = [profile()]
    kept[0].start()
    assert on_another_thread(kept.clear) is None
    assert records()
    # And it has ended: what the next one does not ask for is not recorded.
    kept = [profile(with_stack=True)]
    kept[0].start()
    assert on_another_thread(kept.clear) is None
    with profile() as prof:
        rgrad.ones(2) * 2
    assert all(event.stack == [] for event in prof.events())


def test_what_was_not_entered_cannot_end() -> None:
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("a").__exit__(None, None, None)
    with pytest.raises(AssertionError, match="before it has begun"):
        FlopCounterMode().__exit__(None, None, None)
    block = record_function("a")
    block.__enter__()
    block.__exit__(None, None, None)


def test_itt_is_as_without_itt() -> None:
    assert itt.is_available() is False
    calls: list[Callable[[], object]] = [
        lambda: itt.range_push("a"),
        itt.range_pop,
        lambda: itt.mark("a"),
        lambda: itt.range("a {}", 1).__enter__(),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="ITT functions not installed"):
            call()


def test_old_names_of_times() -> None:
    event, average = FunctionEvent(1, "a", 1, 0.0, 2.0), FunctionEventAvg()
    for of, names in (
        (event, ("cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage")),
        (average, ("cuda_time",)),
    ):
        for name in names:
            new = name.replace("cuda", "device")
            with pytest.warns(FutureWarning, match=f"`{name}` is deprecated, please use `{new}`"):
                assert getattr(of, name) == getattr(of, new)


def test_identifiers_of_traces() -> None:
    prof = autograd_profiler.profile()
    assert len(prof.create_trace_id()) == len(prof.default_trace_id()) == 32
    assert autograd_profiler.profile(custom_trace_id_callback=lambda: "mine").create_trace_id() == "mine"


def test_switches_that_need_cuda_or_a_compiler() -> None:
    graph = rgrad.autograd.graph
    for switch in (graph.set_warn_on_accumulate_grad_stream_mismatch, graph.set_override_stale_capture_stream):
        assert switch(True) is None
        with pytest.raises(RuntimeError, match="enabled must be a bool, but got int"):
            switch(1)  # type: ignore[arg-type]
    budget: Any = graph.region_activation_memory_budget
    for value, error in ((0.5, RuntimeError), (2.0, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="region_activation_memory_budget"):
            budget(value)
