"""What `jvp` of a custom Function sees, and derivatives of two orders through one, beside torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import rgrad
from compare import same
from func_kit import compared, point, torch

pytestmark = pytest.mark.oracle

Transform = Callable[[Any, Callable[..., Any]], Callable[..., Any]]


def cube(T: Any, seen: list[Any], generate: bool = True) -> Any:
    forward_ad: Any = import_module(f"{T.__name__}.autograd.forward_ad")

    def forward(x: Any) -> Any:
        return x * x * x

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs, output)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    def jvp(ctx: Any, t: Any) -> Any:
        x, y = ctx.saved_tensors
        made = 3 * x * x * t
        found = (forward_ad.unpack_dual(s, level=0).tangent is None for s in (x, y, t, made, x * y, x.view(-1)))
        seen.append((*found, forward_ad._is_fwd_grad_enabled()))
        return made

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward, "jvp": jvp}
    body = {k: staticmethod(v) for k, v in methods.items()}
    return type("Cube", (T.autograd.Function,), {**body, "generate_vmap_rule": generate}).apply


def pushed(T: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: T.func.jvp(f, (x,), (T.ones_like(x),))[1]


def pulled(T: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        out, back = T.func.vjp(f, x)
        return back(T.ones_like(out))[0]

    return run


def summed(T: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    return T.func.grad(lambda x: f(x).sum())


WAYS: dict[str, Transform] = {
    "jvp": pushed,
    "vjp": pulled,
    "grad": summed,
    "jacfwd": lambda T, f: T.func.jacfwd(f),
    "jacrev": lambda T, f: T.func.jacrev(f),
    "vmap": lambda T, f: T.func.vmap(f),
}
FORWARD = {"jvp", "jacfwd"}


@pytest.mark.parametrize("inner", WAYS)
@pytest.mark.parametrize("outer", WAYS)
def test_derivatives_of_two_orders(outer: str, inner: str) -> None:
    def run(T: Any) -> Any:
        return WAYS[outer](T, WAYS[inner](T, cube(T, [])))(point(T, 3))

    if {outer, inner} <= FORWARD:
        # torch switches the tangents of the outer level off, too: its second derivative is 0.
        assert not run(torch).any()
        same(run(rgrad), run(torch) + 6 * _diagonal(point(torch, 3), run(torch).dim()), factor=1000, strides=False)
        return
    if inner == "vmap" and outer != "vmap":
        # torch fails inside of the rule that it generates.
        x = point(torch, 3)
        found = run(rgrad)
        same(found, _diagonal(3 * x * x, found.dim()), factor=1000, strides=False)
        return
    compared(run)


def _diagonal(x: Any, dims: int) -> Any:
    for _ in range(1, dims):
        x = torch.diag_embed(x)
    return x


@pytest.mark.parametrize("generate", [True, False])
@pytest.mark.parametrize("way", ["jvp", "jvp of grad", "vjp of jvp", "dual level", "dual level of grad"])
def test_what_jvp_sees(way: str, generate: bool) -> None:
    def run(T: Any) -> list[Any]:
        forward_ad: Any = import_module(f"{T.__name__}.autograd.forward_ad")
        seen: list[Any] = []
        f, x = cube(T, seen, generate), point(T, 3)
        if way == "jvp":
            pushed(T, f)(x)
        elif way == "jvp of grad":
            pushed(T, summed(T, f))(x)
        elif way == "vjp of jvp":
            pulled(T, pushed(T, f))(x)
        else:
            with forward_ad.dual_level():
                (summed(T, f) if "grad" in way else f)(forward_ad.make_dual(x, T.ones_like(x)))
        return seen

    assert run(rgrad) == run(torch)
    assert run(torch)


def test_switching_tangents_off() -> None:
    def run(T: Any) -> Any:
        forward_ad: Any = import_module(f"{T.__name__}.autograd.forward_ad")
        x = point(T, 3)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, T.ones_like(x))
            with forward_ad._set_fwd_grad_enabled(False):
                found = [dual, dual[1:], dual * 2, dual.clone(), dual.detach()]
                inside = [forward_ad.unpack_dual(t).tangent is None for t in found]
                texts = [repr(t).count("tangent") for t in found]
                dual.mul_(2)
            outside = [forward_ad.unpack_dual(t).tangent is None for t in found]
            tangent = forward_ad.unpack_dual(dual).tangent
        return inside, texts, outside, tangent.tolist()

    assert run(rgrad) == run(torch)
