"""Custom Functions, hooks and checkpoints on rgrad and on torch: values, gradients, nodes and kinds of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compare import both  # noqa: E402 - torch must be there first

pytestmark = pytest.mark.oracle

Program = Callable[[Any], Any]


def made(T: Any, forward: Any, backward: Any, **more: Any) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("F", (T.autograd.Function,), {**methods, **more})


def leaf(T: Any, *values: float) -> Any:
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def identity(T: Any) -> Any:
    x = leaf(T, 1.0, 2.0)
    y = made(T, lambda ctx, x: x, lambda ctx, g: g * 3).apply(x)
    y.sum().backward()
    return y, x.grad, y is x, y.grad_fn.name(), y._is_view()


def identity_without_history(T: Any) -> Any:
    x = T.ones(2)
    y = made(T, lambda ctx, x: x, lambda ctx, g: g).apply(x)
    return y, y is x


def view_of_input(T: Any) -> Any:
    x = leaf(T, 1.0, 2.0)
    a = x * 1
    y = made(T, lambda ctx, x: x[:1], lambda ctx, g: T.cat([g, g]) * 3).apply(a)
    y.backward()
    return y, x.grad, y._is_view(), y._base is a


def write_to_view_of_input(T: Any) -> Any:
    a = leaf(T, 1.0, 2.0) * 1
    made(T, lambda ctx, x: x[:1], lambda ctx, g: T.cat([g, g])).apply(a).mul_(2)


def write_to_returned_input(T: Any) -> Any:
    a = leaf(T, 1.0, 2.0) * 1
    made(T, lambda ctx, x: x, lambda ctx, g: g).apply(a).mul_(2)


def dirty(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(5)

    x = leaf(T, 1.0, 2.0)
    a = x * 1
    y = made(T, forward, lambda ctx, g: g * 5).apply(a)
    (a * 2).sum().backward()
    return a, y is a, x.grad, a.grad_fn.name(), a._version


def dirty_leaf(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(5)

    made(T, forward, lambda ctx, g: g * 5).apply(leaf(T, 1.0))


def dirty_view(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(5)

    x = leaf(T, 1.0, 2.0)
    a = x * 1
    v = a[:1]
    made(T, forward, lambda ctx, g: g * 5).apply(v)
    a.sum().backward()
    return a, v, x.grad


def dirty_not_returned(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x * 2

    made(T, forward, lambda ctx, g: g).apply(leaf(T, 1.0) * 1)


def several_uses(T: Any) -> Any:
    x = leaf(T, 1.0, 2.0)
    y = made(T, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
    (y * y + y.exp() + y.sum()).sum().backward()
    return x.grad


def unused_outputs(T: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.extend(None if g is None else g.tolist() for g in grads)
        return grads[0]

    x = leaf(T, 1.0, 2.0)
    f = made(T, lambda ctx, x: (x * 1, x[:1] * 2, x.long()), backward)
    f.apply(x)[0].sum().backward()

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 1, x[:1] * 2, x.long()

    outs = made(T, forward, backward).apply(x)
    outs[0].sum().backward()
    return seen, x.grad, [o.requires_grad for o in outs]


def non_differentiable(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        a, b = x * 1, x * 2
        ctx.mark_non_differentiable(b)
        return a, b

    x = leaf(T, 1.0, 2.0)
    a, b = made(T, forward, lambda ctx, g, h: g + h).apply(x)
    (a * b).sum().backward()
    return a, b, x.grad


def saved_values(T: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any, n: Any) -> Any:
        z = x * y
        ctx.save_for_backward(x, None, y * 2, z, y)
        ctx.n = n
        return z * 1, z

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, none, _, z, y = ctx.saved_tensors
        assert none is None
        return (g + h) * y * ctx.n + z, (g + h) * x, None

    x, y = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    a, b = made(T, forward, backward).apply(x, y, 3)
    grads = T.autograd.grad((a.sin() + b).sum(), (x, y), create_graph=True)
    return a, b, grads, T.autograd.grad(sum(g.sum() for g in grads), (x, y))


def needs(T: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return args[0] + args[2]

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return g, None, g

    made(T, forward, backward).apply(leaf(T, 1.0), "text", T.ones(1, dtype=T.float64)).backward()
    return seen


def keywords(T: Any) -> Any:
    x = leaf(T, 2.0)
    made(T, lambda ctx, x, factor=1.0: x * factor, lambda ctx, g: (g * 7, None)).apply(x, factor=4.0).backward()
    return x.grad


def too_few(T: Any) -> Any:
    made(T, lambda ctx, x, y: x + y, lambda ctx, g: g).apply(leaf(T, 1.0), leaf(T, 1.0)).backward()


def too_many(T: Any) -> Any:
    made(T, lambda ctx, x: x * 1, lambda ctx, g: (g, g)).apply(leaf(T, 1.0)).backward()


def none_too_many(T: Any) -> Any:
    x = leaf(T, 1.0)
    made(T, lambda ctx, x: x * 1, lambda ctx, g: (g, None)).apply(x).backward()
    return x.grad


def for_a_number(T: Any) -> Any:
    made(T, lambda ctx, x, n: x * n, lambda ctx, g: (g, g)).apply(leaf(T, 1.0), 2).backward()


def wrong_shape(T: Any) -> Any:
    made(T, lambda ctx, x: x * 1, lambda ctx, g: T.ones(3)).apply(leaf(T, 1.0, 2.0)).sum().backward()


def no_tensor(T: Any) -> Any:
    made(T, lambda ctx, x: x * 1, lambda ctx, g: 1.0).apply(leaf(T, 1.0)).backward()


def once(T: Any) -> Any:
    x = leaf(T, 2.0)
    backward = T.autograd.function.once_differentiable(lambda ctx, g: g * 2)
    y = made(T, lambda ctx, x: x * 2, backward).apply(x)
    (g,) = T.autograd.grad(y * x, x, create_graph=True)
    g.backward()


def saves_a_number(T: Any) -> Any:
    made(T, lambda ctx, x: (ctx.save_for_backward(1), x)[1], lambda ctx, g: g).apply(leaf(T, 1.0))


def changed_saved(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    a = leaf(T, 1.0) * 1
    y = made(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(a)
    a.add_(1)
    y.backward()


def second_pass(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    y = made(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(T, 1.0))
    y.backward()
    y.backward()


def without_context(T: Any) -> Any:
    class F(T.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(x: Any, n: int) -> Any:
            return x * n, x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.n = inputs[1]
            ctx.save_for_backward(output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * ctx.n + h * ctx.saved_tensors[0], None

    x = leaf(T, 1.0, 2.0)
    a, b = F.apply(x, 3)
    (a * b).sum().backward()
    return a, b, x.grad


def nested_backward(T: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        with T.enable_grad():
            y = ctx.saved_tensors[0].detach().requires_grad_()
            (y**3).sum().backward()
        return g * y.grad

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    x = leaf(T, 1.0, 2.0)
    made(T, forward, backward).apply(x).sum().backward()
    return x.grad


def multi_hook(T: Any) -> Any:
    a, b = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    c, d = a * b, a.exp() * b
    calls: list[Any] = []

    def everything(grads: Any) -> None:
        calls.append([None if g is None else g.tolist() for g in grads])

    handle = T.autograd.graph.register_multi_grad_hook((a, b, c, d), everything)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    handle.remove()
    T.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: calls.append(g.tolist()), mode="any")
    (c + d).sum().backward()
    return calls


def mutation(T: Any) -> Any:
    x = leaf(T, 1.0, 2.0)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        a = x * 1
        y = a * a
        a.mul_(3)
        z = a.exp() * y
        y.zero_()
        z.sum().backward()
    return x.grad


def checkpointed(reentrant: bool) -> Program:
    def run(T: Any) -> Any:
        from importlib import import_module

        checkpoint = import_module(f"{T.__name__}.utils.checkpoint")
        calls: list[str] = []

        def f(x: Any, y: Any) -> Any:
            calls.append("start")
            z = (x * y).sin() * x
            w = z.exp()
            calls.append("end")
            return z, w * 2

        x, y = leaf(T, 0.5, 1.0), leaf(T, 2.0, 3.0)
        z, w = checkpoint.checkpoint(f, x, y, use_reentrant=reentrant)
        (z * w).sum().backward()
        model = T.nn.Sequential(T.nn.Tanh(), T.nn.Sigmoid(), T.nn.Tanh(), T.nn.Tanh())
        u = leaf(T, 0.1, 0.2)
        v = checkpoint.checkpoint_sequential(model, 2, u, use_reentrant=reentrant)
        v.sum().backward()
        return calls, z, w, x.grad, y.grad, v, u.grad

    return run


PROGRAMS: list[Program] = [
    identity,
    identity_without_history,
    view_of_input,
    write_to_view_of_input,
    write_to_returned_input,
    dirty,
    dirty_leaf,
    dirty_view,
    dirty_not_returned,
    several_uses,
    unused_outputs,
    non_differentiable,
    saved_values,
    needs,
    keywords,
    too_few,
    too_many,
    none_too_many,
    for_a_number,
    wrong_shape,
    no_tensor,
    once,
    saves_a_number,
    changed_saved,
    second_pass,
    without_context,
    nested_backward,
    multi_hook,
    mutation,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
def test_functions_do_the_same(program: Program) -> None:
    both(program, factor=10)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_do_the_same(reentrant: bool) -> None:
    both(checkpointed(reentrant), factor=10)
