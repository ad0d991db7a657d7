"""What a function that is being differentiated may write, and what it may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad.func import grad, hessian, jacrev, jvp, linearize, vjp, vmap

TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (x * 2,)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
    "vmap of grad": lambda f, x: vmap(grad(f))(x.outer(x)),
}


def write(kept: Any, value: Any) -> None:
    kept[0] = value


@pytest.mark.parametrize("value", [1.0, rgrad.tensor(1.0), "x"], ids=["number", "tensor", "x"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_captured_tensors_are_not_written(name: str, value: Any) -> None:
    kept = rgrad.ones(3)
    view = kept.view(3)

    for target in (kept, view, kept.detach()):

        def f(x: Any, target: Any = target) -> Any:
            write(target, x[0] if isinstance(value, str) else value)
            return (x * x).sum()

        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            TRANSFORMS[name](f, rgrad.ones(3) * 3)
    assert kept.tolist() == [1.0, 1.0, 1.0]
    # Nothing is left behind.
    kept.mul_(2)
    assert kept.tolist() == [2.0, 2.0, 2.0]


def test_what_an_outer_function_made_is_captured_by_the_inner() -> None:
    def outer(x: Any) -> Any:
        made = x.clone()
        plain = rgrad.ones(3).clone()
        for target in (made, plain):
            with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
                grad(lambda y: (target.add_(1), y.sum())[1])(x)  # noqa: B023
        made.mul_(x)
        plain.mul_(x)
        return (made + plain).sum()

    assert grad(outer)(rgrad.tensor([1.0, 2.0, 3.0])).tolist() == [3.0, 5.0, 7.0]


def test_copies_made_inside_are_written() -> None:
    kept = rgrad.tensor([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        copy = kept.clone()
        copy[0] = x[1] * x[2]
        copy[1:].mul_(x[1:])
        total = kept * 0
        total += copy
        return (total * x).sum()

    x = rgrad.tensor([2.0, 3.0, 5.0])
    # x0 x1 x2 + 2 x1² + 3 x2²
    assert grad(f)(x).tolist() == [15.0, 22.0, 36.0]
    assert hessian(f)(x).tolist() == [[0.0, 5.0, 3.0], [5.0, 4.0, 2.0], [3.0, 2.0, 6.0]]
    assert jvp(f, (x,), (rgrad.tensor([1.0, 0.0, 0.0]),))[1].item() == 15.0
    assert kept.tolist() == [1.0, 2.0, 3.0]


def test_a_view_from_before_the_write_stays_true() -> None:
    """It would not follow: the write is refused rather than its gradient lost."""
    kept = rgrad.ones(3)

    def f(x: Any) -> Any:
        copy = kept.clone()
        view = copy[1:]
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            copy.mul_(x)
        return (view * x[1:]).sum()

    assert grad(f)(rgrad.tensor([2.0, 3.0, 5.0])).tolist() == [0.0, 1.0, 1.0]


def test_a_history_of_the_captured_goes_on_below() -> None:
    w = rgrad.tensor([1.0, 2.0], requires_grad=True)

    def f(x: Any) -> Any:
        copy = w * 3
        copy[0] = x[0]
        return (copy * x).sum()

    (found,) = rgrad.autograd.grad(grad(f)(rgrad.tensor([5.0, 7.0])).sum(), w)
    assert found.tolist() == [0.0, 3.0]


@pytest.mark.parametrize("name", [*TRANSFORMS, "vmap"])
def test_histories_are_the_transforms_business(name: str) -> None:
    transform = TRANSFORMS.get(name, lambda f, x: vmap(f)(x.outer(x)))
    leaf = rgrad.ones(3, requires_grad=True)

    def called(what: Callable[[Any], Any], match: str) -> None:
        with pytest.raises(RuntimeError, match=match):
            transform(lambda x: (what(x), (x * x).sum())[1], rgrad.ones(3))

    called(lambda x: x.requires_grad_(), "outside of a function")
    called(lambda x: (x * 2).requires_grad_(False), "outside of a function")
    called(lambda x: leaf.sum().backward(), r"backward\(\) called inside")
    called(lambda x: rgrad.autograd.backward(leaf.sum()), r"backward\(\) called inside")
    called(lambda x: rgrad.autograd.functional.jacobian(lambda y: y, x), r"autograd.functional")
    called(lambda x: setattr(x, "data", leaf), "mutating directly with `.data`")
    assert leaf.grad is None


def test_linearize_with_a_function_that_has_no_backward() -> None:
    class Twice(rgrad.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * t

    x = rgrad.tensor([1.0, 2.0])
    out, push = linearize(Twice.apply, x)
    assert out.tolist() == [1.0, 4.0]
    assert push(rgrad.tensor([1.0, 10.0])).tolist() == [2.0, 40.0]


def test_linearize_calls_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return x.sin(), (x * 3).long()

    x = rgrad.tensor([0.5, 1.5])
    _, push = linearize(f, x)
    for scale in (1.0, 2.0):
        moved, still = push(rgrad.full((2,), scale))
        assert rgrad.allclose(moved, x.cos() * scale)
        assert still.tolist() == [0, 0]
    assert len(calls) == 1


CONSTANT: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda x, w: (-x * w).sum(),
    "add": lambda x, w: ((x + 1) * w).sum(),
    "rsub": lambda x, w: ((1 - x) * w).sum(),
    "mul": lambda x, w: (rgrad.arange(3.0, dtype=x.dtype) * x * w).sum(),
    "div": lambda x, w: (x / 3 * w).sum(),
    "product": lambda x, w: ((2 - x) @ w.outer(w)).sum(),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_gradients_of_a_transform_keep_the_history_of_what_it_captures(name: str) -> None:
    """Also where the nodes of the level read nothing that is of the level, and could take the fast path."""
    f = CONSTANT[name]
    x = rgrad.tensor([1.0, 2.0, 3.0], dtype=rgrad.float64)
    w = rgrad.tensor([0.5, -1.0, 2.0], dtype=rgrad.float64, requires_grad=True)

    def gradient(w: Any) -> Any:
        return grad(f)(x, w)

    assert gradient(w).requires_grad
    rgrad.autograd.gradcheck(gradient, (w,), check_batched_grad=True)
    jacobian = rgrad.autograd.functional.jacobian(gradient, w)
    rgrad.testing.assert_close(jacobian, jacrev(lambda v: gradient(v))(w.detach()))


def test_gradients_of_a_transform_require_grad_as_a_captured_view_does() -> None:
    w = rgrad.ones(3, requires_grad=True)
    with rgrad.no_grad():
        view = w.view(-1)
    assert view.requires_grad
    assert grad(lambda x: (x * view).sum())(rgrad.ones(3)).requires_grad
