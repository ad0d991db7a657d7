"""Forward mode, Functions under transforms, and `autograd.functional`'s mistakes: the same programs in PyTorch."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import rgrad
from compare import same
from func_kit import compared, point, torch

# ---------------------------------------------------------------------------------------------------- forward mode


def put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def zeros(T: Any) -> Any:
    return T.zeros(3, dtype=T.float64)


def through_view(x: Any, write: Any) -> tuple[Any, Any]:
    view = x[1:]
    write(x, view)
    return x, view


# (library, forward_ad, dual number, its primal, its tangent) -> results
DUALS: dict[str, Any] = {
    "a view written": lambda T, fw, d, x, t: through_view(d, lambda base, view: view.mul_(2)),
    "a base written": lambda T, fw, d, x, t: through_view(d, lambda base, view: base.mul_(2)),
    "copied to zeros": lambda T, fw, d, x, t: zeros(T).copy_(d),
    "copied to a part": lambda T, fw, d, x, t: through_view(zeros(T), lambda base, view: view.copy_(d[1:])),
    "a number set": lambda T, fw, d, x, t: put(d, 0, 5.0),
    "an element set": lambda T, fw, d, x, t: put(zeros(T), 0, d[1]),
    "zero_": lambda T, fw, d, x, t: d.zero_(),
    "fill_": lambda T, fw, d, x, t: d.fill_(2),
    "detach": lambda T, fw, d, x, t: d.detach(),
    "detached and written": lambda T, fw, d, x, t: (d.detach().mul_(2), d),
    "data": lambda T, fw, d, x, t: d.data,
    "clone": lambda T, fw, d, x, t: d.clone(),
    "no_grad": lambda T, fw, d, x, t: T.no_grad()(lambda: d * 2)(),
    "inference": lambda T, fw, d, x, t: T.inference_mode()(lambda: (d * 2).tolist())(),
    "float": lambda T, fw, d, x, t: d.float(),
    "long": lambda T, fw, d, x, t: d.long(),
    "compare": lambda T, fw, d, x, t: d > 0.5,
    "expand": lambda T, fw, d, x, t: d.expand(2, 3),
    "expanded and written": lambda T, fw, d, x, t: d.expand(2, 3).mul_(2),
    "item": lambda T, fw, d, x, t: d[0].item(),
    "out=": lambda T, fw, d, x, t: T.add(d, d, out=x.clone()),
    "out= of a dual": lambda T, fw, d, x, t: T.add(x, x, out=d),
    "dual twice": lambda T, fw, d, x, t: fw.make_dual(d, t),
    "a dual tangent": lambda T, fw, d, x, t: fw.make_dual(x, d),
    "wrong shape": lambda T, fw, d, x, t: fw.make_dual(x, t[:2]),
    "integers": lambda T, fw, d, x, t: fw.make_dual(x.long(), t.long()),
    "a tangent of integers": lambda T, fw, d, x, t: fw.make_dual(x, t.long()),
    "level 0": lambda T, fw, d, x, t: fw.make_dual(x, t, level=0),
    "level 1": lambda T, fw, d, x, t: fw.make_dual(x, t, level=1),
    "level -1": lambda T, fw, d, x, t: fw.make_dual(x, t, level=-1),
    "unpack at level 1": lambda T, fw, d, x, t: fw.unpack_dual(d, level=1)[0],
    "unpack what has none": lambda T, fw, d, x, t: fw.unpack_dual(x)[1] is None,
    "nested": lambda T, fw, d, x, t: fw.enter_dual_level(),
    "backward": lambda T, fw, d, x, t: T.autograd.grad((d.requires_grad_() ** 3).sum(), d)[0],
    "stack": lambda T, fw, d, x, t: (T.stack([d, x]), T.cat([x, d])),
    "where": lambda T, fw, d, x, t: T.where(x > 0.5, d, 0.0),
    "indices": lambda T, fw, d, x, t: (d[T.tensor([2, 0, 0])], d[x > 0.5]),
    "sort": lambda T, fw, d, x, t: T.sort(d),
    "unique": lambda T, fw, d, x, t: T.unique(d),
    "round": lambda T, fw, d, x, t: d.round(),
    "cumprod of a zero": lambda T, fw, d, x, t: (d * T.tensor([1.0, 0.0, 2.0], dtype=T.float64)).cumprod(0),
    "cumprod of zeros": lambda T, fw, d, x, t: (d * T.tensor([0.0, 3.0, 0.0], dtype=T.float64)).cumprod(0),
    "prod of zeros": lambda T, fw, d, x, t: (d * T.tensor([1.0, 0.0, 0.0], dtype=T.float64)).prod(),
    "unsqueeze_": lambda T, fw, d, x, t: d.unsqueeze_(0),
    "t_": lambda T, fw, d, x, t: d.view(3, 1).t_(),
    "added in place": lambda T, fw, d, x, t: x.clone().add_(d),
    "a view gets a tangent": lambda T, fw, d, x, t: through_view(x.clone(), lambda base, view: view.add_(d[1:])),
    "flags": lambda T, fw, d, x, t: (d.is_leaf, d._is_view(), d.requires_grad),
    "zeros_like": lambda T, fw, d, x, t: T.zeros_like(d),
    "normal_": lambda T, fw, d, x, t: d.normal_() * 0,
    "as_strided": lambda T, fw, d, x, t: d.as_strided((2,), (1,), 1),
    "index_put_": lambda T, fw, d, x, t: x.clone().index_put_((T.tensor([1]),), d[:1]),
    "masked_fill_": lambda T, fw, d, x, t: d.masked_fill_(x > 0.5, 1.0),
    "promoted": lambda T, fw, d, x, t: T.zeros(3).add_(d.float()),
    "a transposed primal": lambda T, fw, d, x, t: fw.make_dual(point(T, 2, 3).t(), point(T, 3, 2)).reshape(-1),
}


@pytest.mark.parametrize("name", DUALS)
def test_dual_numbers(name: str) -> None:
    def call(T: Any) -> Any:
        fw = T.autograd.forward_ad
        with fw.dual_level():
            x, t = point(T, 3), point(T, 3, seed=1)
            found = DUALS[name](T, fw, fw.make_dual(x, t), x, t)
            out = []
            for value in found if isinstance(found, (tuple, list)) else [found]:
                if isinstance(value, T.Tensor):
                    primal, tangent = fw.unpack_dual(value)
                    out += [primal.detach(), None if tangent is None else tangent.detach()]
                else:
                    out.append(value)
            return out

    compared(call)


def test_after_the_level() -> None:
    def call(T: Any) -> Any:
        fw = T.autograd.forward_ad
        x = point(T, 3)
        with suppress(ZeroDivisionError), fw.dual_level():
            d = fw.make_dual(x, x.cos())
            y = d * 2
            1 / 0
        before = [fw.unpack_dual(v).tangent for v in (d, y)]
        with fw.dual_level():
            return before, [fw.unpack_dual(v).tangent for v in (d, y, d * 2)]

    compared(call)
    compared(lambda T: list(T.autograd.forward_ad.unpack_dual(point(T, 3))))


# ---------------------------------------------------------------------------------------------------- Functions

METHODS: dict[str, Any] = {
    "forward": lambda T, x: x * 2,
    "setup_context": lambda T, ctx, inputs, output: None,
    "backward": lambda T, ctx, g: g * 2,
    "jvp": lambda T, ctx, t: t * 2,
    "generate_vmap_rule": True,
}


def made(T: Any, **changed: Any) -> Any:
    """`apply` of a Function that doubles, with other methods (None: without)."""
    members = {
        name: value if isinstance(value, bool) else staticmethod(partial(value, T))
        for name, value in {**METHODS, **changed}.items()
        if value is not None
    }
    return type("Own", (T.autograd.Function,), members).apply


def keep(T: Any, ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs, output)
    ctx.save_for_forward(*inputs)


def hold(T: Any, ctx: Any, inputs: Any, output: Any) -> None:
    (ctx.x,) = inputs


def into_zeros(T: Any, x: Any) -> Any:
    z = T.zeros(3, dtype=T.float64)
    z.add_(x)
    return z * 2


CHANGES: dict[str, Any] = {
    "as it is": {},
    "no rule for batches": {"generate_vmap_rule": None},
    "no jvp": {"jvp": None},
    "no backward": {"backward": None},
    "too many": {"backward": lambda T, ctx, g: (g, g), "jvp": lambda T, ctx, t: (t, t)},
    "wrong shape": {"backward": lambda T, ctx, g: g[:2], "jvp": lambda T, ctx, t: t[:2]},
    "numbers": {"backward": lambda T, ctx, g: 3, "jvp": lambda T, ctx, t: 3},
    "saved": {
        "forward": lambda T, x: x * x,
        "setup_context": keep,
        "backward": lambda T, ctx, g: ctx.saved_tensors[0] * 2 * g,
        "jvp": lambda T, ctx, t: ctx.saved_tensors[0] * 2 * t,
    },
    "held": {
        "forward": lambda T, x: x * x,
        "setup_context": hold,
        "backward": lambda T, ctx, g: ctx.x * 2 * g,
        "jvp": lambda T, ctx, t: ctx.x * 2 * t,
    },
    "fails": {"forward": lambda T, x: 1 / 0},
    "integers": {
        "forward": lambda T, x: (x * 2).long(),
        "setup_context": lambda T, ctx, inputs, output: ctx.mark_non_differentiable(output),
        "jvp": lambda T, ctx, t: None,
    },
    "writes to its own": {"forward": into_zeros},
    "ctx": {"forward": lambda T, ctx, x: x * 2, "setup_context": None},
}
USES: dict[str, Any] = {
    "grad": lambda T, f, x: T.func.grad(lambda x: f(x).sum())(x),
    "grad twice": lambda T, f, x: T.func.grad(lambda x: T.func.grad(lambda y: f(y).sum())(x).sum())(x),
    "jvp": lambda T, f, x: T.func.jvp(f, (x,), (x.cos(),)),
    "vmap": lambda T, f, x: T.func.vmap(f)(x.outer(x)),
    "jacrev": lambda T, f, x: T.func.jacrev(f)(x),
    "jacfwd": lambda T, f, x: T.func.jacfwd(f)(x),
    "hessian": lambda T, f, x: T.func.hessian(lambda x: f(x).sum())(x),
}
# PyTorch asks for a rule for batches where only tangents have one; here they are what they are with one.
MORE = {("no rule for batches", "jacfwd"), ("no rule for batches", "hessian")}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", CHANGES)
def test_functions(change: str, use: str) -> None:
    if (change, use) in MORE:
        with pytest.raises(RuntimeError):
            USES[use](torch, made(torch, **CHANGES[change]), point(torch, 3))
        ours = USES[use](rgrad, made(rgrad, **CHANGES[change]), point(rgrad, 3))
        same(ours, USES[use](torch, made(torch), point(torch, 3)), factor=1000, strides=False)
    else:
        compared(lambda T: USES[use](T, made(T, **CHANGES[change]), point(T, 3)))


RULES: dict[str, Any] = {
    "a rule": lambda T, info, dims, x: (x * 2, dims[0]),
    "no tuple": lambda T, info, dims, x: x * 2,
    "three": lambda T, info, dims, x: (x * 2, 0, 0),
    "too many places": lambda T, info, dims, x: (x * 2, (0, 0)),
    "no place": lambda T, info, dims, x: (x * 2, None),
    "a place too far": lambda T, info, dims, x: (x * 2, 5),
    "another place": lambda T, info, dims, x: ((x * 2).t(), 1),
    "a negative place": lambda T, info, dims, x: (x * 2, -2),
    "nothing": lambda T, info, dims, x: None,
    "what it is told": lambda T, info, dims, x: (x * info.batch_size + (info.randomness == "error"), 0),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_for_batches(name: str) -> None:
    compared(lambda T: T.func.vmap(made(T, vmap=RULES[name], generate_vmap_rule=None))(point(T, 3, 2)))
    compared(lambda T: T.func.vmap(made(T, vmap=RULES[name]))(point(T, 3, 2)))  # both kinds: refused


# ---------------------------------------------------------------------------------------------------- functional

FUNCTIONAL: dict[str, Any] = {
    "jacobian of a list": lambda T, A, x: A.jacobian(lambda x, y: x * y, [x, x]),
    "strict": lambda T, A, x: A.jacobian(lambda x: x * x, x, strict=True),
    "strict, constant": lambda T, A, x: A.jacobian(lambda y: x * x, x, strict=True),
    "strict, partly": lambda T, A, x: A.jacobian(lambda x, y: x * x, (x, x), strict=True),
    "strict, linear": lambda T, A, x: A.jacobian(lambda x: x * 2, x, strict=True, create_graph=True),
    "integers": lambda T, A, x: A.jacobian(lambda x: x * 2, x.long()),
    "to integers": lambda T, A, x: A.jacobian(lambda x: x.long(), x),
    "a number": lambda T, A, x: A.jacobian(lambda x: x, 3.0),
    "to a number": lambda T, A, x: A.jacobian(lambda x: 3.0, x),
    "to a dict": lambda T, A, x: A.jacobian(lambda x: {"a": x}, x),
    "vectorized, constant": lambda T, A, x: A.jacobian(lambda y: x * x, x, vectorize=True),
    "vectorized, dtypes": lambda T, A, x: A.jacobian(lambda a, b: (a * 2, b * 3), (x, x.float()), vectorize=True),
    "vectorized, branch": lambda T, A, x: A.jacobian(lambda y: y * y if y.sum() > 0 else y, x, vectorize=True),
    "forward, branch": lambda T, A, x: A.jacobian(
        lambda y: y * y if y.sum() > 0 else y, x, vectorize=True, strategy="forward-mode"
    ),
    "forward, graph": lambda T, A, x: A.jacobian(
        lambda y: y * y, x, vectorize=True, strategy="forward-mode", create_graph=True
    ),
    "written": lambda T, A, x: A.jacobian(lambda x: x.mul_(2), x),
    "a written copy": lambda T, A, x: A.jacobian(lambda x: x.clone().mul_(x), x, vectorize=True),
    "hessian to one element": lambda T, A, x: A.hessian(lambda x: (x**3).sum(0, keepdim=True), x),
    "hessian to a vector": lambda T, A, x: A.hessian(lambda x: x**3, x),
    "hessian to a tuple": lambda T, A, x: A.hessian(lambda x: ((x**2).sum(),), x),
    "hvp to a tuple": lambda T, A, x: A.hvp(lambda x: ((x**2).sum(),), x, x),
    "hessian, strict, linear": lambda T, A, x: A.hessian(lambda x: x.sum(), x, strict=True),
    "hessian, strict, partly": lambda T, A, x: A.hessian(lambda x, y: (x**2).sum() + y.sum(), (x, x), strict=True),
    "vjp without v": lambda T, A, x: A.vjp(lambda x: x * x, x),
    "vjp, wrong v": lambda T, A, x: A.vjp(lambda x: x * x, x, x[:2]),
    "vjp, many v": lambda T, A, x: A.vjp(lambda x: x * x, x, (x, x)),
    "jvp without v": lambda T, A, x: A.jvp(lambda x: x * x, x),
    "jvp, strict, constant": lambda T, A, x: A.jvp(lambda y: x * x, x, x, strict=True),
    "jvp, strict, linear": lambda T, A, x: A.jvp(lambda y: y * 2, x, x, strict=True, create_graph=True),
    "vhp, strict, linear": lambda T, A, x: A.vhp(lambda x: x.sum(), x, x, strict=True),
    "hvp, strict, linear": lambda T, A, x: A.hvp(lambda x: x.sum(), x, x, strict=True),
    "hvp of a vector": lambda T, A, x: A.hvp(lambda x: x * 2, x, x),
    "hvp, wrong v": lambda T, A, x: A.hvp(lambda x: (x**3).sum(), x, x[:1]),
    "under no_grad": lambda T, A, x: T.no_grad()(lambda: A.jacobian(lambda x: x * x, x))(),
    "no_grad inside": lambda T, A, x: A.jacobian(lambda x: T.no_grad()(lambda: x * x)(), x),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional(name: str) -> None:
    compared(lambda T: FUNCTIONAL[name](T, T.autograd.functional, point(T, 3)))


def test_key_words() -> None:
    def strict(which: str, T: Any) -> Any:
        return FUNCTIONAL[f"{which}, strict, linear"](T, T.autograd.functional, point(T, 3))

    for which in ("hvp", "vhp", "hessian"):
        compared(partial(strict, which), ("While computing the hessian", "independent of the input", "strict mode"))
    compared(
        lambda T: T.autograd.functional.hessian(lambda x: ((x**2).sum(),), point(T, 3)),
        ("should return a single Tensor",),
    )


# ---------------------------------------------------------------------------------------------------- towers


def steps(rng: Any, depth: int = 0) -> list[tuple[Any, ...]]:
    """A random program: kinds of steps with their numbers, of which some are derivatives of programs again."""
    made = []
    for _ in range(int(rng.integers(2, 5))):
        kind = int(rng.integers(0, 8 if depth < 2 else 6))
        inner = steps(rng, depth + 1) if kind >= 6 else None
        how = str(rng.choice(["grad", "jvp", "vjp", "jacrev"]))
        made.append((kind, float(rng.uniform(0.3, 0.9)), int(rng.integers(0, 3)), inner, how))
    return made


def built(T: Any, program: list[tuple[Any, ...]], captured: Any) -> Any:
    """The program as a function: it writes to copies of what it captured, which is the outer program's value."""

    def f(x: Any) -> Any:
        y = x * 0.5
        for kind, c, i, inner, how in program:
            if kind == 0:
                y = T.tanh(y) * c
            elif kind == 1:
                a = captured.clone()
                a[i] = y[(i + 1) % 3]
                y = a * y
            elif kind == 2:
                a = captured * c
                a.mul_(y)
                y = a + x
            elif kind == 3:
                a = captured.clone()
                a[i:].add_(y[i:])
                y = a.sin()
            elif kind == 4:
                a = T.zeros(3, dtype=T.float64)
                a[i] = y[i]
                b = captured + 1
                b += a
                y = b * c
            elif kind == 5:
                a = captured.clone()
                a.index_put_((T.tensor([i]),), y[:1])
                a[T.tensor([0, 2])] *= c
                y = a + y
            else:
                y = derived(T, built(T, inner, y), how, x, y)
        return y

    return f


