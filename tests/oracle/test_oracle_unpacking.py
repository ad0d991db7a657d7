"""What saved tensors are when they come back, and what a pass leaves of the thread's state, on rgrad and on torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from program_kit import compare, function, hooks, leaf, registry, submodule  # noqa: E402

pytestmark = pytest.mark.oracle

PROGRAMS, program = registry()


@program
def unpack_identity(T: Any, log: list[Any]) -> Any:
    const = T.ones(3, dtype=T.float64)
    back = T.full((3,), 5.0, dtype=T.float64)

    def fwd(ctx, x):
        ctx.save_for_backward(const, x)
        return x * 2

    def bwd(ctx, g):
        c, x = ctx.saved_tensors
        log.append((c is back, x is back, c.requires_grad, x.requires_grad))
        return g

    x = leaf(T)
    with hooks(T, lambda t: t, lambda t: back):
        y = function(T, fwd, bwd).apply(x)
    y.sum().backward()
    log.append(y.grad_fn is not None)


@program
def unpack_identity_attr(T: Any, log: list[Any]) -> Any:
    c = T.full((3,), 5.0, dtype=T.float64)
    back = T.full((3,), 5.0, dtype=T.float64)
    backg = T.full((3,), 5.0, dtype=T.float64, requires_grad=True)
    cur = [back]
    x = leaf(T)
    with hooks(T, lambda t: t, lambda t: cur[0]):
        y = x * c
    log.append(y.grad_fn._saved_other is back)
    cur[0] = backg
    log.append(y.grad_fn._saved_other is backg)
    log.append(y.grad_fn._saved_other.requires_grad)
    log.append(y.grad_fn._saved_self is None)


@program
def unpack_saved_tensor_obj(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    c = T.full((3,), 5.0, dtype=T.float64)
    y = x * c
    b = T.ones(3, dtype=T.float64)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: b, lambda t: b)
    log.append(y.grad_fn._saved_other is b)


@program
def unpack_subclass(T: Any, log: list[Any]) -> Any:
    class Sub(T.Tensor):
        pass

    x = leaf(T)
    c = T.ones(3, dtype=T.float64)
    p = T.ones(3, dtype=T.float64).as_subclass(Sub)
    p.tag = 7
    with hooks(T, lambda t: t, lambda t: p):
        y = x * c
    log.append(type(y.grad_fn._saved_other).__name__ + str(getattr(y.grad_fn._saved_other, "tag", None)))
    with hooks(T, lambda t: t, lambda t: p):
        y = x * x
    log.append(type(y.grad_fn._saved_other).__name__ + str(getattr(y.grad_fn._saved_other, "tag", None)))


@program
def unpack_plain_param_out(T: Any, log: list[Any]) -> Any:
    # output saved w/o history: integer output etc
    x = leaf(T)
    b = T.zeros(3, dtype=T.float64)

    def fwd(ctx, x):
        o = x * 2
        i = o.long()
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(i, o)
        ctx.o = None
        return o, i

    bi = T.zeros(3, dtype=T.int64)

    def bwd(ctx, g, gi):
        i, o = ctx.saved_tensors
        log.append((i is bi, o is b, i.grad_fn is None, o.grad_fn is not None, o.is_leaf))
        return g

    with hooks(T, lambda t: t.dtype, lambda d: b if d == T.float64 else bi):
        y, _i = function(T, fwd, bwd).apply(x)
    y.sum().backward()


@program
def ckpt_detach(T: Any, log: list[Any]) -> Any:
    cp = submodule(T, "utils.checkpoint").checkpoint
    c = T.ones(3, dtype=T.float64)
    x = leaf(T)

    def fwd(ctx, x):
        ctx.save_for_backward(c, x)
        return x * 2

    def bwd(ctx, g):
        a, b = ctx.saved_tensors
        log.append((a is c, b is x, b.requires_grad, b.grad_fn is None, a.grad_fn is None))
        return g

    F = function(T, fwd, bwd)
    cp(lambda x: F.apply(x), x, use_reentrant=False).sum().backward()
    cp(lambda x: F.apply(x * 1), x, use_reentrant=False).sum().backward()


@program
def ckpt_view_pack(T: Any, log: list[Any]) -> Any:
    cp = submodule(T, "utils.checkpoint").checkpoint
    c = T.ones(3, dtype=T.float64)
    x = leaf(T)
    y = cp(lambda x: (x * c).exp(), x, use_reentrant=False)
    n = y.grad_fn.next_functions[0][0]
    log.append(n._saved_other is c)
    log.append(y.grad_fn._saved_result.requires_grad)


@program
def stack_hook_leak(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x * x

    def hook(g):
        hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__()

    y.register_hook(hook)
    z = y * y
    w = z.sum()
    w.backward()
    log.append("after")
    (x * x)


@program
def stack_hook_leak_fail(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x * x

    def hook(g):
        hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__()
        raise ValueError("no")

    y.register_hook(hook)
    z = y * y
    w = z.sum()
    try:
        w.backward()
    except ValueError:
        log.append("failed")
    log.append("after")
    (x * x)


@program
def stack_hook_pop(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x * x
    h = hooks(T, lambda t: log.append("p") or t, lambda t: t)
    y.register_hook(lambda g: h.__exit__())
    z = y * y
    w = z.sum()
    with h:
        w.backward()
        log.append("after")
        (x * x)
    log.append("out")
    x * x


@program
def stack_between_nodes(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x.exp()
    z = y.exp()
    z.register_hook(lambda g: hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__())
    y.register_hook(lambda g: log.append("h") or (x * x, None)[1])
    z.sum().backward(create_graph=True)
    log.append("after")
    (x * x)


@program
def stack_function_backward(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def bwd(ctx, g):
        hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__()
        return g

    y = function(T, lambda ctx, x: x * 2, bwd).apply(x * x)
    y.sum().backward()
    log.append("after")
    (x * x)


@program
def stack_unpack(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def un(t):
        hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__()
        return t

    with hooks(T, lambda t: t.detach(), un):
        y = x * x
    y.sum().backward()
    log.append("after")
    (x * x)


@program
def stack_reentrant(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def bwd(ctx, g):
        with T.enable_grad():
            a = x.detach().requires_grad_()
            b = a * a
        b.register_hook(lambda g: hooks(T, lambda t: log.append("p") or t, lambda t: t).__enter__())
        b.sum().backward()
        with T.enable_grad():
            log.append("in")
            a * a
        return g

    function(T, lambda ctx, x: x * 2, bwd).apply(x).sum().backward()
    log.append("after")
    x * x


@program
def disable_leak(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x * x

    def hook(g):
        T.autograd.graph.disable_saved_tensors_hooks("nope").__enter__()

    y.register_hook(hook)
    y.sum().backward()
    with hooks(T, lambda t: t, lambda t: t):
        pass


@program
def gradmode_leak(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x.exp()
    z = y.exp()
    z.register_hook(lambda g: T.set_grad_enabled(True) and None)
    y.register_hook(lambda g: log.append(T.is_grad_enabled()))
    z.sum().backward()
    log.append(T.is_grad_enabled())


@program
def gradmode_leak2(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    y = x.exp()
    z = y.exp()
    z.register_hook(lambda g: T.set_grad_enabled(False) and None)
    y.register_hook(lambda g: log.append(T.is_grad_enabled()))
    (g,) = T.autograd.grad(z.sum(), x, create_graph=True)
    log.append(T.is_grad_enabled())
    log.append(g.requires_grad)


@program
def gradmode_fn(T: Any, log: list[Any]) -> Any:
    x = leaf(T)

    def bwd(ctx, g):
        T.set_grad_enabled(True)
        return g

    y = function(T, lambda ctx, x: x * 2, bwd).apply(x.exp())
    y.register_hook(lambda g: log.append(T.is_grad_enabled()))
    x.register_hook(lambda g: log.append((T.is_grad_enabled(), g.requires_grad)))
    y.sum().backward()
    log.append(T.is_grad_enabled())


@program
def detach_saved(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    b.sum().backward()


@program
def detach_saved_attr(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    return b.grad_fn._saved_self


@program
def detach_saved_leaf(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    b = x * x
    x.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_out(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    b = x.exp()
    b2 = b.sum()
    b.detach_()
    b2.backward()
    return x.grad


@program
def detach_saved_out2(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    b = x.exp()
    b2 = b.exp()
    b.detach_()
    b2.sum().backward()
    return x.grad


@program
def detach_saved_packed(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    with hooks(T, lambda t: t, lambda t: t):
        b = a * a
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_fn(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1

    def fwd(ctx, t):
        ctx.save_for_backward(t)
        return t * 2

    def bwd(ctx, g):
        (t,) = ctx.saved_tensors
        log.append((t is a, t.requires_grad, t.grad_fn is None))
        return g * t

    b = function(T, fwd, bwd).apply(a)
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_const_operand(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    c = leaf(T) * 1
    b = a * c
    c.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_matmul(T: Any, log: list[Any]) -> Any:
    x = T.ones(2, 2, requires_grad=True)
    a = x * 1
    b = a @ a
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_inplace(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * 1
    b.mul_(a)
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_make(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    a.requires_grad_()
    b.sum().backward()
    return x.grad


@program
def detach_saved_then_write(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    a.add_(1)
    b.sum().backward()
    return x.grad


@program
def detach_saved_then_history(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    a.requires_grad_()
    with T.no_grad():
        a.zero_()
    b.sum().backward()
    return x.grad


@program
def detach_unused_grad(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    c = T.ones(3, dtype=T.float64)
    b = c * a
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_none_saved(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a + a
    a.detach_()
    b.sum().backward()
    return x.grad


@program
def detach_raw_register(T: Any, log: list[Any]) -> Any:
    x = leaf(T)
    a = x * 1
    b = a * a
    a.detach_()
    b.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    b.sum().backward()
    return x.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    compare(PROGRAMS[name])
