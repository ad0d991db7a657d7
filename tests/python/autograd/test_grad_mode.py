"""Grad modes as context managers, decorators and calls; `backward` and `grad` check what they are given."""

from __future__ import annotations

import functools
import threading
from collections import UserDict

import pytest

import rgrad
from devices import memory
from rgrad import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture(autouse=True)
def _modes_are_left_as_found():
    assert is_grad_enabled()
    yield
    assert is_grad_enabled()
    assert not rgrad.is_inference_mode_enabled()


def test_context_managers_nest_and_restore() -> None:
    with no_grad():
        assert not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled()
            with set_grad_enabled(False):
                assert not is_grad_enabled()
            assert is_grad_enabled()
        assert not is_grad_enabled()
    with pytest.raises(KeyError), no_grad():
        raise KeyError("out")


def test_one_instance_may_be_entered_inside_itself() -> None:
    mode = no_grad()
    with mode, mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_set_grad_enabled_works_as_a_call() -> None:
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    assert repr(set_grad_enabled(True)) == "set_grad_enabled(mode=True)"


def test_set_grad_enabled_as_decorator_leaves_the_mode_outside_alone() -> None:
    @set_grad_enabled(False)
    def inner() -> bool:
        return is_grad_enabled()

    assert is_grad_enabled()
    assert inner() is False


def test_inference_mode() -> None:
    x = rgrad.ones(2, requires_grad=True)
    with inference_mode():
        assert rgrad.is_inference_mode_enabled()
        assert not is_grad_enabled()
        y = x * 2
        with inference_mode(False):
            assert not rgrad.is_inference_mode_enabled()
            assert is_grad_enabled()
            assert (x * 2).requires_grad
        assert rgrad.is_inference_mode_enabled()
    assert not y.requires_grad
    assert y.is_inference()


@pytest.mark.parametrize("decorate", [no_grad, no_grad(), inference_mode, inference_mode(), set_grad_enabled(True)])
def test_decorators_keep_the_function_and_its_signature(decorate) -> None:
    @decorate
    def scaled(x, *, by=2):
        """Doc."""
        return x * by, is_grad_enabled()

    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Doc."
    y, enabled = scaled(rgrad.ones(2, requires_grad=True), by=3)
    assert enabled is isinstance(decorate, set_grad_enabled)
    assert y.requires_grad is enabled


def test_decorated_functions_may_recurse() -> None:
    @no_grad()
    def count(n: int) -> int:
        assert not is_grad_enabled()
        return 0 if n == 0 else 1 + count(n - 1)

    assert count(5) == 5


@pytest.mark.parametrize("partial", [False, True])
def test_generators_run_in_the_mode_and_yield_outside_it(partial: bool) -> None:
    def source(n):
        log = []
        try:
            for i in range(n):
                assert not is_grad_enabled()
                log.append((yield i))
        except ValueError:
            assert not is_grad_enabled()
            yield "caught"
        finally:
            assert not is_grad_enabled()
        return log

    gen = no_grad()(functools.partial(source, 3) if partial else source)
    gen = gen() if partial else gen(3)
    assert next(gen) == 0
    assert is_grad_enabled()
    assert gen.send("a") == 1
    assert gen.throw(ValueError("in")) == "caught"
    assert is_grad_enabled()
    with pytest.raises(StopIteration):
        next(gen)

    def collect():
        return (yield from no_grad()(source)(2))

    outer = collect()
    next(outer)
    outer.send("x")
    with pytest.raises(StopIteration) as stop:
        outer.send("y")
    assert stop.value.value == ["x", "y"]

    closed = no_grad()(source)(3)
    next(closed)
    closed.close()


def test_a_generator_sees_the_mode_of_its_caller_between_steps() -> None:
    @enable_grad()
    def source():
        yield is_grad_enabled()
        yield is_grad_enabled()

    with no_grad():
        gen = source()
        assert next(gen) is True
        assert not is_grad_enabled()
        assert next(gen) is True


