"""Who keeps whom alive: nodes, their Python objects, contexts of custom Functions, hooks."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.autograd import Function
from rgrad.autograd.graph import GradientEdge, get_gradient_edge

pytestmark = pytest.mark.usefixtures("device")


class Thing:
    """Something whose end can be seen."""


def leaf(*values: float) -> rgrad.Tensor:
    return rgrad.tensor(values or (1.0, 2.0), requires_grad=True)


def function(
    forward: Callable[..., Any] = lambda ctx, x: x * 2, backward: Callable[..., Any] = lambda ctx, g: g * 2
) -> Any:
    return type("Own", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def keeping(kept: list[Any]) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        kept.append(ctx)
        ctx.save_for_backward(x)
        return x * 2

    return function(forward)


def use(ctx: Any, x: rgrad.Tensor) -> None:
    """Everything that needs the node."""
    assert ctx.saved_tensors[0] is x
    assert ctx.next_functions[0][0].variable is x
    assert ctx.name() == "OwnBackward"
    ctx.metadata["seen"] = 1
    assert ctx.metadata == {"seen": 1}
    assert len(ctx._input_metadata) == 1
    seen: list[Any] = []
    handle = ctx.register_hook(lambda before, after: seen.append((before, after)))
    root = rgrad.ones(2, device=x.device)
    assert rgrad.autograd.grad(GradientEdge(ctx, 0), x, root, retain_graph=True)[0].tolist() == [2.0, 2.0]
    assert len(seen) == 1
    handle.remove()
    rgrad.autograd.grad(GradientEdge(ctx, 0), x, root, retain_graph=True)
    assert len(seen) == 1


def test_a_context_that_forward_stored_keeps_its_node() -> None:
    x, kept = leaf(), []
    y = keeping(kept).apply(x)
    del y
    gc.collect()
    use(kept[0], x)
    use(kept[0], x)


def test_a_context_from_grad_fn_keeps_its_node() -> None:
    x, kept = leaf(), []
    y = keeping(kept).apply(x)
    kept.clear()
    ctx = y.grad_fn
    ctx.attribute = 3
    del y
    gc.collect()
    assert ctx.attribute == 3
    use(ctx, x)


def test_a_context_found_behind_another_node_keeps_its_node() -> None:
    x = leaf()
    z = keeping([]).apply(x).exp()
    ctx = z.grad_fn.next_functions[0][0]
    del z
    gc.collect()
    use(ctx, x)


def test_a_context_that_backward_stored_keeps_its_node() -> None:
    x, kept = leaf(), []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        kept.append(ctx)
        return g * 2

    y = function(forward, backward).apply(x)
    y.sum().backward(retain_graph=True)
    del y
    gc.collect()
    use(kept.pop(), x)


def test_a_context_in_a_traceback_keeps_its_node() -> None:
    x = leaf()

    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("no")

    def fails() -> BaseException:
        y = function(lambda ctx, x: x * 2, backward).apply(x)
        with pytest.raises(ValueError, match="no") as caught:
            y.sum().backward()
        return caught.value

    frame = fails().__traceback__
    while frame is not None and "ctx" not in frame.tb_frame.f_locals:
        frame = frame.tb_next
    assert frame is not None
    assert frame.tb_frame.f_locals["ctx"].next_functions[0][0].variable is x


def test_identity_and_attributes_survive_every_change_of_owner() -> None:
    x = leaf()
    y = function().apply(x)
    y.grad_fn.attribute = "kept"
    for _ in range(3):
        assert y.grad_fn is y.grad_fn
        assert y.grad_fn.attribute == "kept"
    ctx = y.grad_fn
    seen = weakref.ref(ctx)
    del ctx
    gc.collect()
    assert seen() is y.grad_fn, "a context that only the node holds is the same object"
    del y
    assert seen() is None


def test_graphs_end_when_their_last_tensor_or_context_does() -> None:
    for touch in (False, True):
        things = [Thing()]
        end = weakref.ref(things[0])

        def forward(ctx: Any, x: Any, things: Any = things) -> Any:
            ctx.thing = things.pop()
            return x * 2

        y = function(forward).apply(leaf())
        if touch:
            assert y.grad_fn.thing is end()
        ctx = y.grad_fn if touch else None
        del y
        assert (end() is None) != touch
        del ctx
        assert end() is None, "no collection is needed"


def test_saved_outputs_and_edges_of_a_context_work_when_outputs_are_gone() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    x = leaf()
    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    ctx, edge = y.grad_fn, get_gradient_edge(y)
    expected = y.detach()
    del y
    (out,) = ctx.saved_tensors
    assert out.grad_fn is ctx
    del ctx, edge
    gc.collect()
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == expected.tolist()


def make_cycle(kind: str) -> weakref.ref[Thing]:
    x, thing = leaf(), Thing()
    end = weakref.ref(thing)
    if kind == "hook of a node":
        node = (x * x).grad_fn
        node.register_hook(lambda a, b, keep=(node, thing): None)
    elif kind == "prehook of a node":
        node = x.exp().grad_fn
        node.register_prehook(lambda a, keep=(node, thing): None)
    elif kind == "hook of a context":
        node = function().apply(x).grad_fn
        node.register_hook(lambda a, b, keep=(node, thing): None)
    elif kind == "attribute of a context":
        node = function().apply(x).grad_fn
        node.itself, node.thing = node, thing
    elif kind == "packed value":
        kept: list[Any] = [thing]
        with rgrad.autograd.graph.saved_tensors_hooks(lambda t: kept, lambda kept: kept[1]):
            kept.append((x * x).grad_fn)
    elif kind == "hook of a context with its output":
        y = function().apply(x)
        y.grad_fn.register_hook(lambda a, b, keep=(y.grad_fn, y, thing): None)
    elif kind == "hook of an output with its context":
        y = function().apply(x)
        y.register_hook(lambda g, keep=(y.grad_fn, y, thing): None)
    elif kind == "context and output in attributes":
        y = function().apply(x)
        y.grad_fn.out, y.note, y.thing = y, y.grad_fn, thing
    elif kind == "context and a later result in attributes":
        y = function().apply(x)
        y.grad_fn.later, y.grad_fn.itself, y.grad_fn.thing = y.exp(), y.grad_fn, thing
    else:
        node = function().apply(x).grad_fn
        node.next = (x * 2).exp().grad_fn
        node.next.register_hook(lambda a, b, keep=(node, thing): None)
    return end


@pytest.mark.parametrize(
    "kind",
    [
        "hook of a node",
        "prehook of a node",
        "hook of a context",
        "attribute of a context",
        "packed value",
        "two nodes",
        "hook of a context with its output",
        "hook of an output with its context",
        "context and output in attributes",
        "context and a later result in attributes",
    ],
)
def test_cycles_are_collected(kind: str) -> None:
    gc.collect()
    end = make_cycle(kind)
    gc.collect()
    assert end() is None


def test_a_context_in_a_cycle_of_its_own_serves_its_graph() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.itself, ctx.values = ctx, [Thing()]
        ctx.save_for_backward(x)
        return x * 2

    x = leaf()
    y = function(forward, lambda ctx, g: g * 2 * len(ctx.values)).apply(x)
    end = weakref.ref(y.grad_fn.values[0])
    gc.collect()
    y.sum().backward(retain_graph=True)
    z = y.exp()
    del y
    gc.collect()
    z.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == (2 + 2 * rgrad.tensor([2.0, 4.0]).exp()).tolist()
    del z
    gc.collect()
    assert end() is None


def test_a_context_in_a_garbage_traceback_serves_its_graph() -> None:
    fail = [True]

    def backward(ctx: Any, g: Any) -> Any:
        if fail.pop():
            raise ValueError("no")
        return g * ctx.factor[0]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = [2]
        return x * 2

    x = leaf()
    y = function(forward, backward).apply(x)
    try:
        y.sum().backward(retain_graph=True)
    except ValueError as error:
        error.itself = error  # type: ignore[attr-defined]
    gc.collect()
    fail.append(False)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("held", ["output", "later", "context"])
def test_cycles_with_something_that_is_held_are_left_alone(held: str) -> None:
    x, thing = leaf(), Thing()
    end = weakref.ref(thing)
    y = function(lambda ctx, x: x * 2, lambda ctx, g: g * len(ctx.values)).apply(x)
    y.grad_fn.values, y.grad_fn.itself, y.grad_fn.thing = [1, 2, 3], y.grad_fn, thing
    y.note = y.grad_fn
    y.grad_fn.register_hook(lambda a, b, keep=(y, y.grad_fn): None)
    z = y.exp()
    keep = {"output": y, "later": z, "context": y.grad_fn}[held]
    del y, z, thing
    for _ in range(3):
        gc.collect()
    assert end() is not None
    if held == "context":
        assert keep.values == [1, 2, 3]
        assert keep.next_functions[0][0].variable is x
    else:
        keep.sum().backward()
        assert x.grad is not None
    keep = None
    gc.collect()
    assert end() is None


def test_a_cycle_that_is_reachable_is_left_alone() -> None:
    x, seen = leaf(), []
    y = function().apply(x)
    node = y.grad_fn
    node.register_hook(lambda a, b, keep=node: seen.append(1))
    del node
    gc.collect()
    y.sum().backward()
    assert seen == [1]
    assert y.grad_fn.next_functions[0][0].variable is x


def test_contexts_change_owners_while_threads_run_backward() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        kept: list[Any] = []
        own = keeping(kept)
        try:
            for k in range(200):
                x = leaf()
                y = own.apply(x) * own.apply(x).exp()
                held = [y.grad_fn.next_functions[0][0], kept.pop()]
                y.sum().backward(retain_graph=k % 2 == 0)
                del y
                assert all(ctx.next_functions[0][0].variable is x for ctx in held)
                kept.clear()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
