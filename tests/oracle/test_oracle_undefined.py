"""What hooks and leaves see of gradients that never come, and leaves that left the graph, on rgrad and on torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from program_kit import compare, cut, function, hooks, leaf, registry  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS, program = registry()


@program
def none_hook_tensor(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.register_hook(lambda g: log.append(g))
    x.register_hook(lambda g: log.append(("leaf", g)))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_hook_replace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.register_hook(lambda g: T.ones(3, dtype=T.float64))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_hook_leaf_replace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    x.register_hook(lambda g: T.ones(3, dtype=T.float64))
    cut(T).apply(x).sum().backward()
    return x.grad


@program
def none_hook_chain(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.register_hook(lambda g: log.append(("1", g)))
    a.register_hook(lambda g: log.append(("2", g)))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_multi_output(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a, b = x.double().reshape(3, 1).expand(3, 2).clone().unbind(1)
    a.register_hook(lambda g: log.append(("a", g)))
    b.register_hook(lambda g: log.append(("b", g)))
    (a * 2).sum().backward()
    return x.grad


@program
def none_multi_output_split(T: Any, log: list[Any]) -> Any:
    x = T.arange(4.0, requires_grad=True)
    a, b = x.split(2)
    b.register_hook(lambda g: log.append(("b", g)))
    (a * 2).sum().backward()
    return x.grad


@program
def none_multi_replace(T: Any, log: list[Any]) -> Any:
    x = T.arange(4.0, requires_grad=True)
    a, b = (x * 1).split(2)
    b.register_hook(lambda g: T.ones(2))
    (a * 2).sum().backward()
    return x.grad


@program
def none_retain(T: Any, log: list[Any]) -> Any:
    x = T.arange(4.0, requires_grad=True)
    a, b = (x * 1).split(2)
    b.retain_grad()
    (a * 2).sum().backward()
    return b.grad


@program
def none_prehook(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.grad_fn.register_prehook(lambda g: log.append(("pre", g)))
    a.grad_fn.register_hook(lambda i, o: log.append(("post", i, o)))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_prehook_replace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.grad_fn.register_prehook(lambda g: (T.ones(3, dtype=T.float64),))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_posthook_replace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.grad_fn.register_hook(lambda i, o: (T.ones(3, dtype=T.float64), None))
    cut(T).apply(a).sum().backward()
    return x.grad


@program
def none_posthook_replace_fn(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = cut(T).apply(x)
    a.grad_fn.register_hook(lambda i, o: log.append((i, o)) or (T.ones(3, dtype=T.float64),))
    a.sum().backward()
    return x.grad


@program
def none_post_length(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.grad_fn.register_hook(lambda i, o: log.append(len(i)) or (None,))
    a.sum().backward()
    return x.grad


@program
def none_accumulate_hooks(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    acc = (x * 2).grad_fn.next_functions[0][0]
    acc.register_prehook(lambda g: log.append(("pre", g)))
    acc.register_hook(lambda i, o: log.append(("post", i, o)))
    x.register_post_accumulate_grad_hook(lambda p: log.append("pa"))
    cut(T).apply(x).sum().backward()
    return x.grad


@program
def none_multigrad(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = leaf(T)
    T.autograd.graph.register_multi_grad_hook([x, y], lambda gs: log.append(list(gs)))
    (cut(T).apply(x) + y).sum().backward()


@program
def none_multigrad_any(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = leaf(T)
    T.autograd.graph.register_multi_grad_hook([x, y], lambda g: log.append(g), mode="any")
    (cut(T).apply(x)).sum().backward()


@program
def none_multigrad_all_none(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = leaf(T)
    T.autograd.graph.register_multi_grad_hook([x, y], lambda gs: log.append(list(gs)))
    (cut(T).apply(x) + cut(T).apply(y)).sum().backward()


@program
def none_multigrad_split(T: Any, log: list[Any]) -> Any:
    x = T.arange(4.0, requires_grad=True)
    a, b = (x * 1).split(2)
    T.autograd.graph.register_multi_grad_hook([a, b, x], lambda gs: log.append(list(gs)))
    (a * 2).sum().backward(inputs=[x])
    (a * 2).sum().backward()


@program
def none_capture(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.register_hook(lambda g: log.append(("a", g)))
    return T.autograd.grad(cut(T).apply(a).sum(), a, allow_unused=True)


@program
def none_capture_leaf(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    x.register_hook(lambda g: log.append(("x", g)))
    return T.autograd.grad(cut(T).apply(x).sum(), x, allow_unused=True)


@program
def none_capture_replace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    x.register_hook(lambda g: T.ones(3, dtype=T.float64))
    return T.autograd.grad(cut(T).apply(x).sum(), x, allow_unused=True)


@program
def none_capture_nopath(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = leaf(T)
    x.register_hook(lambda g: log.append(("x", g)))
    return T.autograd.grad((y * 2).sum(), x, allow_unused=True)


@program
def none_not_needed(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = leaf(T)
    a = x * 2
    b = y * 2
    b.register_hook(lambda g: log.append(("b", g)))
    a.register_hook(lambda g: log.append(("a", g)))
    return T.autograd.grad((a * b).sum(), x)


@program
def none_where_partial(T: Any, log: list[Any]) -> Any:
    def bwd(ctx, g):
        return g, None

    F = function(T, lambda ctx, a, b: a + b, bwd)
    x = leaf(T)
    y = leaf(T)
    b = y * 3
    c = b.exp()
    c.register_hook(lambda g: log.append(("c", g)))
    b.register_hook(lambda g: log.append(("b", g)))
    y.register_hook(lambda g: log.append(("y", g)))
    F.apply(x, c).sum().backward()
    return x.grad, y.grad


@program
def none_materialize(T: Any, log: list[Any]) -> Any:
    def bwd(ctx, g, h):
        log.append((g, h))
        return g

    def fwd(ctx, a):
        return a * 1, a * 2

    F = function(T, fwd, bwd)
    x = leaf(T)
    p, q = F.apply(x)
    q.register_hook(lambda g: log.append(("q", g)))
    q.grad_fn.register_prehook(lambda g: log.append(("pre", g)))
    p.sum().backward()


@program
def none_materialize_off(T: Any, log: list[Any]) -> Any:
    def bwd(ctx, g, h):
        log.append((g, h))
        return g

    def fwd(ctx, a):
        ctx.set_materialize_grads(False)
        return a * 1, a * 2

    F = function(T, fwd, bwd)
    x = leaf(T)
    _p, q = F.apply(cut(T).apply(x))
    r = cut(T).apply(q)
    q.register_hook(lambda g: log.append(("q", g)))
    r.sum().backward()


@program
def hook_returns_none_value_ok(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.grad_fn.register_prehook(lambda g: (None,))
    a.register_hook(lambda g: log.append(g))
    x.register_hook(lambda g: log.append(g))
    a.grad_fn.register_hook(lambda i, o: log.append((i, o)))
    a.sum().backward()
    return x.grad


@program
def hook_post_none(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_hook(lambda i, o: (None,))
    x.register_hook(lambda g: log.append(g))
    a.sum().backward()
    return x.grad


@program
def pre_hook_wrong(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_prehook(lambda g: (g[0], g[0]))
    a.sum().backward()


@program
def pre_hook_shape(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_prehook(lambda g: (g[0][:1],))
    a.sum().backward()


@program
def pre_hook_type(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_prehook(lambda g: (g[0].float(),))
    a.sum().backward()


@program
def pre_hook_list(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_prehook(lambda g: [g[0]])
    a.sum().backward()


@program
def pre_hook_str(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x.exp()
    a.grad_fn.register_prehook(lambda g: ("x",))
    a.sum().backward()


@program
def leaf_off(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    return x.grad


@program
def leaf_off_hooks(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    x.register_hook(lambda g: log.append(g))
    x.register_post_accumulate_grad_hook(lambda p: log.append("pa"))
    y = (x * 2).sum()
    acc = y.grad_fn.next_functions[0][0].next_functions[0][0]
    acc.register_prehook(lambda g: log.append(("pre", g)))
    acc.register_hook(lambda i, o: log.append(("post", i, o)))
    x.requires_grad_(False)
    y.backward()
    return x.grad


@program
def leaf_off_grad(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    return T.autograd.grad(y, x)


@program
def leaf_off_existing(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    (x * 3).sum().backward()
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    return x.grad


@program
def leaf_off_inputs(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward(inputs=[x])
    return x.grad


@program
def leaf_detach(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = (x * 2).sum()
    x.detach_()
    y.backward()
    return x.grad


@program
def leaf_moved(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    w = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(w)
    y.backward()
    return x.grad


@program
def leaf_moved_grad(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    w = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(w)
    return T.autograd.grad(y, x, allow_unused=True)


@program
def leaf_moved_call(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    w = leaf(T)
    n = (x * 2).grad_fn.next_functions[0][0]
    x.requires_grad_(False)
    x.mul_(w)
    n(T.ones(3, dtype=T.float64))
    return x.grad


@program
def leaf_off_call(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    n = (x * 2).grad_fn.next_functions[0][0]
    x.requires_grad_(False)
    n(T.ones(3, dtype=T.float64))
    return x.grad


@program
def leaf_off_on(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.requires_grad_(True)
    y.backward()
    return x.grad


@program
def module_freeze(T: Any, log: list[Any]) -> Any:
    m = T.nn.Linear(2, 1)
    y = m(T.ones(1, 2)).sum()
    m.requires_grad_(False)
    y.backward()
    return [p.grad for p in m.parameters()]


@program
def retained_off(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 2
    a.retain_grad()
    b = a.sum()
    a.detach_()
    b.backward()
    return a.grad, x.grad


@program
def the_node_of_an_input_of_backward_runs(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    with hooks(T, lambda t: t.detach(), lambda t: (log.append("unpacked"), t)[1]):
        a = x * x
    a.grad_fn.register_prehook(lambda g: log.append(("before", g)))
    a.grad_fn.register_hook(lambda i, o: log.append(("after", i, o)))
    a.sum().backward(inputs=[a])
    return a.grad, x.grad


@program
def grad_mode_that_a_hook_leaves_on(T: Any, log: list[Any]) -> Any:
    x, w = leaf(T), leaf(T)
    y = x * w
    y.register_hook(lambda g: (T.set_grad_enabled(True), None)[1])
    y.sum().backward()
    log.append((x.grad.requires_grad, w.grad.requires_grad))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    compare(PROGRAMS[name])
