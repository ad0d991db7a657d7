"""Custom Functions in batches of gradients and of tangents run as without transforms: rgrad beside torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import same  # noqa: E402 - torch must be there first
from function_kit import leaf, made, trial  # noqa: E402

pytestmark = pytest.mark.oracle


def square(T: Any, separate: bool = False) -> Any:
    """A square whose backward calls another Function."""
    scaled = made(
        T,
        lambda ctx, g, n: (setattr(ctx, "n", n), g * n)[1],
        lambda ctx, g: (g * ctx.n, None),
        jvp=lambda ctx, t, _: t * ctx.n,
    )

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        return scaled.apply(ctx.saved_tensors[0] * g, 2)

    def jvp(ctx: Any, t: Any) -> Any:
        return ctx.saved_tensors[0] * t * 2

    if not separate:
        return made(T, forward, backward, jvp=jvp)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    return made(T, lambda x: x * x, backward, jvp=jvp, setup_context=setup)


@pytest.mark.parametrize("separate", [False, True])
def test_batched_gradients(separate: bool) -> None:
    def program(T: Any, create_graph: bool) -> Any:
        x = leaf(T)
        y = square(T, separate).apply(x) * x
        vectors = T.arange(12, dtype=T.float64).view(3, 4)
        (g,) = T.autograd.grad(y, x, vectors, is_grads_batched=True, create_graph=create_graph)
        return x, vectors, g

    for create_graph in (False, True):
        same(program(rgrad, create_graph), program(torch, create_graph), history=False, factor=10)
    # torch gives a third of this: the gradient of the whole batch reaches one row.
    x, vectors, g = program(rgrad, True)
    (found,) = rgrad.autograd.grad((g * g).sum(), x)
    assert found.tolist() == (36 * x.detach() ** 3 * vectors.square().sum(0)).tolist()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("separate", [False, True])
def test_gradient_checks(separate: bool) -> None:
    def program(T: Any) -> Any:
        f, x = square(T, separate), leaf(T)
        more = {"check_forward_ad": True, "check_batched_forward_grad": True}
        return [
            T.autograd.gradcheck(f.apply, (x,), check_batched_grad=True),
            T.autograd.gradcheck(f.apply, (x,), **more),
            T.autograd.gradcheck(f.apply, (x,), fast_mode=True, **more),
            T.autograd.gradgradcheck(f.apply, (x,), check_batched_grad=True),
            T.autograd.functional.jacobian(f.apply, x.detach(), vectorize=True),
        ]

    same(program(rgrad), program(torch), history=False, factor=10)


def test_only_transforms_refuse_forward_with_context() -> None:
    def program(T: Any) -> Any:
        f, x = square(T), leaf(T).detach()
        return [
            str(trial(lambda: T.func.vmap(f.apply)(x)))[:190],
            str(trial(lambda: T.func.grad(lambda x: f.apply(x).sum())(x)))[:190],
        ]

    same(program(rgrad), program(torch))


@pytest.mark.parametrize("draw", ["rand", "randn", "rand_like", "dropout", "bernoulli"])
def test_random_operations_in_batched_gradients(draw: str) -> None:
    draws: dict[str, Any] = {
        "rand": lambda T, g: T.rand(4),
        "randn": lambda T, g: T.randn(4),
        "rand_like": lambda T, g: T.rand_like(g),
        "dropout": lambda T, g: T.nn.functional.dropout(g),
        "bernoulli": lambda T, g: T.bernoulli(g),
    }

    def program(T: Any) -> Any:
        x = leaf(T)
        y = made(T, lambda ctx, x: x * 1, lambda ctx, g: g * draws[draw](T, g)).apply(x)
        return trial(lambda: T.autograd.grad(y, x, T.eye(4, dtype=T.float64), is_grads_batched=True))

    same(program(rgrad), program(torch))
