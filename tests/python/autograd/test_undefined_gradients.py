"""Gradients that never come, the thread's state around nodes, leaves that left the graph, and unpacked values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.autograd import Function, grad
from rgrad.autograd.graph import register_multi_grad_hook, saved_tensors_hooks

pytestmark = pytest.mark.usefixtures("device")


class Cut(Function):
    """The identity, without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None


def leaf(*values: float) -> rgrad.Tensor:
    return rgrad.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def test_hooks_are_called_with_none() -> None:
    x, seen = leaf(), []
    a = x * 2
    a.register_hook(lambda g: seen.append(("tensor", g)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    a.grad_fn.register_prehook(lambda g: seen.append(("before", g)))
    a.grad_fn.register_hook(lambda i, o: seen.append(("after", i, o)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad)))
    Cut.apply(a).sum().backward()
    assert seen == [
        ("tensor", None),
        ("before", (None,)),
        ("after", (None, None), (None,)),
        ("leaf", None),
        ("accumulated", None),
    ]


def test_hooks_of_outputs_without_gradient() -> None:
    x, seen = leaf(1.0, 2.0, 3.0, 4.0), []
    used, unused = (x * 1).split(2)
    unused.register_hook(lambda g: seen.append(g))
    unused.retain_grad()
    with register_multi_grad_hook([used, unused, x], lambda grads: seen.append([g is None for g in grads])):
        (used * 3).sum().backward()
    assert seen == [None, [False, True, False]]
    assert unused.grad is None
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize("where", ["tensor", "leaf", "before", "after"])
def test_none_cannot_be_replaced(where: str) -> None:
    x = leaf()
    a = x * 2
    one = rgrad.ones(3)
    {
        "tensor": lambda: a.register_hook(lambda g: one),
        "leaf": lambda: x.register_hook(lambda g: one),
        "before": lambda: a.grad_fn.register_prehook(lambda g: (one,)),
        "after": lambda: a.grad_fn.register_hook(lambda i, o: (one, None)),
    }[where]()
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        Cut.apply(a).sum().backward()


def test_errors_about_what_hooks_return_name_the_hook() -> None:
    def shorter(g: Any) -> Any:
        return g[:1]

    a = leaf() * 2
    a.register_hook(shorter)
    with pytest.raises(RuntimeError, match="hook 'shorter' has changed the size of value"):
        a.sum().backward()
    b = leaf() * 2
    b.grad_fn.register_hook(lambda i, o: (None,))
    with pytest.raises(RuntimeError, match=r"hook '<lambda>' has returned an incorrect number of values \(got 1, but"):
        b.sum().backward()


def leaving(what: str, log: list[Any]) -> Callable[[Any], None]:
    """A hook that switches something on its thread and leaves it so."""

    def hook(g: Any) -> None:
        if what == "grad mode":
            rgrad.set_grad_enabled(True)
        elif what == "inference mode":
            rgrad.inference_mode().__enter__()
        elif what == "disabled hooks":
            rgrad.autograd.graph.disable_saved_tensors_hooks("no").__enter__()
        else:
            saved_tensors_hooks(lambda t: log.append("packed"), lambda t: t).__enter__()
        if what == "hooks and an error":
            raise ValueError("no")

    return hook


@pytest.mark.parametrize("what", ["grad mode", "inference mode", "disabled hooks", "hooks", "hooks and an error"])
@pytest.mark.parametrize("where", ["tensor", "leaf", "backward", "callback"])
def test_the_state_of_a_thread_survives_a_pass(what: str, where: str) -> None:
    x, log = leaf(), []
    leave = leaving(what, log)

    class Leaves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if where == "backward":
                leave(g)
            return g

    middle = x.exp()
    middle.register_hook(lambda g: log.append((rgrad.is_grad_enabled(), rgrad.is_inference_mode_enabled())))
    y = Leaves.apply(middle.exp())
    if where == "tensor":
        y.register_hook(leave)
    elif where == "leaf":
        x.register_hook(leave)
    elif where == "callback":
        x.register_hook(lambda g: rgrad._core._queue_callback(lambda: leave(None)))
    try:
        y.sum().backward()
    except ValueError:
        assert what == "hooks and an error"
    assert rgrad.is_grad_enabled()
    assert not rgrad.is_inference_mode_enabled()
    leaf() * leaf()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        pass
    assert [entry for entry in log if entry != (False, False)] == []


def test_leaves_that_no_longer_require_grad() -> None:
    x, w = leaf(), leaf()
    y = (x * 2).sum()
    x.requires_grad_(False)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        grad(y, x, retain_graph=True)
    y.backward(retain_graph=True)
    assert x.grad is None
    x.mul_(w)
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.backward()


def test_saved_tensors_that_were_detached() -> None:
    x = leaf()
    for operation in (lambda a: a * a, lambda a: a.dot(a), rgrad.sin):
        a = x * 1
        b = operation(a).sum()
        a.detach_()
        with pytest.raises(RuntimeError, match="saved tensor that has been detached in-place"):
            b.backward()
    a = x * 1
    b = a.exp()
    c = b.sum()
    b.detach_()
    c.backward()
    assert x.grad is not None, "an output may be detached"


def test_values_without_history_are_unpacked_as_they_are() -> None:
    x, constant = leaf(), rgrad.ones(3)
    stored = rgrad.full((3,), 5.0)
    with saved_tensors_hooks(lambda t: t, lambda t: stored):
        y = x * constant
        z = x * x
    assert y.grad_fn._saved_other is stored
    assert z.grad_fn._saved_other is not stored
    assert z.grad_fn._saved_other.requires_grad
    double = rgrad.full((3,), 5.0, dtype=rgrad.float64) if x.device.type == "cpu" else None
    if double is not None:
        with saved_tensors_hooks(lambda t: t, lambda t: double):
            y = x * constant
        assert y.grad_fn._saved_other.dtype == rgrad.float32


def test_the_derivative_of_a_power_saves_the_cotangent_and_the_input() -> None:
    x = leaf()
    y = x**3
    cotangent = rgrad.ones(3, requires_grad=True)
    seen: list[Any] = []
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        (g,) = grad(y, x, cotangent, create_graph=True)
    assert seen[0] is x
    assert seen[2] is cotangent
    assert seen[1].tolist() == [3.0, 12.0, 27.0]
    assert grad(g.sum(), x)[0].tolist() == [6.0, 12.0, 18.0]
    (flat,) = grad(x**0, x, rgrad.full((3,), float("inf")), create_graph=True)
    assert flat.tolist() == [0.0, 0.0, 0.0]
    assert not flat.requires_grad
