"""Anomaly mode: the stack of the forward call on errors, and the check for nan."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import Fails, leaf
from rgrad.autograd import Function, detect_anomaly, set_detect_anomaly

pytestmark = [
    pytest.mark.usefixtures("device"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
]


@pytest.fixture(autouse=True)
def off_at_the_end() -> Iterator[None]:
    yield
    assert not rgrad.is_anomaly_enabled()
    assert rgrad.is_anomaly_check_nan_enabled()


def caught(call: Callable[[], object], error: type[BaseException]) -> tuple[list[str], list[str]]:
    """What a call that raises `error` warns of, and the notes on the error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(error) as e:
            call()
    return [str(w.message) for w in seen], list(getattr(e.value, "__notes__", []))


def inner(x: Any) -> Any:
    return Fails.apply(x)


def outer(x: Any) -> Any:
    return inner(x) * 2


def test_an_error_shows_the_whole_forward_stack() -> None:
    with set_detect_anomaly(True):
        y = outer(leaf(1.0)).sum()
        seen, notes = caught(y.backward, ValueError)
    (warning,) = [w for w in seen if "Error detected" in w]
    assert warning.startswith("Error detected in FailsBackward. Traceback of forward call that caused the error:\n")
    lines = warning.splitlines()
    names = [line.rsplit(" in ", 1)[1] for line in lines if line.startswith("  File ")]
    assert names[-3:] == ["test_an_error_shows_the_whole_forward_stack", "outer", "inner"]
    assert lines[-1] == "    return Fails.apply(x)"
    at = inspect.getsourcelines(inner)[1] + 1
    assert f'File "{__file__}", line {at}, in inner' in warning
    assert "rgrad/autograd" not in warning
    assert warning in notes
    assert any(f"FailsBackward was recorded by the forward call at {__file__}:{at} in inner" in n for n in notes)


def test_no_stack_of_what_was_recorded_before() -> None:
    y = outer(leaf(1.0)).sum()
    with set_detect_anomaly(True):
        seen, _ = caught(y.backward, ValueError)
    (warning,) = seen
    assert warning.startswith("Error detected in FailsBackward. No forward pass information available.")
    assert warning.endswith("Enable detect anomaly during forward pass for more information.")
    y = outer(leaf(1.0)).sum()
    seen, notes = caught(y.backward, ValueError)
    assert seen == []
    assert "Error detected" not in "".join(notes)


@pytest.mark.parametrize("small", [True, False])
def test_nan_is_an_error(small: bool) -> None:
    x = leaf(-1.0) if small else (rgrad.ones(5000, dtype=real()) * -1).requires_grad_()
    with set_detect_anomaly(True):
        y = x.sqrt().sum()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\.") as e,
        ):
            y.backward()
    assert any("in test_nan_is_an_error" in n for n in e.value.__notes__)
    assert x.grad is None


