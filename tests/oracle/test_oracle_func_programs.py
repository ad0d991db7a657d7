"""What a picky user tries with `grad`, `vjp`, `jvp` and Jacobians, in PyTorch and in rgrad."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from func_kit import compared, point, torch

# ---------------------------------------------------------------------------------------------------- writes


def put(x: Any, key: Any, value: Any) -> None:
    x[key] = value


WRITES: dict[str, Any] = {
    "what is differentiated": lambda T, c, x: c.add_(x),
    "a number": lambda T, c, x: c.add_(1),
    "itself": lambda T, c, x: c.mul_(c),
    "a constant": lambda T, c, x: c.add_(T.ones(3, dtype=T.float64)),
    "zero": lambda T, c, x: c.zero_(),
    "copy": lambda T, c, x: c.copy_(x),
    "copy detached": lambda T, c, x: c.copy_(x.detach()),
    "an element": lambda T, c, x: put(c, 0, 1.0),
    "an element of x": lambda T, c, x: put(c, 0, x[0]),
    "an element, detached": lambda T, c, x: put(c, 0, x[0].detach()),
    "all elements": lambda T, c, x: put(c, slice(None), x),
    "elements by index": lambda T, c, x: put(c, T.tensor([0, 1]), 1.0),
    "elements by mask": lambda T, c, x: put(c, c > 1, 1.0),
    "a view": lambda T, c, x: c[0].add_(1),
    "a view of all": lambda T, c, x: c.view(3).copy_(x),
    "detached": lambda T, c, x: c.detach().add_(1),
    "its data": lambda T, c, x: c.data.add_(1),
    "under no_grad": lambda T, c, x: T.no_grad()(lambda: c.add_(1))(),
    "index_put_": lambda T, c, x: c.index_put_((T.tensor([0]),), T.tensor([4.0], dtype=T.float64)),
    "index_add_": lambda T, c, x: c.index_add_(0, T.tensor([0]), T.tensor([4.0], dtype=T.float64)),
    "masked_fill_": lambda T, c, x: c.masked_fill_(c > 1, 0.0),
    "scatter_": lambda T, c, x: c.scatter_(0, T.tensor([0]), T.tensor([4.0], dtype=T.float64)),
    "uniform_": lambda T, c, x: c.uniform_(0, 0) and None,
    "unsqueeze_": lambda T, c, x: c.unsqueeze_(0),
    "init": lambda T, c, x: T.nn.init.zeros_(c),
    "out=": lambda T, c, x: T.add(c, c, out=c),
    "out= of x": lambda T, c, x: T.add(x, x, out=c),
    "a copy": lambda T, c, x: c.clone().add_(1),
    "x to a copy": lambda T, c, x: c.clone().add_(x),
    "x to a result": lambda T, c, x: (c * 2).add_(x),
    "x to a new tensor": lambda T, c, x: T.tensor([1.0, 2, 3], dtype=T.float64).add_(x),
    "x to zeros": lambda T, c, x: T.zeros(3, dtype=T.float64).add_(x),
    "an element to a copy": lambda T, c, x: put(c.clone(), 0, x[0]),
    "an element to zeros_like": lambda T, c, x: put(T.zeros_like(c), 0, x[0]),
    "an element to new_zeros": lambda T, c, x: put(x.new_zeros(3), 0, x[0]),
    "the argument": lambda T, c, x: x.add_(1),
    "requires_grad_": lambda T, c, x: c.requires_grad_(),
    "requires_grad_ of the argument": lambda T, c, x: x.requires_grad_(),
    "requires_grad_ off": lambda T, c, x: x.requires_grad_(False),
    "requires_grad_ of a new tensor": lambda T, c, x: T.zeros(3).requires_grad_(),
    "requires_grad=": lambda T, c, x: setattr(x, "requires_grad", True),
    "made to require grad": lambda T, c, x: T.zeros(3, requires_grad=True),
    "backward": lambda T, c, x: (T.ones(3, requires_grad=True) * 2).sum().backward(),
    "autograd.backward": lambda T, c, x: T.autograd.backward((T.ones(3, requires_grad=True) * 2).sum()),
    "autograd.grad": lambda T, c, x: T.autograd.grad((T.ones(3, requires_grad=True) * 2).sum(), [], allow_unused=True),
    "data =": lambda T, c, x: setattr(x, "data", c),
    "data_ptr": lambda T, c, x: x.data_ptr() and None,
    "deepcopy": lambda T, c, x: __import__("copy").deepcopy(x),
    "Parameter": lambda T, c, x: T.nn.Parameter(x),
    "Linear": lambda T, c, x: T.nn.Linear(2, 3),
}


def around(kind: str, T: Any, f: Any, x: Any) -> Any:
    def g(x: Any) -> Any:
        f(x)
        return x.sum()

    F = T.func
    if kind == "grad":
        return F.grad(g)(x)
    if kind == "vjp":
        return F.vjp(g, x)[0]
    if kind == "jvp":
        return F.jvp(g, (x,), (x.cos(),))
    if kind == "jacrev":
        return F.jacrev(g)(x)
    if kind == "vmap":
        return F.vmap(g)(x.outer(x))
    if kind == "vmap of grad":
        return F.vmap(F.grad(g))(x.outer(x))
    if kind == "grad of grad":
        return F.grad(lambda x: F.grad(g)(x).sum() + x.sum())(x)
    return F.grad(lambda y: F.vmap(g)(y).sum())(x.outer(x))


@pytest.mark.parametrize(
    "kind", ["grad", "vjp", "jvp", "jacrev", "vmap", "vmap of grad", "grad of grad", "grad of vmap"]
)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, kind: str) -> None:
    def call(T: Any) -> Any:
        captured = T.tensor([1.0, 2.0, 3.0], dtype=T.float64)
        found = around(kind, T, partial(WRITES[name], T, captured), point(T, 3))
        return found, captured

    compared(call)


def test_key_words_of_refused_writes() -> None:
    x = point(torch, 3)

    def refused(T: Any, write: Any) -> Any:
        c = T.ones(3, dtype=T.float64)
        return T.func.grad(lambda x: (write(T, c, x), x.sum())[1])(point(T, 3))

    for name in ("a number", "an element", "a view", "elements by mask"):
        compared(partial(lambda name, T: refused(T, WRITES[name]), name), ("would mutate a captured Tensor",))
    compared(lambda T: refused(T, WRITES["requires_grad_"]), (r"requires_grad_\(\)", "outside of a function"))
    compared(lambda T: refused(T, WRITES["backward"]), (r"backward\(\) called inside",))
    assert x.requires_grad is False


# ---------------------------------------------------------------------------------------------------- values and errors


def gradient_through_copies(T: Any) -> Any:
    kept = point(T, 3, seed=4)

    def f(x: Any) -> Any:
        a = kept.clone()
        a[0] = x[1]
        a[1:].mul_(x[1:])
        b = kept * 2
        b += x.sin()
        return (a * b).sum()

    return T.func.grad(f)(point(T, 3)), T.func.jacfwd(f)(point(T, 3)), T.func.hessian(f)(point(T, 3)), kept


def both_levels_written(T: Any) -> Any:
    kept = point(T, 3, seed=4)

    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            a = kept.clone()
            a[0] = x[1] * y[2]
            a.mul_(y)
            return a.sum()

        return T.func.grad(g)(x * 2).square().sum()

    return T.func.grad(f)(point(T, 3))


def history_below(T: Any) -> Any:
    w = point(T, 3, seed=4, grad=True)

    def f(x: Any) -> Any:
        a = w.clone()
        a[0] = x[1]
        return (a * x * w).sum()

    return T.autograd.grad(T.func.grad(f)(point(T, 3)).sum(), w)


def escaped(T: Any, transform: Any) -> Any:
    box: list[Any] = []
    transform(lambda x: (box.append(x * 2), x.sum())[1])
    return box[0]


def in_threads(T: Any) -> Any:
    found = {}

    def work(i: int) -> None:
        found[i] = T.func.vmap(T.func.grad(lambda x: (x**i).sum()))(point(T, 3, 2))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(4)]


def thread_inside(T: Any) -> Any:
    def f(x: Any) -> Any:
        box: list[Any] = []
        thread = threading.Thread(target=lambda: box.append(point(T, 2).mul_(2)))
        thread.start()
        thread.join()
        return x.sum() * box[0].sum()

    return T.func.grad(f)(point(T, 3))


def after_failures(T: Any) -> Any:
    def fail(x: Any) -> Any:
        raise KeyError("a")

    F = T.func
    for transform in (F.grad, F.jacrev, F.jacfwd, F.vmap, F.hessian):
        with pytest.raises(KeyError):
            transform(fail)(point(T, 3))
    with pytest.raises(KeyError):
        F.jvp(fail, (point(T, 3),), (point(T, 3),))
    x = point(T, 3, grad=True)
    (x * x).sum().backward()
    kept = point(T, 3).mul_(2)
    return x.grad, T.is_grad_enabled(), F.vmap(lambda y: y * 2)(point(T, 3)), kept


def left_inside(T: Any) -> Any:
    def f(x: Any) -> Any:
        with pytest.raises(ZeroDivisionError):
            T.func.vmap(T.func.grad(lambda y: 1 / 0))(x)
        return (x * x).sum()

    return T.func.grad(f)(point(T, 3))


def third_by_all(T: Any) -> Any:
    F = T.func
    x = point(T, 3)

    def f(x: Any) -> Any:
        return (x**4).sum()

    return F.jacfwd(F.jacrev(F.grad(f)))(x), F.jacrev(F.hessian(f))(x), F.vmap(F.hessian(f))(x[None])


def in_forward_mode(T: Any, f: Any) -> Any:
    fw = T.autograd.forward_ad
    with fw.dual_level():
        return f(fw, fw.make_dual(point(T, 3), point(T, 3, seed=1)))


def tangent_inside(T: Any, x: Any) -> Any:
    fw = T.autograd.forward_ad
    with fw.dual_level():
        return fw.unpack_dual(fw.make_dual(x, T.ones_like(x)) ** 2).tangent


def shared_with_tangent(T: Any) -> Any:
    fw = T.autograd.forward_ad
    x = point(T, 3)
    with fw.dual_level():
        dual = fw.make_dual(x, x)
        dual.add_(1)
    return x


def pulled(T: Any, f: Any, *vectors: Any) -> Any:
    return T.func.vjp(f, point(T, 3))[1](*vectors)


def linearized(T: Any, f: Any, *vectors: Any, primals: Any = None) -> Any:
    out, push = T.func.linearize(f, *((point(T, 3),) if primals is None else primals))
    return out, push(*vectors)


def saved_hooks(T: Any, x: Any) -> Any:
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return (x * x).sum()


def names_kept(T: Any) -> Any:
    def own(x: Any) -> Any:
        "What it says."
        return x.sum()

    F = T.func
    made = [F.grad(own), F.vmap(own), F.jacrev(own), F.jacfwd(own), F.hessian(own), F.grad_and_value(own)]
    return [(f.__name__, f.__doc__) for f in made[:4]]


def inference(T: Any, f: Any) -> Any:
    with T.inference_mode():
        return f(point(T, 3)).tolist()


X: Any = point


def F2(x: Any, y: Any) -> Any:
    return (x * y * y).sum()


PROGRAMS: dict[str, Any] = {
    "writes to copies": gradient_through_copies,
    "writes at both levels": both_levels_written,
    "history below": history_below,
    "third derivatives": third_by_all,
    "escape of grad": lambda T: escaped(T, lambda f: T.func.grad(f)(X(T, 3))) + 1,
    "escape of grad, history": lambda T: escaped(T, lambda f: T.func.grad(f)(X(T, 3))).requires_grad,
    "escape of jvp": lambda T: escaped(T, lambda f: T.func.jvp(f, (X(T, 3),), (X(T, 3),))) + 1,
    "escape of vmap": lambda T: escaped(T, lambda f: T.func.vmap(f)(X(T, 3, 2))) + 1,
    "escape of vmap, value": lambda T: escaped(T, lambda f: T.func.vmap(f)(X(T, 3))).item(),
    "threads": in_threads,
    "a thread inside": thread_inside,
    "after failures": after_failures,
    "left inside": left_inside,
    "jacrev by two": lambda T: T.func.jacrev(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(X(T, 3), X(T, 3, seed=1)),
    "jacrev by the same": lambda T: T.func.jacrev(lambda x, y: x * y, argnums=(0, -2))(X(T, 3), X(T, 3)),
    "jacrev by none": lambda T: T.func.jacrev(lambda x, y: x * y, argnums=())(X(T, 3), X(T, 3)),
    "jacrev by a float": lambda T: T.func.jacrev(lambda x: x, argnums=0.0)(X(T, 3)),
    "jacfwd too far": lambda T: T.func.jacfwd(lambda x: x, argnums=2)(X(T, 3)),
    "jacfwd by the same": lambda T: T.func.jacfwd(lambda x, y: x * y, argnums=(0, 0))(X(T, 3), X(T, 3)),
    "grad by a string": lambda T: T.func.grad(lambda x: x.sum(), argnums="0")(X(T, 3)),
    "jacrev with aux": lambda T: T.func.jacrev(lambda x: (x * x, {"a": x.sum(), "b": (x,)}), has_aux=True)(X(T, 3)),
    "jacfwd with aux": lambda T: T.func.jacfwd(lambda x: (x * x, {"a": x.sum(), "b": (x,)}), has_aux=True)(X(T, 3)),
    "jacrev without aux": lambda T: T.func.jacrev(lambda x: x * x, has_aux=True)(X(T, 3)),
    "jacfwd without aux": lambda T: T.func.jacfwd(lambda x: x * x, has_aux=True)(X(T, 3)),
    "aux a number": lambda T: T.func.grad(lambda x: (x.sum(), 3), has_aux=True)(X(T, 3)),
    "aux None": lambda T: T.func.grad(lambda x: (x.sum(), None), has_aux=True)(X(T, 3)),
    "aux of vjp": lambda T: T.func.vjp(lambda x: (x.sum(), 3), X(T, 3), has_aux=True)[0],
    "aux of jvp": lambda T: T.func.jvp(lambda x: (x.sum(), 3), (X(T, 3),), (X(T, 3),), has_aux=True),
    "aux of grad_and_value": lambda T: T.func.grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(X(T, 3)),
    "chunks of one": lambda T: T.func.jacrev(lambda x: x * x, chunk_size=1)(X(T, 3)),
    "chunks of a float": lambda T: T.func.jacrev(lambda x: x * x, chunk_size=1.5)(X(T, 3)),
    "jacrev of integers": lambda T: T.func.jacrev(lambda x: x * x)(T.arange(3)),
    "jacfwd of integers": lambda T: T.func.jacfwd(lambda x: x * x)(T.arange(3)),
    "jacrev to integers": lambda T: T.func.jacrev(lambda x: (x * 2).long())(X(T, 3)),
    "jacrev of a number": lambda T: T.func.jacrev(lambda x: x * x)(X(T)),
    "jacrev of nothing": lambda T: T.func.jacrev(lambda x: x * x)(X(T, 0)),
    "jacfwd of nothing": lambda T: T.func.jacfwd(lambda x: x * x)(X(T, 0)),
    "jacrev to nothing": lambda T: T.func.jacrev(lambda x: x[:0])(X(T, 3)),
    "jacrev of two dtypes": lambda T: T.func.jacrev(lambda x, y: x * y, argnums=(0, 1))(X(T, 3), X(T, 3).float()),
    "jacfwd of two dtypes": lambda T: T.func.jacfwd(lambda x, y: x * y, argnums=(0, 1))(X(T, 3), X(T, 3).float()),
    "jacrev to a dict": lambda T: T.func.jacrev(lambda x: {"a": x, "b": [x.sum()]})(X(T, 3)),
    "jacrev of a dict": lambda T: T.func.jacrev(lambda p: p["a"] * p["b"])({"a": X(T, 3), "b": X(T, 3, seed=1)}),
    "jacfwd of a dict": lambda T: T.func.jacfwd(lambda p: p["a"] * p["b"])({"a": X(T, 3), "b": X(T, 3, seed=1)}),
    "jacrev beside a number": lambda T: T.func.jacrev(lambda x, n: x * n)(X(T, 3), 2.0),
    "jacrev of a Python number": lambda T: T.func.jacrev(lambda n: X(T, 3) * n)(2.0),
    "jacrev to a Python number": lambda T: T.func.jacrev(lambda x: 2.0)(X(T, 3)),
    "jacfwd to a Python number": lambda T: T.func.jacfwd(lambda x: 2.0)(X(T, 3)),
    "jacrev to None": lambda T: T.func.jacrev(lambda x: None)(X(T, 3)),
    "jacrev to an empty tuple": lambda T: T.func.jacrev(lambda x: ())(X(T, 3)),
    "jacfwd to an empty tuple": lambda T: T.func.jacfwd(lambda x: ())(X(T, 3)),
    "jacrev with keywords": lambda T: T.func.jacrev(lambda x, k: x * k)(X(T, 3), k=2),
    "jacrev of a constant": lambda T: T.func.jacrev(lambda x: X(T, 2))(X(T, 3)),
    "jacfwd of a constant": lambda T: T.func.jacfwd(lambda x: X(T, 2))(X(T, 3)),
    "hessian by two": lambda T: T.func.hessian(F2, argnums=(0, 1))(X(T, 2), X(T, 2, seed=1)),
    "hessian of a vector": lambda T: T.func.hessian(lambda x: x**3)(X(T, 2)),
    "hessian of a dict": lambda T: T.func.hessian(lambda p: F2(p["a"], p["b"]))({"a": X(T, 2), "b": X(T, 2, seed=1)}),
    "jacfwd random": lambda T: T.func.jacfwd(lambda x: T.nn.functional.dropout(x, 0.5))(X(T, 3)),
    "jacfwd random, same": lambda T: T.func.jacfwd(T.bernoulli, randomness="same")(X(T, 3) / 2).shape,
    "grad to a tuple": lambda T: T.func.grad(lambda x: (x.sum(),))(X(T, 3)),
    "grad to one element": lambda T: T.func.grad(lambda x: x[:1])(X(T, 3)),
    "grad to integers": lambda T: T.func.grad(lambda x: x.sum().long())(X(T, 3)),
    "grad of bools": lambda T: T.func.grad(lambda x: x.sum())(T.tensor([True])),
    "grad of None": lambda T: T.func.grad(lambda x: X(T))(None),
    "grad of a list": lambda T: T.func.grad(lambda p: F2(*p))([X(T, 3), X(T, 3, seed=1)]),
    "grad of a list with a number": lambda T: T.func.grad(lambda p: F2(*p))([X(T, 3), 2.0]),
    "grad of nothing": lambda T: T.func.grad(lambda: X(T))(),
    "grad of keywords": lambda T: T.func.grad(lambda x: x.sum())(x=X(T, 3)),
    "detach": lambda T: T.func.grad(lambda x: (x.detach() * x).sum())(X(T, 3)),
    "item": lambda T: T.func.grad(lambda x: x.sum() * x[0].item())(X(T, 3)),
    "branch": lambda T: T.func.grad(lambda x: x.sum() if x[0] > 0 else -x.sum())(X(T, 3)),
    "nested and captured": lambda T: T.func.grad(lambda x: T.func.grad(lambda y: F2(x, y))(x).sum())(X(T, 3)),
    "vjp twice": lambda T: [T.func.vjp(lambda x: x * x, X(T, 3))[1](X(T, 3, seed=s)) for s in (1, 2)],
    "vjp, wrong shape": lambda T: pulled(T, lambda x: x * x, X(T, 4)),
    "vjp, wrong dtype": lambda T: pulled(T, lambda x: x * x, X(T, 3).float()),
    "vjp, a number": lambda T: pulled(T, lambda x: x * x, 3.0),
    "vjp, no vector": lambda T: pulled(T, lambda x: x * x),
    "vjp, two vectors": lambda T: pulled(T, lambda x: (x * x, x), X(T, 3), X(T, 3)),
    "vjp of nothing": lambda T: T.func.vjp(lambda: X(T, 3))[0],
    "vjp of a number": lambda T: T.func.vjp(lambda x: X(T, 2), 3.0)[0],
    "jvp of nothing": lambda T: T.func.jvp(lambda: X(T, 3), (), ()),
    "jvp of lists": lambda T: T.func.jvp(lambda x: x, [X(T, 3)], [X(T, 3)]),
    "jvp of integers": lambda T: T.func.jvp(lambda x: x, (T.arange(3),), (T.arange(3),)),
    "jvp of a number": lambda T: T.func.jvp(lambda x: x, (3.0,), (3.0,)),
    "jvp, strict": lambda T: T.func.jvp(lambda x: (x, X(T, 2)), (X(T, 3),), (X(T, 3),), strict=True),
    "jvp of a constant": lambda T: T.func.jvp(lambda x: (x, X(T, 2)), (X(T, 3),), (X(T, 3),)),
    "jvp to integers": lambda T: T.func.jvp(lambda x: (x, (x * 3).long()), (X(T, 3),), (X(T, 3),)),
    "jvp to a number": lambda T: T.func.jvp(lambda x: 3, (X(T, 3),), (X(T, 3),)),
    "jvp to None": lambda T: T.func.jvp(lambda x: None, (X(T, 3),), (X(T, 3),)),
    "jvp of jvp": lambda T: T.func.jvp(
        lambda x: T.func.jvp(lambda y: y**3, (x,), (T.ones_like(x),))[1], (X(T, 3),), (X(T, 3, seed=1),)
    ),
    "dual numbers in grad": lambda T: T.func.grad(lambda x: tangent_inside(T, x).sum())(X(T, 3)),
    "dual numbers in jvp": lambda T: T.func.jvp(lambda x: tangent_inside(T, x), (X(T, 3),), (X(T, 3),)),
    "out= of dual numbers": lambda T: in_forward_mode(T, lambda fw, x: T.add(x, x, out=X(T, 3))),
    "a tangent that is the primal": shared_with_tangent,
    "autograd.grad in vmap": lambda T: T.func.vmap(lambda x: T.autograd.grad((x * x).sum(), x))(X(T, 3, 2)),
    "autograd.grad in grad": lambda T: T.func.grad(
        lambda x: T.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum()
    )(X(T, 3)),
    "functional in grad": lambda T: T.func.grad(lambda x: T.autograd.functional.jacobian(lambda y: y * y, x).sum())(
        X(T, 3)
    ),
    "functional.hvp in vmap": lambda T: T.func.vmap(
        lambda x: T.autograd.functional.hvp(lambda y: (y**3).sum(), x, x)[1]
    )(X(T, 3, 2)),
    "no_grad around vmap": lambda T: T.no_grad()(T.func.vmap(lambda x: x * x))(X(T, 3, 2, grad=True)),
    "hooks on saved tensors in grad": lambda T: T.func.grad(partial(saved_hooks, T))(X(T, 3)),
    "hooks on saved tensors in jvp": lambda T: T.func.jvp(partial(saved_hooks, T), (X(T, 3),), (X(T, 3),)),
    "checkpoint in grad": lambda T: T.func.grad(
        lambda x: T.utils.checkpoint.checkpoint(lambda y: (y * y).sum(), x, use_reentrant=False)
    )(X(T, 3)),
    "batched cotangents": lambda T: [
        T.autograd.grad(x * x, x, T.eye(3, dtype=T.float64), is_grads_batched=True) for x in [X(T, 3, grad=True)]
    ],
    "names": names_kept,
    "grad mode inside": lambda T: T.no_grad()(
        lambda: T.func.grad(lambda x: x.sum() * float(T.is_grad_enabled()))(X(T, 2))
    )(),
    "grad in inference mode": lambda T: inference(T, T.func.grad(lambda x: (x**3).sum())),
    "hessian in inference mode": lambda T: inference(T, T.func.hessian(lambda x: (x**3).sum())),
    "vmap in inference mode": lambda T: inference(T, T.func.vmap(lambda x: x**3)),
    "linearize": lambda T: linearized(T, lambda x: (x.sin(), {"a": x.sum()}), X(T, 3, seed=1)),
    "linearize by two": lambda T: linearized(
        T, lambda x, y: x * y, X(T, 3, seed=1), X(T, 3, seed=2), primals=(X(T, 3), X(T, 3, seed=3))
    ),
    "linearize a constant": lambda T: linearized(T, lambda x: (x * 2, X(T, 2)), X(T, 3)),
    "linearize to integers": lambda T: linearized(T, lambda x: ((x * 3).long(), x * x), X(T, 3))[1][1],
    "linearize, two tangents": lambda T: linearized(T, lambda x: x.sin(), X(T, 3), X(T, 3)),
    "linearize, wrong shape": lambda T: linearized(T, lambda x: x.sin(), X(T, 4)),
    "linearize, wrong dtype": lambda T: linearized(T, lambda x: x.sin(), X(T, 3).float()),
    "linearize, batched": lambda T: T.func.vmap(T.func.linearize(lambda x: x.sin(), X(T, 3))[1])(X(T, 4, 3)),
    "linearize integers": lambda T: linearized(
        T, lambda x, i: x * i, X(T, 3), T.arange(3), primals=(X(T, 3), T.arange(3))
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    compared(PROGRAMS[name])


def test_debug_unwrap() -> None:
    def call(T: Any) -> Any:
        box: list[Any] = []

        def f(x: Any) -> Any:
            box.append(T.func.debug_unwrap(x))
            box.append(T.func.debug_unwrap(T.func.debug_unwrap(x, recurse=False), recurse=False))
            return x.sum()

        T.func.vmap(T.func.grad(f))(point(T, 3, 2))
        return box

    compared(call)
    compared(lambda T: T.func.debug_unwrap(point(T, 3)))
