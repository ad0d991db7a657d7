"""Transforms, forward mode and Functions under them: the same programs in PyTorch."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import rgrad
from compare import same
from func_kit import compared, leaves, point, torch

# ---------------------------------------------------------------------------------------------------- signatures


@pytest.mark.parametrize("name", rgrad.func.__all__)
def test_signatures(name: str) -> None:
    ours = inspect.signature(getattr(rgrad.func, name)).parameters.values()
    theirs = inspect.signature(getattr(torch.func, name)).parameters.values()
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


def test_names() -> None:
    assert set(rgrad.func.__all__) <= set(torch.func.__all__)
    assert set(rgrad.autograd.forward_ad.__all__) == set(torch.autograd.forward_ad.__all__)


# ---------------------------------------------------------------------------------------------------- single transforms


def net(T: Any) -> Any:
    w = point(T, 2, 3, seed=9)
    return lambda x: T.tanh(w @ T.sin(x))


def pulled(found: Any, vector: Any) -> Any:
    """What a transform gave, and what the function among it gives for a vector."""
    out, func, *aux = found
    return out, func(vector), aux


def batch_of_cotangents(T: Any, x: Any) -> Any:
    return T.autograd.grad(net(T)(x), x, point(T, 5, 2), is_grads_batched=True)


def pushed(F: Any, g: Any) -> Any:
    return lambda x: F.jvp(g, (x,), (x.cos(),))[1]


def pulled_back(F: Any, g: Any) -> Any:
    def f(x: Any) -> Any:
        out, pull = F.vjp(g, x)
        return pull(out.cos())[0]

    return f


CALLS: dict[str, Any] = {
    "grad": lambda T, x: T.func.grad(lambda x: (x.sin() * x).sum())(x),
    "grad of two": lambda T, x: T.func.grad(lambda x, y: (x * y.exp()).sum(), argnums=(0, 1))(x, x * 2),
    "grad, last": lambda T, x: T.func.grad(lambda x, y: (x * y.exp()).sum(), argnums=-1)(x, x * 2),
    "grad of a dict": lambda T, x: T.func.grad(lambda p, k=1: (p["a"] * p["b"]).sum() * k)({"a": x, "b": x * 2}, k=3),
    "grad with aux": lambda T, x: T.func.grad(lambda x: (x.sum(), (x * 2, [x])), has_aux=True)(x),
    "value": lambda T, x: T.func.grad_and_value(lambda x: (x.prod(), {"a": x}), has_aux=True)(x),
    "no dependence": lambda T, x: T.func.grad(lambda x: T.ones((), dtype=x.dtype))(x),
    "vjp": lambda T, x: pulled(T.func.vjp(lambda x: (x.exp(), x.prod()), x), (x, x.sum())),
    "vjp with aux": lambda T, x: pulled(T.func.vjp(lambda x: (x * x, x + 1), x, has_aux=True), x),
    "vjp batched": lambda T, x: T.func.vmap(T.func.vjp(net(T), x)[1])(point(T, 4, 2)),
    "jvp": lambda T, x: T.func.jvp(lambda x: {"a": x * x, "b": (x.sum(), x[0])}, (x,), (x.cos(),)),
    "jvp with aux": lambda T, x: T.func.jvp(lambda x: (x * x, x.exp()), (x,), (x.cos(),), has_aux=True),
    "linearize": lambda T, x: pulled(T.func.linearize(lambda x: (x * x).sin(), x), x.cos()),
    "jacrev": lambda T, x: T.func.jacrev(net(T))(x),
    "jacfwd": lambda T, x: T.func.jacfwd(net(T))(x),
    "jacrev in chunks": lambda T, x: T.func.jacrev(lambda x: (x.outer(x), x), chunk_size=2)(x),
    "jacrev in place": lambda T, x: T.func.jacrev(
        lambda x, y: (x.outer(y), x), (0, 1), chunk_size=2, _preallocate_and_copy=True
    )(x, x[:2]),
    "jacrev row by row in place": lambda T, x: T.func.jacrev(
        lambda x: (x.outer(x), x), chunk_size=1, _preallocate_and_copy=True
    )(x),
    "jacrev in place, at once": lambda T, x: T.func.jacrev(lambda x: x.exp(), _preallocate_and_copy=True)(x),
    "jacrev by two": lambda T, x: T.func.jacrev(lambda x, y: x.outer(y), argnums=(1, 0))(x, x[:2]),
    "jacfwd by two": lambda T, x: T.func.jacfwd(lambda x, y: x.outer(y), argnums=(1, 0))(x, x[:2]),
    "jacfwd of a tree": lambda T, x: T.func.jacfwd(lambda p: {"s": p[0] * p[1]})([x, x * 2]),
    "jacobian of integers": lambda T, x: T.func.jacfwd(lambda x: (x * 3).long())(x),
    "hessian": lambda T, x: T.func.hessian(lambda x: net(T)(x).sum())(x),
    "hessian by two": lambda T, x: T.func.hessian(lambda x, y: (x.outer(y)).sin().sum(), argnums=(0, 1))(x, x[:2]),
    "vmap": lambda T, x: T.func.vmap(lambda a, b: a.dot(b), in_dims=(0, None))(x.outer(x), x),
    "vmap, other dims": lambda T, x: T.func.vmap(lambda a: (a, a.sum()), in_dims=1, out_dims=(-1, 0))(x.outer(x[:2])),
    "vmap, not batched": lambda T, x: T.func.vmap(lambda a: (x, 3), out_dims=(0, None))(x),
    "vmap in chunks": lambda T, x: T.func.vmap(lambda a: a.exp(), chunk_size=2)(x),
    "vmap of grad": lambda T, x: T.func.vmap(T.func.grad(lambda a: a.sin().sum()))(x.outer(x)),
    "grad of vmap": lambda T, x: T.func.grad(lambda x: T.func.vmap(lambda a: a * x)(x).sum())(x),
    "no_grad inside": lambda T, x: T.func.grad(lambda x: T.func.vjp(partly(T), x)[0].sum())(x),
    "no_grad inside twice": lambda T, x: T.func.grad(lambda x: T.func.grad(lambda y: partly(T)(y).sum())(x).sum())(x),
    "under no_grad": lambda T, x: under_no_grad(T, x),
    "batched cotangents": lambda T, x: batch_of_cotangents(T, x.detach().requires_grad_()),
    "jacobian, vectorized": lambda T, x: T.autograd.functional.jacobian(net(T), x, vectorize=True),
    "jacobian, forward": lambda T, x: T.autograd.functional.jacobian(
        lambda x, y: (x * y, y), (x, x * 2), vectorize=True, strategy="forward-mode"
    ),
    # PyTorch makes the inputs themselves require grad here, and so the result.
    "hessian, forward": lambda T, x: [
        h.detach()
        for h in leaves(
            T.autograd.functional.hessian(
                lambda x, y: (x * y).sin().sum(), (x, x * 2), vectorize=True, outer_jacobian_strategy="forward-mode"
            )
        )
    ],
    "hessian, vectorized": lambda T, x: T.autograd.functional.hessian(
        lambda x, y: (x * y).sin().sum(), (x, x * 2), vectorize=True
    ),
}


def partly(T: Any) -> Any:
    def f(x: Any) -> Any:
        with T.no_grad():
            c = x**2
        return x * c

    return f


def under_no_grad(T: Any, x: Any) -> Any:
    with T.no_grad():
        return T.func.grad(lambda x: (x * x).sum())(x)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_values_structure_and_history(name: str, grad: bool) -> None:
    if grad and name == "linearize":
        pytest.skip("PyTorch traces linearize, and its trace has no history")
    compared(lambda T: CALLS[name](T, point(T, 3, grad=grad)))


# ---------------------------------------------------------------------------------------------------- errors


ERRORS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "integers": (lambda T, x: T.func.grad(lambda x: x.sum())(x.long()), ("floating point",)),
    "a number": (lambda T, x: T.func.grad(lambda x: x)(3.0), ("must be Tensor",)),
    "no scalar": (lambda T, x: T.func.grad(lambda x: x)(x), ("scalar Tensor, got tensor with 1 dims",)),
    "no tensor": (lambda T, x: T.func.grad(lambda x: 3)(x), ("to return a Tensor",)),
    "argnum": (lambda T, x: T.func.grad(lambda x: x.sum(), argnums=2)(x), ("Got argnum=2",)),
    "argnums": (lambda T, x: T.func.grad(lambda x: x.sum(), argnums=[0])(x), ("argnums must be int",)),
    "no aux": (lambda T, x: T.func.grad(lambda x: x.sum(), has_aux=True)(x), ("output, aux",)),
    "vjp of a number": (lambda T, x: T.func.vjp(lambda x: (x, 3), x), ("only tensors",)),
    "vjp of integers": (lambda T, x: T.func.vjp(lambda x: x.long(), x), ("floating-point",)),
    "cotangents": (lambda T, x: T.func.vjp(lambda x: x, x)[1]((x, x)), ("pytree structure of cotangents",)),
    "primals": (lambda T, x: T.func.jvp(lambda x: x, x, x), ("Expected primals to be a tuple",)),
    "tangents": (lambda T, x: T.func.jvp(lambda x: x, (x,), (x, x)), ("same python structure",)),
    "tangent's shape": (lambda T, x: T.func.jvp(lambda x: x, (x,), (x[:1],)), ("different size",)),
    "strict": (lambda T, x: T.func.jvp(lambda y: x, (x,), (x,), strict=True), ("independent of the inputs",)),
    "chunk_size": (lambda T, x: T.func.jacrev(lambda x: x, chunk_size=0), ("greater than 0",)),
    "item": (lambda T, x: T.func.vmap(lambda x: x.item())(x), ("item",)),
    "branch": (lambda T, x: T.func.vmap(lambda x: x if x > 0 else -x)(x), ("data-dependent control flow",)),
    "random": (lambda T, x: T.func.vmap(lambda x: x + T.rand(()))(x), ("randomness error mode",)),
    "randomness": (lambda T, x: T.func.vmap(lambda x: x, randomness="a")(x), ("Only allowed values for randomness",)),
    "nonzero": (lambda T, x: T.func.vmap(T.nonzero)(x), ("vmap",)),
    "sizes": (lambda T, x: T.func.vmap(lambda x, y: x)(x, x[:2]), ("same size in the mapped dimension",)),
    "in_dims": (lambda T, x: T.func.vmap(lambda x: x, in_dims=[0])(x), ("expected `in_dims` to be int",)),
    "in_dims tree": (lambda T, x: T.func.vmap(lambda x: x, in_dims=([0],))(x), ("not compatible with the structure",)),
    "in_dim": (lambda T, x: T.func.vmap(lambda x: x, in_dims=1)(x), ("expected in_dim to satisfy",)),
    "out_dims tree": (
        lambda T, x: T.func.vmap(lambda x: x, out_dims=(0, 0))(x),
        ("not compatible with the structure",),
    ),
    "out_dim": (lambda T, x: T.func.vmap(lambda x: x, out_dims=3)(x), ("Dimension out of range",)),
    "out_dim None": (lambda T, x: T.func.vmap(lambda x: x, out_dims=None)(x), ("when out_dim is None",)),
    "result": (lambda T, x: T.func.vmap(lambda x: 3)(x), ("must only return Tensors",)),
    "inputs": (lambda T, x: T.func.vmap(lambda: 3)(), ("got no inputs",)),
    "chunks": (lambda T, x: T.func.vmap(lambda x: x, chunk_size=-1)(x), ("chunk_size",)),
    "captured": (lambda T, x: T.func.grad(lambda y: x.add_(y).sum())(x * 2), ("mutate a captured Tensor",)),
    "captured by vmap": (lambda T, x: T.func.vmap(lambda y: x.add_(y))(x.outer(x)), ()),
    "batched cotangents": (
        lambda T, x: T.autograd.grad(x.requires_grad_() * 2, x, T.ones(4), is_grads_batched=True),
        ("we interpret the first",),
    ),
    "strategy": (lambda T, x: T.autograd.functional.jacobian(net(T), x, strategy="a"), ("Expected strategy",)),
    "strict, vectorized": (
        lambda T, x: T.autograd.functional.jacobian(net(T), x, strict=True, vectorize=True),
        ("strict",),
    ),
    "one by one forward": (
        lambda T, x: T.autograd.functional.jacobian(net(T), x, strategy="forward-mode"),
        ("vectorize",),
    ),
    "dual without level": (lambda T, x: T.autograd.forward_ad.make_dual(x, x), ("no level exists",)),
    "models": (lambda T, x: T.func.stack_module_state([]), ("at least one model",)),
    "dicts": (lambda T, x: T.func.functional_call(T.nn.Linear(1, 1), 3, x), ("to be a dict",)),
    "twice": (
        lambda T, x: T.func.functional_call(T.nn.Linear(1, 1), ({"bias": x}, {"bias": x}), x),
        ("multiple dict",),
    ),
    "missing": (lambda T, x: T.func.functional_call(T.nn.Linear(1, 1), {"bias": x}, x, strict=True), ("Missing key",)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, words = ERRORS[name]
    compared(lambda T: call(T, point(T, 3)), words)


# ---------------------------------------------------------------------------------------------------- forward mode


@pytest.mark.parametrize("name", ["chain", "views", "writes", "indices", "matrix", "selections", "casts"])
def test_dual_programs(name: str) -> None:
    def chain(T: Any, x: Any, y: Any) -> Any:
        return ((x * y).sin() / (1 + x**2)).logsumexp(0), x.softmax(0), (x - y).abs()

    def views(T: Any, x: Any, y: Any) -> Any:
        return x.view(3, 1).expand(3, 2).t().reshape(-1), x[1:].flip(0), T.stack([x, y], 1).unbind(1)

    def writes(T: Any, x: Any, y: Any) -> Any:
        z = x.clone()
        z[0] = y[1]
        z[1:].mul_(y[1:])
        w = T.zeros(3, dtype=T.float64)
        w.copy_(y)
        return z, w.add_(x, alpha=2)

    def indices(T: Any, x: Any, y: Any) -> Any:
        i = T.tensor([2, 0, 0])
        return x[i], x.gather(0, i), T.zeros(3, dtype=T.float64).index_add(0, i, y), T.where(x > 0.6, x, y)

    def matrix(T: Any, x: Any, y: Any) -> Any:
        a = x.outer(y)
        return a @ x, T.einsum("ij,jk->ik", a, a), T.nn.functional.linear(a, a, y), a.norm(), a.var(0)

    def selections(T: Any, x: Any, y: Any) -> Any:
        return x.max(), x.sort().values, x.median(), T.maximum(x, y), x.clamp(0.4, 0.9), x.cumsum(0), x.prod()

    def casts(T: Any, x: Any, y: Any) -> Any:
        return x.float() * 2, (x > 0.5).double() * y, x.detach() * 3, x.argmax()

    program = {f.__name__: f for f in (chain, views, writes, indices, matrix, selections, casts)}[name]

    def call(T: Any) -> Any:
        fw = T.autograd.forward_ad
        x, y = point(T, 3), point(T, 3, seed=1)
        with fw.dual_level():
            outs = program(T, fw.make_dual(x, x.cos()), fw.make_dual(y, y.sin()))
            found = []
            for out in leaves(outs):
                primal, tangent = fw.unpack_dual(out)
                found += [
                    primal.detach(),
                    tangent if tangent is None or not tangent.requires_grad else tangent.detach(),
                ]
            return found

    ours, theirs = call(rgrad), call(torch)
    for k, (g, w) in enumerate(zip(ours, theirs, strict=True)):
        if w is None or g is None:
            # A tangent that is zero everywhere may be left out.
            left = w if g is None else g
            assert left is None or not left.any(), (name, k)
        else:
            same(g, w, factor=100, strides=False, history=False)


# ---------------------------------------------------------------------------------------------------- random towers


STEPS = 7


def program(rng: np.random.Generator, T: Any) -> Any:
    steps = [(int(rng.integers(0, STEPS)), float(rng.uniform(0.3, 0.9))) for _ in range(int(rng.integers(2, 5)))]

    def f(x: Any) -> Any:
        y = x * 0.5
        for kind, c in steps:
            if kind == 0:
                y = T.tanh(y) * c
            elif kind == 1:
                y = y * x + c
            elif kind == 2:
                y = T.stack([y, y.flip(0)]).sum(0) * c
            elif kind == 3:
                y = y.outer(y) @ x * c
            elif kind == 4:
                y = T.cat([y[1:], y[:1]]) / (2 + y.square())
            elif kind == 5:
                y = T.where(y > 0, y.exp(), y) - y.softmax(0)
            else:
                z = y.clone()
                z[0] = (y * c).sum()
                y = z.sin()
        return (y * y).mean() + y[0]

    return f


@pytest.mark.parametrize("seed", range(120))
def test_random_towers(seed: int) -> None:
    def call(T: Any) -> Any:
        rng = np.random.default_rng(seed)
        f = program(rng, T)
        F = T.func
        batches = rank = 0
        for _ in range(int(rng.integers(1, 5))):
            kind = str(rng.choice(["grad", "jvp", "jacrev", "jacfwd", "vmap", "vjp"]))
            if batches + rank > 2 and kind != "jvp":
                continue
            if kind == "vmap":
                f, batches = F.vmap(f), batches + 1
            elif kind == "jvp":
                f = pushed(F, f)
            elif kind == "vjp":
                f = pulled_back(F, f)
                rank = 1
            elif kind == "grad" and rank == batches == 0:
                f, rank = F.grad(f), 1
            else:
                f, rank = (F.jacfwd if kind == "jacfwd" else F.jacrev)(f), rank + 1 + batches
        return f(T.tensor(rng.uniform(-1, 1, (2,) * batches + (3,))))

    compared(call)


# ---------------------------------------------------------------------------------------------------- Functions


def square(T: Any) -> Any:
    class Square(T.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x * x, x.sum()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            ctx.shape = inputs[0].shape

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g + h.expand(ctx.shape)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * t, t.sum()

    return Square.apply


def plain(T: Any) -> Any:
    class Plain(T.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    return Plain.apply


def with_ctx(T: Any) -> Any:
    class WithCtx(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    return WithCtx.apply


FUNCTIONS: dict[str, Any] = {
    "grad": lambda T, x: T.func.grad(lambda x: square(T)(x)[0].sum())(x),
    "vmap": lambda T, x: T.func.vmap(square(T))(x.outer(x)),
    "vmap twice": lambda T, x: T.func.vmap(T.func.vmap(square(T)))(x.outer(x).view(3, 3, 1)),
    "jvp": lambda T, x: T.func.jvp(square(T), (x,), (x.cos(),)),
    "vmap of jvp": lambda T, x: T.func.vmap(lambda x: T.func.jvp(square(T), (x,), (x.cos(),)))(x.outer(x)),
    "vmap of grad": lambda T, x: T.func.vmap(T.func.grad(lambda x: square(T)(x)[1] * square(T)(x)[0].sum()))(
        x.outer(x)
    ),
    "grad of vmap": lambda T, x: T.func.grad(lambda x: T.func.vmap(square(T))(x.outer(x))[0].sum())(x),
    "jacrev": lambda T, x: T.func.jacrev(square(T))(x),
    "jacfwd": lambda T, x: T.func.jacfwd(square(T))(x),
    "hessian": lambda T, x: T.func.hessian(lambda x: square(T)(x)[0].prod())(x),
    "jacrev twice": lambda T, x: T.func.jacrev(T.func.jacrev(lambda x: square(T)(x)[0].prod()))(x),
    "no vmap": lambda T, x: T.func.vmap(plain(T))(x),
    "no jvp": lambda T, x: T.func.jvp(plain(T), (x,), (x,)),
    "no backward": lambda T, x: T.func.grad(lambda x: plain(T)(x).sum())(x),
    "ctx, vmap": lambda T, x: T.func.vmap(with_ctx(T))(x),
    "ctx, grad": lambda T, x: T.func.grad(lambda x: with_ctx(T)(x).sum())(x),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, grad: bool) -> None:
    compared(lambda T: FUNCTIONS[name](T, point(T, 3, grad=grad)))


SEVERAL: dict[str, Any] = {
    "unbind": lambda y: y.unbind(0),
    "split": lambda y: y.split(1),
    "split sizes": lambda y: y.split([1, 2]),
    "chunk": lambda y: y.chunk(2),
    "iteration": list,
    "tensor_split": lambda y: y.tensor_split(2),
    "hsplit": lambda y: y.hsplit(3),
}


@pytest.mark.parametrize("transform", ["grad", "jacrev", "grad of grad"])
@pytest.mark.parametrize("name", SEVERAL)
def test_refused_writes_to_one_of_several_views(name: str, transform: str) -> None:
    """The message names the operation that has made the views."""

    def message(T: Any) -> str:
        def function(x: Any) -> Any:
            y = x * 1
            SEVERAL[name](y)[0].mul_(2)
            return y.sum()

        transforms = {"grad": T.func.grad, "jacrev": T.func.jacrev}
        run = transforms.get(transform) or (lambda f: T.func.grad(lambda x: T.func.grad(f)(x).sum()))
        try:
            return str(run(function)(T.ones(3)).tolist())
        except RuntimeError as error:
            return str(error).split(". This view is")[0]

    assert message(rgrad) == message(torch)
