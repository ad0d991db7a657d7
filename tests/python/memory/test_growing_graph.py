"""A graph that grows from step to step is reported once for each line, and only where it grows."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import nn, optim

pytestmark = pytest.mark.usefixtures("device")

STEPS = 30


def warned(loop: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The warnings of a loop, and of a pass after it, where they appear at the latest."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kept = loop()
        rgrad.ones(1, requires_grad=True).sum().backward()
    del kept
    return [w for w in seen if "a graph grows" in str(w.message)]


def step(w: Any) -> Any:
    return (w * w).sum()


def add_after() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), 0
    for _ in range(STEPS):
        loss = step(w)
        loss.backward()
        total = total + loss  # grows
    return total


def add_before() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), 0
    for _ in range(STEPS):
        loss = step(w)
        total = total + loss  # grows
        loss.backward()
    return total


def add_in_place() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), rgrad.zeros(())
    for _ in range(STEPS):
        loss = step(w)
        loss.backward()
        total += loss  # grows
    return total


def add_in_place_before() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), rgrad.zeros(())
    for _ in range(STEPS):
        loss = step(w)
        total += loss  # grows
        loss.backward()
    return total


def moving_average() -> Any:
    w, average = rgrad.ones(4, requires_grad=True), 0
    for _ in range(STEPS):
        loss = step(w)
        loss.backward()
        average = 0.9 * average + 0.1 * loss  # grows
    return average


def with_an_optimizer() -> Any:
    net = nn.Linear(4, 1)
    opt = optim.SGD(net.parameters(), lr=0.01)
    total: Any = 0.0
    for _ in range(STEPS):
        opt.zero_grad()
        loss = net(rgrad.ones(2, 4)).square().mean()
        loss.backward()
        opt.step()
        total += loss  # grows
    return total


def two_losses() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), 0
    for _ in range(STEPS):
        first = step(w)
        first.backward()
        second = step(w + 1)
        second.backward()
        total = total + first  # grows
    return total


@pytest.mark.parametrize(
    "loop", [add_after, add_before, add_in_place, add_in_place_before, moving_average, with_an_optimizer, two_losses]
)
def test_a_growing_graph_is_reported_once(loop: Callable[[], object]) -> None:
    import inspect

    # The line is reported once in a process, so each device has its own copy of the function.
    source = inspect.getsource(loop)
    scope = dict(globals())
    exec(compile(source, f"<{loop.__name__} on {rgrad.get_default_device()}>", "exec"), scope)
    found = warned(scope[loop.__name__])
    assert len(found) == 1
    line = next(k for k, text in enumerate(source.splitlines(), 1) if "# grows" in text)
    text = str(found[0].message)
    assert f"{loop.__name__} on {rgrad.get_default_device()}>:{line} in {loop.__name__}" in text
    assert "loss.detach()" in text
    assert found[0].lineno == line
    assert found[0].filename == f"<{loop.__name__} on {rgrad.get_default_device()}>"
    # And not again.
    assert warned(scope[loop.__name__]) == []


def truncated_loop() -> Any:
    cell = nn.RNNCell(3, 4)
    h = rgrad.zeros(2, 4)
    for _ in range(STEPS):
        h = h.detach()
        for _ in range(5):
            h = cell(rgrad.ones(2, 3), h)
        h.sum().backward()
    return h


def accumulation() -> Any:
    net = nn.Linear(4, 1)
    kept = []
    for _ in range(STEPS):
        total: Any = 0
        for _ in range(12):
            total = total + net(rgrad.ones(2, 4)).mean() / 12
        total.backward()
        kept.append(total.item())
    return kept


def micro_batches() -> Any:
    net = nn.Linear(4, 1)
    for _ in range(STEPS):
        total: Any = 0
        for _ in range(4):
            loss = net(rgrad.ones(2, 4)).mean()
            loss.backward()
            total = total + loss
        total.item()
    return None


def detached() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), rgrad.zeros(())
    for _ in range(STEPS):
        loss = step(w)
        loss.backward()
        total += loss.detach()
    return total


def items() -> Any:
    w, total = rgrad.ones(4, requires_grad=True), 0.0
    for _ in range(STEPS):
        loss = step(w)
        loss.backward()
        total += (loss / 2).item()
    return total


def a_list() -> Any:
    w, losses = rgrad.ones(4, requires_grad=True), []
    for _ in range(STEPS):
        losses.append(step(w))
        losses[-1].backward()
    return losses


def a_shared_part() -> Any:
    w = rgrad.ones(4, requires_grad=True) + 1
    kept = None
    for _ in range(STEPS):
        kept = (w + 1).sum()
        kept.backward()
    return kept


def inner_steps() -> Any:
    w = rgrad.ones(4, requires_grad=True)
    for _ in range(STEPS):
        fast = w
        for _ in range(12):
            (g,) = rgrad.autograd.grad(step(fast), fast)
            fast = fast - 0.01 * g
        step(fast).backward()
    return w


def retained() -> Any:
    w = rgrad.ones(4, requires_grad=True)
    h: Any = w
    for _ in range(STEPS):
        h = h * 0.9
        h.sum().backward(retain_graph=True)
    return h


def states_that_are_cut() -> Any:
    net, state = nn.LSTM(3, 4), None
    for _ in range(STEPS):
        out, state = net(rgrad.ones(5, 2, 3), state)
        out.sum().backward()
        state = tuple(t.detach() for t in state)
    return state


def the_best() -> Any:
    w = rgrad.ones(4, requires_grad=True)
    best = None
    for i in range(STEPS):
        loss = step(w * (STEPS - i))
        loss.backward()
        best = loss if best is None or loss < best else best
    return best


def adversaries() -> Any:
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    for _ in range(STEPS):
        fake = first(rgrad.ones(2, 3))
        loss = second(fake.detach()).mean()
        loss.backward()
        other = second(fake).mean()
        other.backward()
    return other


@pytest.mark.parametrize(
    "loop",
    [
        truncated_loop,
        accumulation,
        micro_batches,
        detached,
        items,
        a_list,
        a_shared_part,
        inner_steps,
        retained,
        adversaries,
        states_that_are_cut,
        the_best,
    ],
)
def test_other_loops_are_not(loop: Callable[[], object]) -> None:
    assert [str(w.message) for w in warned(loop)] == []


@pytest.mark.cpu_only
def test_the_warning_can_be_an_error() -> None:
    code = """
import warnings, rgrad
warnings.simplefilter("error")
w, total = rgrad.ones(4, requires_grad=True), 0
try:
    for step in range(30):
        loss = (w * w).sum()
        loss.backward()
        total = total + loss
except UserWarning as error:
    print(step, "a graph grows" in str(error), total.grad_fn.name())
(w * w).sum().backward()
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    step, is_about_growth, name = out.stdout.split()
    assert 10 <= int(step) < 15
    assert (is_about_growth, name) == ("True", "AddBackward0")
