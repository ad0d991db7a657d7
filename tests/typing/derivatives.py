"""Gradients, their products, and transforms of functions."""

from typing import Any, assert_type

import rgrad
from rgrad import Tensor
from rgrad.autograd.function import FunctionCtx
from rgrad.autograd.graph import get_gradient_edge

x = rgrad.tensor([1.0, 2.0], requires_grad=True)
w = rgrad.tensor([3.0, 4.0], requires_grad=True)
unrelated = rgrad.ones(2, requires_grad=True)
flag = bool(x.sum() > 0)


def loss() -> Tensor:
    return (x * w).sum()


# Unused inputs are an error, unless None or zeros are asked for.
assert_type(rgrad.autograd.grad(loss(), x), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad(loss(), [x, w]), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad([loss(), loss()], (x, w), create_graph=True), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad(loss(), [x, unrelated], allow_unused=True), tuple[Tensor | None, ...])
assert_type(rgrad.autograd.grad(loss(), [x, unrelated], None, None, False, True, True), tuple[Tensor | None, ...])
assert_type(rgrad.autograd.grad(loss(), [x, w], allow_unused=flag), tuple[Tensor | None, ...])
assert_type(rgrad.autograd.grad(loss(), [x, unrelated], materialize_grads=True), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad(loss(), [x, unrelated], allow_unused=True, materialize_grads=True), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad(loss(), {"x": x, "w": w}), dict[str, Tensor])
assert_type(rgrad.autograd.grad(loss(), {"x": x, "u": unrelated}, allow_unused=True), dict[str, Tensor | None])
assert_type(rgrad.autograd.grad(loss(), {1: x, 2: unrelated}, materialize_grads=True), dict[int, Tensor])
assert_type(rgrad.autograd.grad(x * w, x, rgrad.eye(2), is_grads_batched=True, allow_unused=False), tuple[Tensor, ...])

# Inputs: a tensor, several, named ones, or edges of the graph; what gives parameters will do.
model = rgrad.nn.Linear(2, 2)
out = model(x)
assert isinstance(out, Tensor)
assert_type(rgrad.autograd.grad(model(x).sum(), model.parameters()), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad(model(x).sum(), dict(model.named_parameters())), dict[str, Tensor])
middle = x * w
edge = get_gradient_edge(middle)
assert middle.grad_fn is not None
pair = (middle.grad_fn, middle.output_nr)
assert_type(rgrad.autograd.grad(middle.sum(), edge), tuple[Tensor, ...])
assert_type(rgrad.autograd.grad((x * x).sum(), [x]), tuple[Tensor, ...])
middle.sum().backward(retain_graph=True, inputs=edge)
middle.sum().backward(retain_graph=True, inputs=[pair, edge, x])
middle.sum().backward(retain_graph=True, inputs=pair)
loss().backward(inputs=x)
loss().backward(inputs=[x, w])
loss().backward(inputs={"x": x, "w": w})
model(x).sum().backward(inputs=model.parameters())
model(x).sum().backward(inputs=list(model.parameters()))
model(x).sum().backward(inputs=dict(model.named_parameters()))
rgrad.autograd.backward(loss(), inputs=x)
rgrad.autograd.backward([loss(), get_gradient_edge(loss())], inputs=[x, get_gradient_edge(w)])
rgrad.autograd.backward(model(x).sum(), inputs=dict(model.named_parameters()), strict=True)


# Derivatives of functions: the structure of what goes in and comes out.
def one(a: Tensor) -> Tensor:
    return a * a


def total(a: Tensor) -> Tensor:
    return (a * a * a).sum()


def total_of_two(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


def two(a: Tensor) -> tuple[Tensor, Tensor]:
    return a * a, a


def two_of_two(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, a


def with_aux(a: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return (a * a).sum(), {"kept": a}


functional = rgrad.autograd.functional
point = rgrad.tensor([1.0, 2.0])
many = (point, point)
assert_type(functional.jacobian(one, point), Tensor)
assert_type(functional.jacobian(total_of_two, many), tuple[Tensor, ...])
assert_type(functional.jacobian(two, point), tuple[Tensor, ...])
assert_type(functional.jacobian(two_of_two, many), tuple[tuple[Tensor, ...], ...])
assert_type(functional.hessian(total, point), Tensor)
assert_type(functional.hessian(total_of_two, many), tuple[tuple[Tensor, ...], ...])
assert_type(functional.vjp(one, point, point), tuple[Tensor, Tensor])
assert_type(functional.vjp(total_of_two, many), tuple[Tensor, tuple[Tensor, ...]])
assert_type(functional.vjp(two, point, many), tuple[tuple[Tensor, ...], Tensor])
assert_type(functional.jvp(one, point, point), tuple[Tensor, Tensor])
assert_type(functional.jvp(two, point, point), tuple[tuple[Tensor, ...], tuple[Tensor, ...]])
assert_type(functional.vhp(total, point, point), tuple[Tensor, Tensor])
assert_type(functional.hvp(total_of_two, many, many), tuple[Tensor, tuple[Tensor, ...]])

func = rgrad.func
assert_type(func.vjp(one, point)[0], Tensor)
assert_type(func.vjp(one, point)[1](point), tuple[Any, ...])
assert_type(func.vjp(two, point)[0], tuple[Tensor, Tensor])
assert_type(func.jvp(one, (point,), (point,)), tuple[Tensor, Tensor])
assert_type(func.linearize(one, point)[0], Tensor)
assert_type(func.linearize(one, point)[1](point), Tensor)
assert_type(func.vmap(one)(point), Tensor)
assert_type(func.vmap(two)(point), tuple[Tensor, Tensor])
assert_type(func.grad_and_value(total)(point)[1], Tensor)
assert_type(rgrad.utils.checkpoint.checkpoint(one, x, use_reentrant=False), Tensor)


assert_type(func.vjp(with_aux, point, has_aux=True)[2], dict[str, Tensor])
assert_type(func.jvp(with_aux, (point,), (point,), has_aux=True)[2], dict[str, Tensor])
assert_type(func.grad(with_aux, has_aux=True)(point)[1], dict[str, Tensor])
assert_type(func.grad_and_value(with_aux, has_aux=True)(point)[1], tuple[Tensor, dict[str, Tensor]])
assert_type(func.jacrev(with_aux, has_aux=True)(point)[1], dict[str, Tensor])
assert_type(func.jacfwd(with_aux, has_aux=True)(point)[1], dict[str, Tensor])


class Cube(rgrad.autograd.Function):
    """Methods of a Function have parameters of their own."""

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return a**3

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (a,) = ctx.saved_tensors
        return 3 * a**2 * grad

    @staticmethod
    def jvp(ctx: FunctionCtx, tangent: Tensor) -> Tensor:
        return tangent

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None], a: Tensor) -> tuple[Tensor, int | None]:
        cubes: Tensor = Cube.apply(a)
        return cubes, in_dims[0]


handle = x.register_hook(lambda g: g * 2)
handle.remove()
x.grad = None
del x.grad
x.grad_dtype = None
del x.grad_dtype
