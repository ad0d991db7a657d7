"""no_grad, enable_grad, set_grad_enabled, inference_mode: contexts, decorators, generators, threads."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf

pytestmark = pytest.mark.usefixtures("device")


def test_no_grad() -> None:
    x = leaf(1.0)
    assert rgrad.is_grad_enabled()
    with rgrad.no_grad():
        assert not rgrad.is_grad_enabled()
        y = x * 2
        assert not y.requires_grad
        assert y.is_leaf
        with rgrad.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_creation_under_no_grad_may_require_grad() -> None:
    with rgrad.no_grad():
        assert rgrad.ones(1, requires_grad=True).requires_grad
        assert rgrad.ones(1).requires_grad_().requires_grad


def test_set_grad_enabled_as_context_and_function() -> None:
    x = leaf(1.0)
    with rgrad.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    rgrad.set_grad_enabled(False)
    assert not rgrad.is_grad_enabled()
    rgrad.set_grad_enabled(True)
    assert rgrad.is_grad_enabled()


def test_the_mode_is_restored_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), rgrad.no_grad():
        _ = 1 / 0
    assert rgrad.is_grad_enabled()


def test_decorators() -> None:
    x = leaf(1.0)

    @rgrad.no_grad()
    def f(t: Any) -> Any:
        """Doubles."""
        return t * 2

    @rgrad.enable_grad()
    def g(t: Any) -> Any:
        return t * 2

    @rgrad.set_grad_enabled(False)
    def h(t: Any) -> Any:
        return t * 2

    @rgrad.inference_mode()
    def i(t: Any) -> Any:
        return t * 2

    @rgrad.no_grad
    def k(t: Any) -> Any:
        return t * 2

    assert not f(x).requires_grad
    assert f.__name__ == "f"
    assert f.__doc__ == "Doubles."
    with rgrad.no_grad():
        assert g(x).requires_grad
    rgrad.set_grad_enabled(True)
    assert not h(x).requires_grad
    assert i(x).is_inference()
    assert not k(x).requires_grad
    assert rgrad.is_grad_enabled()


def test_decorated_generator_has_the_mode_only_inside() -> None:
    @rgrad.no_grad()
    def gen() -> Generator[bool, bool, str]:
        got = yield rgrad.is_grad_enabled()
        assert got == 5
        yield rgrad.is_grad_enabled()
        return "end"

    it = gen()
    assert next(it) is False
    assert rgrad.is_grad_enabled()
    assert it.send(5) is False
    assert rgrad.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(it)
    assert stop.value.value == "end"


def test_generator_sees_thrown_exceptions_and_close() -> None:
    closed = []

    @rgrad.no_grad()
    def gen() -> Generator[Any, Any, None]:
        try:
            try:
                yield 1
            except KeyError:
                yield rgrad.is_grad_enabled()
        finally:
            closed.append(rgrad.is_grad_enabled())

    it = gen()
    next(it)
    assert it.throw(KeyError()) is False
    it.close()
    assert closed == [False]
    assert rgrad.is_grad_enabled()


def test_a_mode_object_can_be_used_again() -> None:
    mode = rgrad.no_grad()
    for _ in range(2):
        with mode:
            assert not rgrad.is_grad_enabled()
        assert rgrad.is_grad_enabled()


def test_the_mode_belongs_to_the_thread() -> None:
    seen: list[bool] = []
    with rgrad.no_grad():
        thread = threading.Thread(target=lambda: seen.append(rgrad.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_backward_under_no_grad() -> None:
    x = leaf(2.0)
    y = x * x
    with rgrad.no_grad():
        y.backward()
    assert x.grad.item() == 4.0
    assert not x.grad.requires_grad


def test_backward_runs_without_grad_mode_unless_create_graph() -> None:
    x = leaf(2.0)
    y = x * 1
    modes = []
    y.register_hook(lambda g: modes.append(rgrad.is_grad_enabled()))
    y.backward(retain_graph=True)
    rgrad.autograd.grad(y, x, create_graph=True)
    assert modes == [False, True]


def test_view_made_under_no_grad_and_changed() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    with rgrad.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)
    with rgrad.no_grad():
        v.mul_(2)
    assert y.tolist() == [2.0, 2.0]


# --- inference mode ---------------------------------------------------------------------------------------


def test_inference_mode() -> None:
    x = leaf(1.0)
    assert not rgrad.is_inference_mode_enabled()
    with rgrad.inference_mode():
        assert rgrad.is_inference_mode_enabled()
        assert not rgrad.is_grad_enabled()
        y = x * 2
        assert y.is_inference()
        assert not y.requires_grad
        y.add_(1)
        with rgrad.inference_mode(False):
            assert (x * 2).requires_grad
    assert not rgrad.is_inference_mode_enabled()
    assert not x.is_inference()
    assert y.tolist() == [3.0]


def test_inference_tensor_outside() -> None:
    with rgrad.inference_mode():
        y = rgrad.ones(2, dtype=real())
    x = leaf(1.0, 2.0)
    assert not (y + 1).requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="(?i)inplace update to inference tensor outside InferenceMode"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="(?i)inference tensors cannot be saved for backward"):
        _ = x * y
    with pytest.raises(RuntimeError, match="(?i)inference tensor outside"):
        y.requires_grad_()
    assert y.tolist() == [1.0, 1.0]
    c = y.clone()
    assert not c.is_inference()
    (x * c).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_views_in_inference_mode() -> None:
    x = rgrad.ones(2, 2)
    with rgrad.inference_mode():
        v = x.view(4)
        assert not v.is_inference()  # a view of a normal tensor is a normal tensor
        w = v.clone()
        assert w.is_inference()
    w2 = w.view(2, 2)
    assert w2.is_inference()


def test_version_counts_in_inference_mode_for_normal_tensors() -> None:
    x = rgrad.ones(2)
    with rgrad.inference_mode():
        x.add_(1)
    assert x._version == 1