def test_decorating_a_class_warns() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @no_grad()
        class Thing:
            def __init__(self) -> None:
                self.enabled = is_grad_enabled()

            def later(self) -> bool:
                return is_grad_enabled()

    thing = Thing()
    assert thing.enabled is False
    assert thing.later() is True


def test_modes_belong_to_their_thread() -> None:
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_mode_must_be_a_bool() -> None:
    with pytest.raises(TypeError):
        set_grad_enabled("yes")
    assert is_grad_enabled()


# ------------------------------------------------------------------------------------------- backward and grad


def test_gradients_are_made_for_scalars_only() -> None:
    x = rgrad.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        rgrad.autograd.backward(x * 2)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        rgrad.autograd.grad(x * 2, x)
    (g,) = rgrad.autograd.grad((x * 2).sum().reshape(1, 1), x)
    assert g.tolist() == [2, 2, 2]


def test_gradients_must_fit() -> None:
    x = rgrad.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        rgrad.autograd.grad(y, x, rgrad.ones(2))
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        rgrad.autograd.grad(y, x, [rgrad.ones(3)] * 2)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        rgrad.autograd.grad(y, x, [1.0])
    with pytest.raises(TypeError, match=r"outputs\[1\] must be a Tensor, but got int"):
        rgrad.autograd.grad([y, 3], x)


def test_inputs_of_backward() -> None:
    a, b = rgrad.ones(2, requires_grad=True), rgrad.ones(2, requires_grad=True)
    y = (a * b).sum()
    rgrad.autograd.backward(y, inputs=a, retain_graph=True)
    assert a.grad is not None
    assert b.grad is None
    rgrad.autograd.backward(y, inputs={"b": b}, retain_graph=True)
    assert b.grad is not None
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        rgrad.autograd.backward(y, inputs=[])
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        rgrad.autograd.grad(y, [])
    with pytest.raises(TypeError, match="must be a dict, not UserDict"):
        rgrad.autograd.grad(y, UserDict(a=a))


def test_grad_of_a_dict_is_a_dict() -> None:
    a, b = rgrad.ones(2, requires_grad=True), rgrad.ones(2, requires_grad=True)
    found = rgrad.autograd.grad((a * 3 + b).sum(), {"b": b, "a": a})
    assert list(found) == ["b", "a"]
    assert found["a"].tolist() == [3, 3]


def test_unused_inputs() -> None:
    a, b = rgrad.ones(2, requires_grad=True), rgrad.ones(3, requires_grad=True)
    y = (a * 2).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph|allow_unused"):
        rgrad.autograd.grad(y, [a, b], retain_graph=True)
    assert rgrad.autograd.grad(y, [a, b], retain_graph=True, allow_unused=True)[1] is None
    zeros = rgrad.autograd.grad(y, [a, b], retain_graph=True, materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        rgrad.autograd.grad(y, [a, b], allow_unused=False, materialize_grads=True)


def test_old_and_missing_arguments() -> None:
    x = rgrad.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        rgrad.autograd.backward(x * 2, grad_variables=rgrad.ones(2))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="arguments both passed"):
        rgrad.autograd.backward(x * 2, rgrad.ones(2), grad_variables=rgrad.ones(2))
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        rgrad.autograd.grad((x * 2).sum(), x, only_inputs=False)


def test_outputs_without_history_are_left_out() -> None:
    a = rgrad.ones(2, requires_grad=True)
    (g,) = rgrad.autograd.grad([(a * 2).sum(), (a * 3).sum()], a, [None, rgrad.tensor(2.0)])
    assert g.tolist() == [8, 8]


def test_variable() -> None:
    x = rgrad.ones(2)
    v = rgrad.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad
    assert not x.requires_grad
    assert memory(v) == memory(x)
    assert isinstance(x, rgrad.autograd.Variable)
    assert not isinstance(3, rgrad.autograd.Variable)