def test_the_number_of_the_output_with_nan() -> None:
    class Second(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g * float("nan")

    with set_detect_anomaly(True):
        z = Second.apply(leaf(1.0, 2.0), leaf(1.0, 2.0)).sum()
        with (
            pytest.warns(UserWarning, match="Error detected"),
            pytest.raises(RuntimeError, match="returned nan values in its 1th output"),
        ):
            z.backward()


def test_infinities_are_no_nan() -> None:
    x = leaf(0.0, 0.0)
    with set_detect_anomaly(True):
        (x.sqrt() * rgrad.tensor([1.0, -1.0], dtype=real())).sum().backward()
    assert x.grad.tolist() == [float("inf"), float("-inf")]


def test_check_nan_can_be_left_out() -> None:
    x = leaf(-1.0)
    with set_detect_anomaly(True, check_nan=False):
        x.sqrt().sum().backward()
    assert x.grad.isnan().all()
    x.grad = None
    x.sqrt().sum().backward()
    assert x.grad.isnan().all()


def test_nodes_made_in_backward_name_what_induced_them() -> None:
    x = leaf(0.0)
    with set_detect_anomaly(True):
        y = x**1.5
        (g,) = rgrad.autograd.grad(y, x, create_graph=True)
        (g2,) = rgrad.autograd.grad(g, x, create_graph=True)
        seen, notes = caught(lambda: (g2 * 0).sum().backward(), RuntimeError)
    assert len(seen) == 3
    assert "Traceback of forward call that caused the error" in seen[0]
    assert "(g2,) = rgrad.autograd.grad(g, x, create_graph=True)" in seen[0]
    assert seen[1].startswith("\n\nPrevious calculation was induced by Pow")
    assert "Traceback of forward call that induced the previous calculation:" in seen[1]
    assert "(g,) = rgrad.autograd.grad(y, x, create_graph=True)" in seen[1]
    assert seen[2].startswith("\n\nPrevious calculation was induced by PowBackward0.")
    assert "y = x**1.5" in seen[2]
    assert [n for n in notes if "Previous calculation" in n] == seen[1:]


def test_views_and_writes_remember_the_stack_too() -> None:
    def write(y: Any) -> Any:
        y[0].mul_(leaf(-1.0).sum().sqrt())
        return y

    with set_detect_anomaly(True):
        y = write(leaf(1.0, 2.0) * 1)
        seen, _ = caught(lambda: y.sum().backward(), RuntimeError)
    assert "in write\n" in seen[0]


def test_a_module_s_layers_are_left_out_of_the_stack() -> None:
    model = rgrad.nn.Sequential(rgrad.nn.Linear(2, 2), rgrad.nn.ReLU())

    def forward(x: Any) -> Any:
        return model(x)

    with set_detect_anomaly(True):
        out = forward(rgrad.full((1, 2), float("nan")))
        seen, _ = caught(lambda: out.sum().backward(), RuntimeError)
    frames = [line for line in seen[0].splitlines() if line.startswith("  File ")]
    assert frames[-1].endswith("in forward")


def test_switches_nest() -> None:
    def now() -> tuple[bool, bool]:
        return rgrad.is_anomaly_enabled(), rgrad.is_anomaly_check_nan_enabled()

    with set_detect_anomaly(True, False):
        assert now() == (True, False)
        with detect_anomaly():
            assert now() == (True, True)
            with set_detect_anomaly(False):
                assert now() == (False, True)
            assert now() == (True, True)
        assert now() == (True, False)
    assert now() == (False, True)
    set_detect_anomaly(True, check_nan=False)
    assert now() == (True, False)
    rgrad.set_anomaly_enabled(False)
    assert now() == (False, True)


@pytest.mark.filterwarnings("default:Anomaly Detection has been enabled")
def test_detect_anomaly_warns_and_set_detect_anomaly_does_not() -> None:
    with pytest.warns(
        UserWarning, match="This mode will increase the runtime and should only be enabled for debugging"
    ):
        detect_anomaly()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with set_detect_anomaly(True):
            pass


def test_the_mode_holds_in_all_threads() -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(rgrad.is_anomaly_enabled())
        y = outer(leaf(1.0)).sum()
        try:
            y.backward()
        except ValueError as e:
            seen.append("in outer\n" in "".join(e.__notes__))

    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = threading.Thread(target=work)
        t.start()
        t.join()
    assert seen == [True, True]


def test_an_error_of_a_nested_pass_is_reported_at_each_level() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with rgrad.enable_grad():
                outer(leaf(1.0)).sum().backward()
            return g

    with set_detect_anomaly(True):
        y = Inner.apply(leaf(1.0)).sum()
        seen, _ = caught(y.backward, ValueError)
    assert [w.strip().split(".")[0] for w in seen] == [
        "Error detected in FailsBackward",
        "Previous calculation was induced by InnerBackward",
        "Error detected in InnerBackward",
    ]
