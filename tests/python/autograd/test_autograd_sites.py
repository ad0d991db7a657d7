"""Every node knows the line that made it: notes on exceptions from backward, both lines in the in-place error."""

from __future__ import annotations

import inspect
import traceback
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import Fails, leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


def here(offset: int = 0) -> int:
    """The caller's line number."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno + offset


def told(error: BaseException) -> str:
    """All that a traceback shows of the error itself: message and notes."""
    return "".join(traceback.format_exception_only(error))


def test_exception_in_a_function_names_the_forward_line() -> None:
    x = leaf(1.0)
    y = Fails.apply(x)
    line = here(-1)
    with pytest.raises(ValueError, match="in backward") as caught:
        (y * 2).sum().backward()
    notes = "\n".join(caught.value.__notes__)
    assert f"{__file__}:{line}" in notes
    assert "FailsBackward" in notes


def test_exception_in_a_hook_names_the_line_of_the_tensor() -> None:
    x = leaf(1.0)
    y = x.exp()
    line = here(-1)

    def hook(g: Any) -> None:
        raise KeyError("hook")

    y.register_hook(hook)
    with pytest.raises(KeyError) as caught:
        y.backward()
    assert f"{__file__}:{line}" in "\n".join(caught.value.__notes__)


def test_line_of_the_caller_through_a_helper_in_this_file() -> None:
    def helper(t: Any) -> Any:
        return Fails.apply(t)  # the innermost frame outside the package

    line = here(-2)
    with pytest.raises(ValueError, match="in backward") as caught:
        helper(leaf(1.0)).backward()
    assert f"{__file__}:{line}" in "\n".join(caught.value.__notes__)


def test_line_through_the_layers_of_nn() -> None:
    model = rgrad.nn.Sequential(rgrad.nn.Linear(2, 2), rgrad.nn.Tanh())
    y = model(rgrad.ones(1, 2))
    line = here(-1)
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        y.sum().backward()
    assert f"{__file__}:{line}" in "\n".join(caught.value.__notes__)


def test_wrong_gradient_shape_names_the_forward_line() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return rgrad.ones(7, dtype=real())

    y = Wrong.apply(leaf(1.0, 2.0))
    line = here(-1)
    with pytest.raises(RuntimeError, match="invalid gradient") as caught:
        y.sum().backward()
    assert f"{__file__}:{line}" in told(caught.value)


def test_freed_graph_names_the_forward_line() -> None:
    x = leaf(1.0)
    y = x.exp()
    line = here(-1)
    y.backward()
    with pytest.raises(RuntimeError, match="second time") as caught:
        y.backward()
    assert f"{__file__}:{line}" in told(caught.value)


def test_in_place_error_names_both_lines() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y.pow(2)
    saved = here(-1)
    y.add_(1)
    changed = here(-1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.sum().backward()
    text = told(caught.value)
    assert f"{__file__}:{saved}" in text
    assert f"{__file__}:{changed}" in text


def test_in_place_error_names_a_change_through_a_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y.sigmoid()
    saved = here(-1)
    z[0] = 5.0
    changed = here(-1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.sum().backward()
    text = told(caught.value)
    assert f"{__file__}:{saved}" in text
    assert f"{__file__}:{changed}" in text


def test_nodes_made_in_backward_inherit_the_forward_line() -> None:
    x = leaf(2.0)
    y = x * x * x
    line = here(-1)
    (g,) = rgrad.autograd.grad(y, x, create_graph=True)
    g.register_hook(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        g.backward()
    assert f"{__file__}:{line}" in "\n".join(caught.value.__notes__)


def test_notes_are_not_repeated() -> None:
    """One note for one failing node, however deep the graph around it."""
    y = Fails.apply(leaf(1.0))
    for _ in range(5):
        y = y * 2
    with pytest.raises(ValueError, match="in backward") as caught:
        y.backward()
    assert len(caught.value.__notes__) == 1


def test_a_site_survives_the_end_of_its_function() -> None:
    source = "def make(f, x):\n    y = f(x)\n    return y\n"
    space: dict[str, Any] = {}
    exec(compile(source, "made_up_file.py", "exec"), space)
    y = space["make"](Fails.apply, leaf(1.0))
    space.clear()
    with pytest.raises(ValueError, match="in backward") as caught:
        y.backward()
    assert "made_up_file.py:2" in "\n".join(caught.value.__notes__)
