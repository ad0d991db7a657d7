"""Custom Functions under transforms: their rules, the generated ones, and what lacks."""

from __future__ import annotations

from typing import Any

import pytest

import rgrad
from devices import real
from points import close, point
from rgrad.autograd import Function
from rgrad.autograd.function import once_differentiable
from rgrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap

pytestmark = pytest.mark.usefixtures("device")


class Square(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * t


def test_functions_under_every_nesting() -> None:
    x = point(0.5, -2.0, 3.0)
    f = lambda x: Square.apply(x).sum()  # noqa: E731
    close(grad(f)(x), (2 * x).tolist())
    close(grad(lambda x: grad(f)(x).sum())(x), [2.0, 2.0, 2.0])
    close(jvp(Square.apply, (x,), (x,))[1], (2 * x * x).tolist())
    close(vmap(Square.apply)(x), (x * x).tolist())
    close(vmap(grad(Square.apply))(x), (2 * x).tolist())
    close(vmap(vmap(Square.apply))(x.view(3, 1)), (x * x).view(3, 1).tolist())
    close(grad(lambda x: vmap(Square.apply)(x).sum())(x), (2 * x).tolist())
    for way in (jacrev, jacfwd):
        close(way(Square.apply)(x), rgrad.diag(2 * x))
    for way in (hessian, lambda f: jacrev(jacfwd(f)), lambda f: jacfwd(jacfwd(f)), lambda f: jacrev(jacrev(f))):
        close(way(f)(x), 2 * rgrad.eye(3, dtype=real()))
    leaf = x.clone().requires_grad_()
    vmap(Square.apply)(leaf).sum().backward()
    close(leaf.grad, (2 * x).tolist())


class Scale(Function):
    """With a rule of its own for batches, an argument that is no tensor, and two outputs."""

    @staticmethod
    def forward(x: Any, y: Any, n: int) -> Any:
        return x * y * n, x + n

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.n = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, ga: Any, gb: Any) -> Any:
        x, y = ctx.saved_tensors
        return ga * y * ctx.n + gb, ga * x * ctx.n, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any, n: int) -> Any:
        assert (info.batch_size, info.randomness) == (2, "error")
        dx, dy, dn = in_dims
        assert dn is None
        if dx is None:
            x = x.expand(info.batch_size, *x.shape)
        if dy is None:
            y = y.expand(info.batch_size, *y.shape)
        return Scale.apply(x, y, n), 0


@pytest.mark.parametrize("dims", [(0, 0, None), (0, None, None), (None, 0, None), (1, 0, None)])
def test_functions_with_rules_of_their_own(dims: Any) -> None:
    rgrad.manual_seed(1)
    x = rgrad.randn(*((2, 3) if dims[0] == 0 else (3, 2) if dims[0] == 1 else (3,)), dtype=real())
    y = rgrad.randn(*((2, 3) if dims[1] == 0 else (3,)), dtype=real())

    def plain(x: Any, y: Any, n: int) -> Any:
        return x * y * n, x + n

    for have, need in zip(vmap(Scale.apply, dims)(x, y, 3), vmap(plain, dims)(x, y, 3), strict=True):
        close(have, need)

    def total(f: Any) -> Any:
        return lambda x, y: sum(out.sin().sum() for out in vmap(f, dims)(x, y, 3))

    for have, need in zip(grad(total(Scale.apply), (0, 1))(x, y), grad(total(plain), (0, 1))(x, y), strict=True):
        close(have, need)

    def each(f: Any) -> Any:
        return vmap(grad(lambda x, y: sum(out.sin().sum() for out in f(x, y, 3)), (0, 1)), dims[:2])

    for have, need in zip(each(Scale.apply)(x, y), each(plain)(x, y), strict=True):
        close(have, need)


def test_functions_that_lack_something() -> None:
    class WithContext(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    class Bare(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    class Both(Bare):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x * 2, 0

    class Wrong(Bare):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return x * 2

    x = point(1.0, 2.0)
    for way in (vmap(WithContext.apply), lambda x: grad(lambda x: WithContext.apply(x).sum())(x)):
        with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
            way(x)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Bare.apply)(x)
    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(x)
    with pytest.raises(RuntimeError, match="to have two returns"):
        vmap(Wrong.apply)(x)
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        jvp(Bare.apply, (x,), (x,))
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        grad(lambda x: Bare.apply(x).sum())(x)
    assert rgrad._C._top_level() == 0
    assert rgrad.is_grad_enabled()


def test_once_differentiable_functions() -> None:
    class Once(Square):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = point(0.5, -2.0)
    f = lambda x: Once.apply(x).sum()  # noqa: E731
    close(grad(f)(x), (2 * x).tolist())
    close(vmap(grad(Once.apply))(x), (2 * x).tolist())
    close(jacrev(Once.apply)(x), rgrad.diag(2 * x))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(lambda x: grad(lambda x: (Once.apply(x) * x).sum())(x).sum())(x)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        jvp(grad(f), (x,), (x,))


def test_functions_that_write_and_that_mark() -> None:
    class Doubled(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            x.mul_(2)
            return x, (x > 1).to(x.dtype)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(inputs[0])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return g * 2

    x = point(1.0, 2.0)

    def f(x: Any) -> Any:
        y = x * 1
        out, over = Doubled.apply(y)
        assert out is y
        assert not over.requires_grad
        return (y * y).sum()

    close(grad(f)(x), (8 * x).tolist())
    close(vmap(grad(lambda x: Doubled.apply(x * 3)[0] ** 2))(x), (72 * x).tolist())
