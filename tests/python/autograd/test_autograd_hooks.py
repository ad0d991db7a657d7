"""Hooks on tensors, on leaves after accumulation, on nodes."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf

pytestmark = pytest.mark.usefixtures("device")


def test_tensor_hook_sees_and_replaces_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0], [10.0, 10.0]]
    assert x.grad.tolist() == [30.0, 30.0]


def test_leaf_hook_runs_before_accumulation() -> None:
    x = leaf(1.0)
    x.register_hook(lambda g: g * 2)
    (x * 1).backward()
    (x * 1).backward()
    assert x.grad.item() == 4.0


def test_leaf_hook_runs_once_on_the_whole_gradient() -> None:
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).backward()
    assert seen == [5.0]


def test_handle_removes_the_hook() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 2)
    handle.remove()
    handle.remove()
    (x * 1).backward()
    assert x.grad.item() == 1.0
    with x.register_hook(lambda g: g * 5):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.item() == 7.0


def test_hooks_run_in_order_and_may_be_removed_between() -> None:
    x = leaf(1.0)
    order: list[int] = []
    handles = [x.register_hook(lambda g, n=n: order.append(n)) for n in range(4)]
    handles[1].remove()
    (x * 1).backward()
    assert order == [0, 2, 3]


def test_hook_and_retain_grad() -> None:
    """retain_grad keeps the gradient after all hooks, however they were registered."""
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert y.grad.item() == 10.0
    assert x.grad.item() == 20.0


def test_hooks_run_for_grad_too() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (gy,) = rgrad.autograd.grad(y * 1, [y])
    assert gy.item() == 10.0
    (gx,) = rgrad.autograd.grad(y * 1, [x])
    assert gx.item() == 21.0


def test_hook_that_returns_nonsense() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: "no")
    with pytest.raises(TypeError, match="str|hook"):
        x.sum().backward()
    assert x.grad is None
    y = leaf(1.0, 2.0)
    y.register_hook(lambda g: rgrad.ones(3, dtype=real()))
    with pytest.raises(RuntimeError, match="hook.*size|size.*hook|shape"):
        y.sum().backward()
    assert y.grad is None


def test_hook_on_a_constant() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        rgrad.ones(1).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        rgrad.ones(1).register_post_accumulate_grad_hook(lambda p: None)


def test_exception_in_a_hook_comes_out_unchanged_and_the_engine_goes_on() -> None:
    class Mine(Exception):
        pass

    error = Mine("from the hook")
    x = leaf(1.0)
    y = x.exp()

    def hook(g: Any) -> None:
        raise error

    handle = y.register_hook(hook)
    with pytest.raises(Mine) as caught:
        y.backward(retain_graph=True)
    assert caught.value is error
    assert x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.item() == pytest.approx(2.718281828459045)


def test_post_accumulate_hook() -> None:
    x = leaf(1.0)
    seen = []

    def step(p: Any) -> None:
        assert p is x
        seen.append(p.grad.item())
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [2.0, 3.0]
    assert x.grad is None
    handle.remove()
    (x * 4).backward()
    assert x.grad.item() == 4.0


def test_post_accumulate_hook_needs_a_leaf() -> None:
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(lambda p: None)


def test_optimizer_step_inside_backward() -> None:
    w = [leaf(float(n)) for n in range(3)]
    for p in w:

        def step(t: Any) -> None:
            with rgrad.no_grad():
                t.sub_(t.grad, alpha=0.1)
            t.grad = None

        p.register_post_accumulate_grad_hook(step)
    (w[0] + 2 * w[1] + 3 * w[2]).backward()
    assert [round(p.item(), 6) for p in w] == [-0.1, 0.8, 1.7]


def test_hooks_are_differentiable_under_create_graph() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = rgrad.autograd.grad(y, x, create_graph=True)  # 2 x * x
    assert g.item() == 8.0
    (h,) = rgrad.autograd.grad(g, x)
    assert h.item() == 8.0


def test_backward_inside_a_hook() -> None:
    x = leaf(2.0)
    inner = []

    def hook(g: Any) -> None:
        z = leaf(3.0)
        with rgrad.enable_grad():
            (z * z).backward()
        inner.append(z.grad.item())

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert inner == [6.0]
    assert x.grad.item() == 2.0


def test_node_hooks() -> None:
    x = leaf(2.0)
    y = x * 3
    log: list[Any] = []

    def pre(grads: Any) -> Any:
        log.append(("pre", [g.item() for g in grads]))
        return (grads[0] * 2,)

    def post(inputs: Any, outputs: Any) -> None:
        log.append(("post", inputs[0].item(), outputs[0].item()))

    first = y.grad_fn.register_prehook(pre)
    second = y.grad_fn.register_hook(post)
    y.backward()
    assert log == [("pre", [1.0]), ("post", 6.0, 2.0)]
    assert x.grad.item() == 6.0
    first.remove()
    second.remove()


def test_hook_does_not_outlive_its_tensor() -> None:
    class Witness:
        pass

    w = Witness()
    r = weakref.ref(w)
    x = leaf(1.0)
    x.register_hook(lambda g, w=w: None)
    del w
    assert r() is not None
    del x
    gc.collect()
    assert r() is None


def test_cycle_through_a_leaf_hook_is_collected() -> None:
    def make() -> Any:
        x = leaf(1.0)
        x.register_hook(lambda g: g * x.detach())
        return weakref.ref(x)

    r = make()
    gc.collect()
    assert r() is None


def test_cycle_through_a_hook_of_an_inner_tensor_is_collected() -> None:
    def make() -> Any:
        x = leaf(1.0)
        y = x * 2
        y.register_hook(lambda g: g * y.detach())
        return weakref.ref(y)

    r = make()
    gc.collect()
    assert r() is None


def test_cycle_through_a_hook_further_up_is_not_collected_while_in_use() -> None:
    """A cycle that a living tensor still reaches stays whole."""

    def make() -> Any:
        x = leaf(1.0)
        y = x * 2
        y.register_hook(lambda g: g * y.detach())
        return x, y * 3

    x, z = make()
    gc.collect()
    z.backward()
    assert x.grad.item() == 12.0


def test_gradient_with_a_cycle_through_an_attribute_is_collected() -> None:
    x = leaf(1.0)
    x.me = [x]
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_a_hook_may_drop_the_last_reference_to_the_graph() -> None:
    holder = [leaf(1.0)]
    x = holder[0]
    y = (x * 2).exp()
    holder.append(y)
    y.register_hook(lambda g: holder.clear())
    loss = y * 1
    del y
    loss.backward()
    assert holder == []
    assert x.grad.item() == pytest.approx(2 * 7.38905609893065)


def test_which_copies_warn_of_hooks_left_behind() -> None:
    x = rgrad.ones(2, requires_grad=True)
    called = []
    x.register_hook(called.append)
    for copied in (copy.copy, pickle.dumps, lambda t: rgrad.save(t, io.BytesIO())):
        with pytest.warns(UserWarning, match="backward hook"):
            copied(x)
    copy.deepcopy(x).sum().backward()  # warnings are errors here
    assert called == []


@pytest.mark.parametrize("dtype", [rgrad.float64, rgrad.float16])
def test_what_is_unpacked_may_have_another_dtype_of_floats(dtype: rgrad.dtype) -> None:
    x = rgrad.ones(2, requires_grad=True)
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t.to(dtype)):
        y = (x * x).sum()
    y.backward()
    assert x.grad.dtype == rgrad.float32
    assert x.grad.tolist() == [2.0, 2.0]