def derived(T: Any, g: Any, how: str, x: Any, y: Any) -> Any:
    def number(z: Any) -> Any:
        return (g(z) * y).sum()

    if how == "grad":
        return T.func.grad(number)(x)
    if how == "jvp":
        return y * T.func.jvp(number, (x,), (y,))[1]
    if how == "vjp":
        return T.func.vjp(g, x)[1](y)[0]
    return T.func.jacrev(g)(x).sum(0)


@pytest.mark.parametrize("seed", range(150))
def test_towers_that_write(seed: int) -> None:
    """Derivatives in derivatives that capture each other's values and write to copies of them."""
    import numpy as np

    def call(T: Any) -> Any:
        rng = np.random.default_rng(seed)
        captured = point(T, 3, seed=5)
        f = built(T, steps(rng), captured)

        def number(x: Any) -> Any:
            return f(x).square().sum()

        kind, x = str(rng.choice(["grad", "jacfwd", "jacrev", "hessian", "vmap"])), point(T, 3)
        if kind == "vmap":
            found = T.func.vmap(T.func.grad(number))(point(T, 2, 3))
        elif kind in ("grad", "hessian"):
            found = getattr(T.func, kind)(number)(x)
        else:
            found = getattr(T.func, kind)(f)(x)
        return found, captured

    compared(call)


def test_a_tangent_of_an_outer_derivative_is_none_of_the_inner() -> None:
    def f(T: Any, x: Any) -> Any:
        y = x * 0.5
        return y * T.func.jvp(lambda z: (T.tanh(z) * y).sum(), (x,), (y,))[1]

    compared(lambda T: (T.func.jacfwd(partial(f, T))(point(T, 3)), T.func.jacrev(partial(f, T))(point(T, 3))))

    # What does not depend on the inner argument has no tangent there, and keeps the outer one.
    def constant(T: Any, x: Any) -> Any:
        return T.func.jvp(lambda z: (x.sin(), z), (x * 2,), (x,))

    compared(lambda T: T.func.jvp(partial(constant, T), (point(T, 3),), (point(T, 3, seed=1),)))
