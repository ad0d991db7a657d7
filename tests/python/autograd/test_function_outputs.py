"""What custom Functions give back: views, written inputs, plain values; and which writes to views are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import Tensor
from rgrad.autograd import forward_ad


def made(forward: Any, backward: Any = lambda ctx, *g: g[0], **more: Any) -> Any:
    methods = {"forward": forward, "backward": backward, **more}
    return type("MyFn", (rgrad.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})


def inner(*values: float) -> Tensor:
    return rgrad.tensor(values or (1.0, 2.0, 3.0, 4.0), requires_grad=True) * 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda a: a.unbind(0)[1],
            r"^Output 1 of Unbind is a view and is being modified inplace\. This view is the output",
        ),
        (
            lambda a: a.split(2)[0],
            r"^Output 0 of Split is a view and is being modified inplace\. This view is the output",
        ),
        (
            lambda a: made(lambda ctx, x: x[:2]).apply(a),
            r"^Output 0 of MyFn is a view .* created inside a custom Function",
        ),
        (lambda a: made(lambda ctx, x: (x[:2], x * 1)).apply(a)[0], r"^Output 0 of MyFn is a view .* returns multiple"),
    ],
)
def test_refused_write_names_the_view_and_then_the_operation(call: Callable[[Tensor], Tensor], says: str) -> None:
    with pytest.raises(RuntimeError, match=says) as caught:
        call(inner()).mul_(2)
    assert str(caught.value).startswith("Output")
    assert "(in mul_)" in str(caught.value)


def test_marks_of_views_follow_the_mode() -> None:
    a = inner()
    with rgrad.no_grad():
        part = a.unbind(0)[0]
    with pytest.raises(
        RuntimeError, match=r"^A view was created in no_grad mode and is being modified inplace with grad"
    ):
        part.mul_(2)
    with pytest.raises(RuntimeError, match=r"^Output 0 of View is a view of a view which was created in no_grad mode"):
        part.view_as(part).mul_(2)
    plain = rgrad.ones(4).split(2)[0]
    with pytest.raises(RuntimeError, match=r"created in no_grad mode .* returns multiple views"):
        plain.mul_(rgrad.tensor(2.0, requires_grad=True))
    plain.mul_(2)
    assert plain.tolist() == [2, 2]


def test_written_view_of_a_temporary_has_the_node_of_the_function() -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        part = x.clone()[:2]
        part.mul_(2)
        return part

    x = rgrad.ones(4, requires_grad=True)
    y = made(forward, lambda ctx, g: rgrad.cat([g, g * 3])).apply(x)
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "MyFnBackward"
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("writer", ["base", "view", "sibling", "quiet"])
def test_retained_gradient_of_a_view_survives_writes(writer: str) -> None:
    a = inner()
    v, w = a[:2], a[1:]
    v.retain_grad()
    if writer == "quiet":
        with rgrad.no_grad():
            a.mul_(3)
    else:
        {"base": a, "view": v, "sibling": w}[writer].mul_(3)
    (v * v).sum().backward()
    assert v.retains_grad
    assert v.grad is not None
    assert v.grad.tolist() == (v * 2).tolist()


def test_input_comes_back_as_a_view_that_python_makes() -> None:
    calls: list[str] = []

    class Seen(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    f = made(lambda ctx, x: x)
    x = rgrad.ones(2, requires_grad=True).as_subclass(Seen)
    calls.clear()
    assert type(f.apply(x)) is Seen
    assert calls == ["view_as"]
    plain = rgrad.ones(2)
    assert f.apply(plain)._base is plain
    a = inner()
    with rgrad.no_grad():
        alias = f.apply(a)
    assert not alias.requires_grad
    assert not alias._is_view()


def test_written_inputs() -> None:
    def two(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.mark_dirty(x)
        return x.mul_(2), x * 3

    def own(ctx: Any, x: Tensor) -> Tensor:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        made(two).apply(inner()[:2])
    with pytest.warns(UserWarning, match=r"mark_dirty\(\) received a tensor that was not an input"):
        made(own).apply(inner())
    leaf = rgrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        made(two).apply(leaf)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument 1 is of type int"):
        made(lambda ctx, x: (ctx.mark_dirty(x, 3), x)[1]).apply(inner())


def test_setup_context_sees_the_defaults() -> None:
    seen: list[Any] = []
    f = made(
        lambda x, n=3, *, scale=1: x * n * scale,
        lambda ctx, g: (g * 3, None),
        setup_context=lambda ctx, inputs, output: seen.append((inputs[1:], ctx.needs_input_grad)),
    )
    x = rgrad.ones(2, requires_grad=True)
    f.apply(x).sum().backward()
    f.apply(x, n=4)
    assert seen == [((3,), (True, False)), ((4,), (True, False))]
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'scale'.*keyword-only"):
        f.apply(x, scale=2)


@pytest.mark.parametrize("value", [3, "text", [1, 2], {"a": 1}, None, (1, "two"), ()])
def test_other_values_are_passed_on(value: Any) -> None:
    assert made(lambda ctx, x: value).apply(inner()) == value


def tangent_of(forward: Any, jvp: Any, *, dual_first: bool = True) -> Tensor | None:
    f = made(forward, jvp=jvp)
    with forward_ad.dual_level():
        dual, plain = forward_ad.make_dual(rgrad.ones(3), rgrad.ones(3)), rgrad.ones(3)
        got = f.apply(dual, plain) if dual_first else f.apply(plain, dual)
        return forward_ad.unpack_dual(got[0] if isinstance(got, tuple) else got).tangent


def doubled(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
    ctx.mark_dirty(x)
    return x.mul_(2)


@pytest.mark.parametrize(
    ("forward", "jvp", "says"),
    [
        (lambda ctx, x, y: (x * 2, x.long()), lambda ctx, g, h: (g, g), "a gradient at position 1"),
        (doubled, lambda ctx, g, h: g * 2, "not modifying the forward mode gradients inplace"),
        (doubled, lambda ctx, g, h: g.mul_(2).view_as(g), "not returning the forward mode gradients as-is"),
        (lambda ctx, x, y: x[:2], lambda ctx, g, h: g[:2] * 1, "but the jvp is not returning a view"),
        (lambda ctx, x, y: x[:2], lambda ctx, g, h: (g * 1)[:2], "not returning a view of the given grad input"),
    ],
)
def test_refused_tangents(forward: Any, jvp: Any, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        tangent_of(forward, jvp)


def test_accepted_tangents() -> None:
    assert tangent_of(doubled, lambda ctx, g, h: g.mul_(2)).tolist() == [2, 2, 2]  # type: ignore[union-attr]
    free = tangent_of(doubled, lambda ctx, g, h: h * 5, dual_first=False)
    assert free is not None
    assert free.tolist() == [5, 5, 5]
    seen: list[Any] = []
    f = made(lambda ctx, x, i: x * 1, jvp=lambda ctx, g, i: (seen.append(i), g)[1])
    with forward_ad.dual_level():
        f.apply(forward_ad.make_dual(rgrad.ones(2), rgrad.ones(2)), rgrad.arange(2))
    assert seen == [None]


def test_functions_with_context_run_in_batches_of_gradients() -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    inside = made(lambda ctx, g: g * 2, lambda ctx, g: g * 2)
    f = made(
        forward,
        lambda ctx, g: inside.apply(ctx.saved_tensors[0] * g),
        jvp=lambda ctx, t: ctx.saved_tensors[0] * t * 2,
    )
    x = rgrad.tensor([1.0, 2.0, 3.0], dtype=rgrad.float64, requires_grad=True)
    (rows,) = rgrad.autograd.grad(f.apply(x), x, rgrad.eye(3, dtype=rgrad.float64), is_grads_batched=True)
    assert rows.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    assert rgrad.autograd.gradcheck(
        f.apply, (x,), check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True
    )
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        rgrad.func.vmap(f.apply)(x.detach())
    noisy = made(lambda ctx, x: x * 1, lambda ctx, g: g * rgrad.rand(3).double())
    with pytest.raises(RuntimeError, match="vmap: We do not yet support calling random operations inside of vmap"):
        rgrad.autograd.grad(noisy.apply(x), x, rgrad.eye(3, dtype=rgrad.float64), is_grads_batched=True)
