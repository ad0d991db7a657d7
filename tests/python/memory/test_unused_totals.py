"""A total that keeps graphs which no backward pass uses is reported when it is dropped, once for each line."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import nn
from rgrad.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("device")

STEPS = 30


def warned(loop: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The warnings of a loop whose result is dropped."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        loop()
        # Shown between two instructions.
        for _ in range(3):
            len("")
    return [w for w in seen if "a graph grew" in str(w.message)]


def loss(net: Any) -> Any:
    return net(rgrad.ones(2, 4)).mean()


def evaluation() -> Any:
    net = nn.Linear(4, 1).eval()
    total: Any = 0.0
    for _ in range(STEPS):
        total += loss(net)  # grows
    return total


def evaluation_by_size() -> Any:
    net, total = nn.Linear(4, 1), rgrad.zeros(1)
    for _ in range(STEPS):
        total = total + loss(net) * 2  # grows
    return total / STEPS


def epochs_with_evaluation() -> Any:
    net = nn.Linear(4, 1)
    for _ in range(4):
        loss(net).backward()
        total: Any = 0.0
        for _ in range(12):
            total += loss(net)  # grows
        total.item()
    return None


def evaluation_of_a_recurrent_network() -> Any:
    cell, total, h = nn.RNNCell(3, 4), rgrad.zeros(()), rgrad.zeros(1, 4)
    for _ in range(STEPS):
        h = cell(rgrad.ones(1, 3), h)
        total += h.sum()  # grows
    return total


@pytest.mark.parametrize(
    "loop", [evaluation, evaluation_by_size, epochs_with_evaluation, evaluation_of_a_recurrent_network]
)
def test_an_unused_total_is_reported_once(loop: Callable[[], object]) -> None:
    # The line is reported once in a process, so each device has its own copy of the function.
    source = inspect.getsource(loop)
    scope = dict(globals())
    file = f"<{loop.__name__} on {rgrad.get_default_device()}>"
    exec(compile(source, file, "exec"), scope)
    (found,) = warned(scope[loop.__name__])
    line = next(k for k, text in enumerate(source.splitlines(), 1) if "# grows" in text)
    assert (found.filename, found.lineno) == (file, line)
    assert f"{file}:{line} in {loop.__name__}" in str(found.message)
    assert "rgrad.no_grad()" in str(found.message)
    assert "loss.detach()" in str(found.message)
    # And not again.
    assert warned(scope[loop.__name__]) == []


def without_gradients() -> Any:
    net, total = nn.Linear(4, 1), 0.0
    with rgrad.no_grad():
        for _ in range(STEPS):
            total += loss(net)
    return total


def detached() -> Any:
    net, total = nn.Linear(4, 1), rgrad.zeros(())
    for _ in range(STEPS):
        total += loss(net).detach()
    return total


def accumulation() -> Any:
    net = nn.Linear(4, 1)
    for _ in range(3):
        total: Any = 0
        for _ in range(12):
            total = total + loss(net)
        (total / 12).backward()
    return None


def accumulation_whose_graph_is_kept() -> Any:
    net, total = nn.Linear(4, 1), rgrad.zeros(())
    for _ in range(12):
        total = total + loss(net)
    total.backward(retain_graph=True)
    return total


def a_step_that_is_left_out() -> Any:
    net = nn.Linear(4, 1)
    for step in range(4):
        total: Any = 0
        for _ in range(12):
            total = total + loss(net)
        if step != 2:
            total.backward()
    return None


def a_recurrent_network() -> Any:
    cell, h = nn.RNNCell(3, 1), rgrad.zeros(1, 1)
    for _ in range(STEPS):
        h = cell(rgrad.ones(1, 3), h)
    return h


def a_state_of_one_element() -> Any:
    h = rgrad.ones(1, requires_grad=True) * 1
    for _ in range(STEPS):
        h = h + (h * 0.1).tanh()
    return h


def losses_of_each_step() -> Any:
    net, total = nn.Linear(4, 1), rgrad.zeros(())
    for _ in range(STEPS):
        one = loss(net)
        one.backward()
        total = one + 0
    return total


def a_list() -> Any:
    net = nn.Linear(4, 1)
    return sum(loss(net) for _ in range(3)) + sum([loss(net) for _ in range(STEPS)])


def few_terms() -> Any:
    net, total = nn.Linear(4, 1), rgrad.zeros(())
    for _ in range(8):
        total = total + loss(net)
    return total


def sums_of_many_elements() -> Any:
    net, total = nn.Linear(4, 3), rgrad.zeros(2, 3)
    for _ in range(STEPS):
        total = total + net(rgrad.ones(2, 4))
    return total


def summed(w: Any) -> Any:
    total: Any = 0.0
    for k in range(12):
        total = total + (w * k).sin().sum()
    return total


def a_gradient_that_is_recorded() -> Any:
    w = rgrad.ones((), requires_grad=True)
    product: Any = 1.0
    for k in range(STEPS):
        product = product * (w + k).sin()
    return rgrad.autograd.grad(product, w, create_graph=True)


def checkpoints() -> Any:
    w = rgrad.ones(3, requires_grad=True)
    for reentrant in (False, True):
        checkpoint(lambda w: summed(w).tanh(), w, use_reentrant=reentrant).backward()
    return w


def transforms() -> Any:
    x = rgrad.ones(3)
    rgrad.func.grad(summed)(x)
    rgrad.func.vjp(summed, x)
    rgrad.autograd.functional.jacobian(summed, x)
    return rgrad.func.hessian(summed)(x)


@pytest.mark.parametrize(
    "loop",
    [
        without_gradients,
        detached,
        accumulation,
        accumulation_whose_graph_is_kept,
        a_step_that_is_left_out,
        a_recurrent_network,
        a_state_of_one_element,
        losses_of_each_step,
        a_list,
        few_terms,
        sums_of_many_elements,
        a_gradient_that_is_recorded,
        checkpoints,
        transforms,
    ],
)
def test_other_loops_are_not(loop: Callable[[], object]) -> None:
    assert [str(w.message) for w in warned(loop)] == []


@pytest.mark.cpu_only
def test_gradcheck_drops_totals_on_purpose() -> None:
    def f(w: Any) -> Any:
        total: Any = 0.0
        for k in range(12):
            total = total + (w * k).sin().sum()
        return total

    w = rgrad.ones(3, dtype=rgrad.float64, requires_grad=True)
    assert warned(lambda: rgrad.autograd.gradcheck(f, w)) == []

    def g() -> Any:
        total: Any = 0.0
        for k in range(12):
            total = total + (w * k).cos().sum()
        return total

    # Afterwards others are reported again.
    assert len(warned(g)) == 1


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


SCRIPT = """
import rgrad
net = rgrad.nn.Linear(4, 1)
total = 0.0
for _ in range(30):
    total += net(rgrad.ones(2, 4)).mean()
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize(("end", "reported"), [("", 1), ("total.backward()", 0), ("1 / 0", 0), ("del total", 1)])
def test_a_variable_of_a_script_is_reported_at_its_end(end: str, reported: int) -> None:
    out = run(SCRIPT + end)
    assert out.stderr.count("a graph grew at <string>:6 in <module>") == reported
    assert out.returncode == (1 if end == "1 / 0" else 0)


@pytest.mark.cpu_only
def test_as_an_error_it_leaves_other_lines_alone() -> None:
    out = run(SCRIPT + "del total\nprint('went on')", "-W", "error::UserWarning")
    assert out.stdout.split() == ["went", "on"]
    assert "UserWarning: a graph grew" in out.stderr
