"""What users' code can do wrong around the engine: bad hooks, exceptions, threads, graphs that end elsewhere."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from devices import real
from graphs import leaf
from rgrad.autograd import Function

pytestmark = pytest.mark.usefixtures("device")


def ones(*shape: int) -> Any:
    return rgrad.ones(*shape, dtype=real())


OTHER = {rgrad.float64: rgrad.float32, rgrad.float32: rgrad.int32}

# ------------------------------------------------------------------------------------------------- what hooks return

TENSOR_HOOKS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "shape": (lambda g: ones(2), RuntimeError, "has changed the size of value"),
    "a shape that would broadcast": (lambda g: ones(1), RuntimeError, "has changed the size of value"),
    "dtype": (lambda g: g.to(OTHER[g.dtype]), RuntimeError, "has changed the type of value"),
    "a string": (lambda g: "a", TypeError, "expected Variable, but hook returned 'str'"),
    "a tuple": (lambda g: (g,), TypeError, "expected Variable, but hook returned 'tuple'"),
}


@pytest.mark.parametrize("kind", TENSOR_HOOKS)
@pytest.mark.parametrize("on_leaf", [False, True])
def test_a_tensor_hook_that_returns_rubbish(kind: str, on_leaf: bool) -> None:
    hook, error, words = TENSOR_HOOKS[kind]
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    handle = (x if on_leaf else y).register_hook(hook)
    with pytest.raises(error, match=words) as e:
        y.sum().backward(retain_graph=True)
    assert any("test_a_tensor_hook_that_returns_rubbish" in n for n in e.value.__notes__)
    assert x.grad is None
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


NODE_HOOKS: dict[str, tuple[Callable[[tuple[Any, ...]], Any], type[Exception], str]] = {
    "shape": (lambda gs: (ones(7), *gs[1:]), RuntimeError, "has changed the size of value"),
    "dtype": (lambda gs: (gs[0].to(OTHER[gs[0].dtype]), *gs[1:]), RuntimeError, "has changed the type of value"),
    "too many": (lambda gs: (*gs, gs[0]), RuntimeError, "incorrect number of values"),
    "too few": (lambda gs: (), RuntimeError, "incorrect number of values"),
    "a tensor": (lambda gs: gs[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
    "a list": (lambda gs: list(gs), TypeError, "expected tuple, but hook returned 'list'"),
    "strings": (lambda gs: ("abc",) * len(gs), TypeError, "expected Variable, but hook returned 'str'"),
    "something for nothing": (lambda gs: (gs[0],) * len(gs), RuntimeError, "can't replace a None gradient"),
}


@pytest.mark.parametrize("kind", NODE_HOOKS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_node_hook_that_returns_rubbish(kind: str, when: str) -> None:
    hook, error, words = NODE_HOOKS[kind]
    x = leaf(1.0, 2.0, 3.0, 4.0)
    part, _ = (x * 2).chunk(2)
    # Two gradients go into chunk's node, one of them None; two come out of mul's, one of them None.
    node = part.grad_fn if when == "before" else part.grad_fn.next_functions[0][0]
    handle = node.register_prehook(hook) if when == "before" else node.register_hook(lambda gi, go: hook(gi))
    with pytest.raises(error, match=words) as e:
        part.sum().backward(retain_graph=True)
    assert any("test_a_node_hook_that_returns_rubbish" in n for n in e.value.__notes__)
    assert x.grad is None
    handle.remove()
    part.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_node_hooks_may_leave_gradients_out() -> None:
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (None,))
    y.sum().backward()
    assert x.grad is None
    z = x * 2
    z.grad_fn.register_hook(lambda gi, go: (None,) * len(gi))
    z.sum().backward()
    assert x.grad is None


def test_a_post_hook_sees_what_the_inputs_get() -> None:
    x, y = leaf(1.0, 2.0), rgrad.ones(3, 2, dtype=real(), requires_grad=True)
    z = x * y
    seen: list[Any] = []
    z.grad_fn.register_hook(lambda gi, go: seen.extend(tuple(g.shape) for g in gi))
    z.sum().backward()
    assert seen == [(2,), (3, 2)]


def test_hooks_of_a_leaf_s_node() -> None:
    x = leaf(1.0)
    seen: list[Any] = []
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: seen.append(("post", gi, go[0].tolist())))
    node.register_prehook(lambda gs: seen.append(("pre", gs[0].tolist())))
    x.register_hook(lambda g: seen.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad.tolist())))
    y.sum().backward()
    assert seen == ["tensor", ("pre", [2.0]), ("accumulated", [2.0]), ("post", (), [2.0])]


def test_a_post_accumulate_hook_that_returns_or_raises() -> None:
    x = leaf(1.0)
    handle = x.register_post_accumulate_grad_hook(lambda p: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * 2).sum().backward()
    handle.remove()
    handle = x.register_post_accumulate_grad_hook(lambda p: p)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * 2).sum().backward()
    handle.remove()

    def fail(p: Any) -> None:
        raise KeyError("k")

    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(KeyError) as e:
        (x * 2).sum().backward()
    assert any("test_a_post_accumulate_hook" in n for n in e.value.__notes__)


def test_hooks_that_remove_themselves_and_others() -> None:
    x = leaf(1.0)
    y = x * 2
    seen: list[str] = []
    handles: dict[str, Any] = {}

    def first(g: Any) -> None:
        seen.append("first")
        handles["first"].remove()
        handles["third"].remove()

    handles["first"] = y.register_hook(first)
    handles["second"] = y.register_hook(lambda g: seen.append("second"))
    handles["third"] = y.register_hook(lambda g: seen.append("third"))
    out = y.sum()
    out.backward(retain_graph=True)
    out.backward()
    # A run that has begun finishes with the hooks that it began with.
    assert seen == ["first", "second", "third", "second"]


def test_hooks_that_register_more() -> None:
    x = leaf(1.0)
    y = x * 2
    seen: list[str] = []

    def hook(g: Any) -> None:
        seen.append("first")
        if len(seen) == 1:
            y.register_hook(lambda g: seen.append("late"))

    y.register_hook(hook)
    out = y.sum()
    out.backward(retain_graph=True)
    out.backward()
    assert seen == ["first", "first", "late"]


# ------------------------------------------------------------------------------------------------- calls of itself


def test_a_hook_that_runs_its_own_graph() -> None:
    x = leaf(1.0)
    y = x * x
    out = y.sum()
    calls: list[int] = []

    def hook(g: Any) -> None:
        calls.append(1)
        if len(calls) < 5:
            out.backward(retain_graph=True)

    y.register_hook(hook)
    out.backward(retain_graph=True)
    assert len(calls) == 5
    assert x.grad.item() == 10.0


def test_a_hook_that_frees_the_graph_under_the_running_pass() -> None:
    x = leaf(3.0)
    y = x * x
    out = y.sum()
    calls: list[int] = []

    def hook(g: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            out.backward()

    y.register_hook(hook)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()
    assert x.grad.item() == 6.0


def test_a_function_that_calls_backward_on_itself_without_end() -> None:
    class Endless(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            depth.append(1)
            if len(depth) > 150:
                raise OverflowError("deep enough")
            with rgrad.enable_grad():
                y.sum().backward(retain_graph=True)
            return g

    depth: list[int] = []
    y = Endless.apply(leaf(1.0))
    with pytest.raises(OverflowError, match="deep enough") as e:
        y.sum().backward()
    assert len(depth) == 151
    assert sum("EndlessBackward was recorded by the forward call at" in n for n in e.value.__notes__) >= 1


# ------------------------------------------------------------------------------------------------- freed graphs


def test_a_context_after_the_graph_was_freed() -> None:
    kept: list[Any] = []

    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (_,) = ctx.saved_tensors
            return g * 2

    y = Keeps.apply(leaf(1.0))
    y.sum().backward()
    ctx = kept[0]
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = ctx.saved_tensors
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.sum().backward()
    del y
    gc.collect()
    with pytest.raises(RuntimeError):
        _ = ctx.saved_tensors


# ------------------------------------------------------------------------------------------------- cycles


class Probe:
    """Something to be seen dying."""


def keep(*held: Any) -> None:
    """What a hook calls that holds something and does nothing."""


def gone(make: Callable[[Probe], Any]) -> bool:
    probe = Probe()
    seen = weakref.ref(probe)
    kept = make(probe)
    del probe
    assert seen() is not None
    del kept
    gc.collect()
    gc.collect()
    return seen() is None


def test_cycles_through_hooks_and_closures_are_collected() -> None:
    def tensor_hook(probe: Probe) -> Any:
        y = leaf(1.0) * 2
        y.register_hook(lambda g: keep(y, probe))
        return y

    def leaf_hook(probe: Probe) -> Any:
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda p: keep(x, probe))
        return x

    def node_hook(probe: Probe) -> Any:
        y = leaf(1.0) * 2
        y.grad_fn.register_prehook(lambda gs: keep(y, probe))
        return y

    def context(probe: Probe) -> Any:
        class F(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.probe = probe
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

        y = F.apply(leaf(1.0))
        y.grad_fn.back = y
        return y

    def cut(probe: Probe) -> Any:
        y = leaf(1.0) * 2
        y.register_hook(lambda g: keep(z, probe))
        z = y.detach()
        z.source = y
        return z

    for make in (tensor_hook, leaf_hook, node_hook, context, cut):
        assert gone(make), make.__name__
