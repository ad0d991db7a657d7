"""Complex tensors in the autograd API: what is refused, what gets which dtype, hooks, custom Functions, transforms."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import Tensor
from rgrad.autograd import Function, forward_ad, functional, grad
from rgrad.utils.checkpoint import checkpoint


def z(*values: complex, dtype: Any = rgrad.complex128) -> Tensor:
    return rgrad.tensor(list(values) or [1 + 2j, 3 - 1j], dtype=dtype, requires_grad=True)


def r(*values: float) -> Tensor:
    return rgrad.tensor(list(values) or [1.0, 2.0], dtype=rgrad.float64, requires_grad=True)


def same(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found.tolist()), np.asarray(want), rtol=1e-6, atol=1e-9)


V = [1 + 0j, 1j]


def v() -> Tensor:
    return rgrad.tensor(V, dtype=rgrad.complex128)


def test_only_real_numbers_have_an_implicit_gradient() -> None:
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got rgrad.complex64"):
        (rgrad.tensor(1 + 2j, requires_grad=True) * 2).backward()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (z() * 2).backward()
    x = z(1 + 2j)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        grad(x[0] * 2, x)
    same(grad((x[0] * 2).real, x)[0], [2])


def test_a_gradient_is_complex_where_its_output_is() -> None:
    x = z()
    for y, g, got, has in (
        (x * 2, rgrad.ones(2, dtype=rgrad.float64), "float64", "complex128"),
        (x.abs(), v(), "complex128", "float64"),
    ):
        with pytest.raises(
            RuntimeError,
            match=r"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
            rf"dtype: grad_output\[0\] has a dtype of rgrad.{got} and output\[0\] has a dtype of rgrad.{has}",
        ):
            grad(y, x, g, retain_graph=True)
        with pytest.raises(RuntimeError, match="both grad_output and output"):
            y.backward(g)
    (found,) = grad(x * 2, x, v().to(rgrad.complex64))
    assert found.dtype == rgrad.complex128
    same(found, [2, 2j])


def test_gradients_have_the_dtype_of_their_leaf() -> None:
    x, a = z(), r()
    found = grad(a * x, (a, x), rgrad.tensor([1j, 2], dtype=rgrad.complex128))
    assert [g.dtype for g in found] == [rgrad.float64, rgrad.complex128]
    same(found[0], [2, 6])
    same(found[1], [1j, 4])
    single = z(1 + 2j, 3, dtype=rgrad.complex64)
    (single * z()).abs().backward(r(1, 1).detach())
    assert single.grad is not None
    assert single.grad.dtype == rgrad.complex64


def test_gradients_accumulate() -> None:
    x = z(1 + 2j, 3)
    one = rgrad.ones(2, dtype=rgrad.float64)
    (x * x.conj()).real.mul(rgrad.tensor([1.0, 2.0], dtype=rgrad.float64)).backward(one)
    x.abs().backward(one)
    root = math.sqrt(5)
    same(x.grad, [2 + 4j + (1 + 2j) / root, 13])
    for wrong, of in ((one, x), (v(), r())):
        with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
            of.grad = wrong


class Turned(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * (1 + 1j)


class RealPart(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g.real


def test_a_custom_gradient_of_a_real_input_is_real() -> None:
    a = r()
    with pytest.raises(RuntimeError, match=r"TurnedBackward.*isFloatingType\(grad.scalar_type\(\)\)"):
        grad(Turned.apply(a), a, r(1, 1).detach())
    x = z()
    (found,) = grad(RealPart.apply(x), x, v())
    assert found.dtype == rgrad.complex128
    same(found, [1, 0])


class Both(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x)
        return x.abs(), x.conj_physical()

    @staticmethod
    def backward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        assert not a.dtype.is_complex
        assert b.dtype == rgrad.complex128
        (x,) = ctx.saved_tensors
        return a * x.sgn() + b.conj_physical()


def test_a_custom_function_with_a_real_and_a_complex_output() -> None:
    x = z()
    real, turned = Both.apply(x)
    (found,) = grad((real, turned), x, (r(1, 2).detach(), v()), retain_graph=True)
    unit = np.asarray([1 + 2j, 3 - 1j]) / np.abs([1 + 2j, 3 - 1j])
    same(found, unit * [1, 2] + np.conj(V))
    # The gradient of an output that is not used is zeros of its dtype.
    same(grad(real, x, r(1, 2).detach())[0], unit * [1, 2])


class TurnedInPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.mul_(2j)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    @rgrad.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * -2j


def test_mark_dirty_and_once_differentiable() -> None:
    x = z()
    same(grad(TurnedInPlace.apply(x * 1), x, v())[0], np.asarray(V) * -2j)
    weights = v().requires_grad_()
    (found,) = grad(TurnedInPlace.apply(x * 1), x, weights, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(found, weights, v())


def test_hooks_and_retained_gradients() -> None:
    x, seen = z(1 + 2j, 3), []
    y = x * 1j
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.dtype))
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y.abs().backward(r(1, 1).detach())
    unit = np.asarray([1 + 2j, 3]) / np.abs([1 + 2j, 3])
    same(y.grad, unit * 1j)
    same(x.grad, unit * 2)
    assert seen[0] == rgrad.complex128
    assert len(seen) == 2
    for leaf, hook in ((z(), lambda g: g.real), (r(), lambda g: g * 1j)):
        leaf.register_hook(hook)
        with pytest.raises(RuntimeError, match="has changed the type of value"):
            leaf.abs().backward(r(1, 1).detach())


@pytest.mark.parametrize("bad", [complex(math.nan, 0), complex(0, math.nan)])
def test_anomaly_mode_looks_at_both_parts(bad: complex) -> None:
    class Nan(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g.detach() * 0 + rgrad.complex(
                rgrad.full((2,), bad.real, dtype=rgrad.float64), rgrad.full((2,), bad.imag, dtype=rgrad.float64)
            )

    def backward(function: Any) -> None:
        with rgrad.autograd.detect_anomaly():
            function(z()).abs().backward(r(1, 1).detach())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backward(square)
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
            backward(Nan.apply)


def test_saved_tensors_hooks_may_change_the_precision() -> None:
    x = z()
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: t.detach().to(rgrad.complex64), lambda t: t):
        y = x * x
    same(grad(y, x, v())[0], np.asarray(V) * 2 * np.conj([1 + 2j, 3 - 1j]))
    with rgrad.autograd.graph.saved_tensors_hooks(lambda t: t.detach().real, lambda t: t):
        y = x * x
    with pytest.raises(RuntimeError, match="dtype complex128, but got dtype float64"):
        grad(y, x, v())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    x = z()
    checkpoint(lambda x: x * x * 1j, x, use_reentrant=reentrant).abs().backward(r(1, 1).detach())
    same(x.grad, 2 * np.asarray([1 + 2j, 3 - 1j]))


def test_batched_gradients() -> None:
    x = z()
    (found,) = grad(x * x, x, rgrad.stack([v(), v() * 2]), is_grads_batched=True)
    one = np.asarray(V) * 2 * np.conj([1 + 2j, 3 - 1j])
    same(found, [one, one * 2])


def square(x: Tensor) -> Tensor:
    return x * x


def energy(x: Tensor) -> Tensor:
    return rgrad.view_as_real(x).square().sum()


def test_functional() -> None:
    x = z().detach()
    at = np.asarray([1 + 2j, 3 - 1j])
    with pytest.raises(RuntimeError, match="real scalar outputs but got rgrad.complex128"):
        functional.jacobian(square, x)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        functional.jacobian(lambda a: a * x, r().detach())
    same(functional.jacobian(lambda x: x.abs(), x), np.diag(at / np.abs(at)))
    # A holomorphic function: by backward passes the conjugate of what forward mode gives.
    same(functional.jacobian(square, x, vectorize=True), np.diag(2 * np.conj(at)))
    same(functional.jacobian(square, x, vectorize=True, strategy="forward-mode"), np.diag(2 * at))
    same(functional.vjp(square, x, v())[1], 2 * np.conj(at) * V)
    same(functional.jvp(square, x, v())[1], 2 * at * V)
    same(functional.jvp(lambda x: x.abs(), x, v())[1], (np.conj(at) * V).real / np.abs(at))
    same(functional.vhp(energy, x, v())[1], 2 * np.asarray(V))
    same(functional.hvp(energy, x, v())[1], 2 * np.asarray(V))
    with pytest.raises(RuntimeError, match="both grad_output and output"):
        functional.vjp(square, x, r().detach())
    for product in (functional.vjp, functional.jvp, functional.vhp, functional.hvp):
        with pytest.raises(RuntimeError, match="real scalar outputs but got rgrad.complex128"):
            product(square if product in (functional.vjp, functional.jvp) else energy, x[:1])
    same(functional.hessian(energy, x, vectorize=True), 2 * np.eye(2))


def test_func() -> None:
    x = z().detach()
    at = np.asarray([1 + 2j, 3 - 1j])
    same(rgrad.func.grad(energy)(x), 2 * at)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        rgrad.func.grad(lambda x: x[0] * x[0])(x)
    found, value = rgrad.func.grad_and_value(energy)(x)
    same(found, 2 * at)
    assert value.item() == 15
    same(rgrad.func.vjp(square, x)[1](v())[0], 2 * np.conj(at) * V)
    with pytest.raises(RuntimeError, match="both grad_output and output"):
        rgrad.func.vjp(square, x)[1](r().detach())
    same(rgrad.func.jvp(square, (x,), (v(),))[1], 2 * at * V)
    same(rgrad.func.jvp(square, (x,), (r().detach(),))[1], 2 * at * [1, 2])
    same(rgrad.func.linearize(square, x)[1](v()), 2 * at * V)
    same(rgrad.func.vmap(lambda x: x * x.conj() + x.abs())(x), np.abs(at) ** 2 + np.abs(at))
    same(rgrad.func.vmap(rgrad.func.grad(lambda x: x.abs() ** 3))(x), 3 * np.abs(at) * at)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_of_func_are_real(name: str) -> None:
    transform, x = getattr(rgrad.func, name), z().detach()
    with pytest.raises(
        RuntimeError,
        match=f"{name}: Expected all inputs to be real but received complex tensor at flattened input idx: 0",
    ):
        transform(lambda x: x.abs())(x)
    with pytest.raises(RuntimeError, match=f"{name}: Expected all outputs to be real but received complex tensor"):
        transform(lambda a: a * x)(r().detach())
    with pytest.raises(RuntimeError, match="to be real but received complex"):
        rgrad.func.hessian(energy)(x)


def test_dual_numbers() -> None:
    x = z().detach()
    at = np.asarray([1 + 2j, 3 - 1j])

    def moved(primal: Tensor, tangent: Tensor, function: Any) -> Tensor:
        with forward_ad.dual_level():
            found = forward_ad.unpack_dual(function(forward_ad.make_dual(primal, tangent))).tangent
            assert found is not None
            return found

    same(moved(x, v(), square), 2 * at * V)
    same(moved(x, r().detach(), square), 2 * at * [1, 2])
    same(moved(x, v(), lambda x: x.real), [1, 0])
    same(moved(x, v(), lambda x: x.conj() * 2), [2, -2j])
    same(moved(x, v(), lambda x: x.angle()), [-0.4, 0.3])
    assert moved(x, v(), lambda x: x.abs()).dtype == rgrad.float64
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        moved(rgrad.tensor([1, 2]), v(), square)


def test_second_derivatives() -> None:
    x = z()
    first = grad((x * x * x).abs(), x, r().detach(), create_graph=True)[0]
    same(grad(first.abs(), x, r(1, 1).detach())[0], [6 + 12j, 36 - 12j])


def test_writes_to_parts() -> None:
    x, a = z(), r()
    y = x * 1
    y[0] = 2j
    y[1] *= 1j
    same(grad(y, x, v())[0], [0, 1])
    y = z().detach().clone()
    y.real.copy_(a)
    y.imag.mul_(a)
    # The imaginary parts were 2 and -1; the cotangent has 0 and 1 there.
    same(grad(y, a, v())[0], [1, -1])
    y = x * 1
    rgrad.view_as_real(y)[:, 0].mul_(3)
    # 2 conj(y) v, its real part three times.
    same(grad(y * y, x, v())[0], [18 - 4j, -6 + 18j])
    y = x * 1
    product = y * y
    y.real.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(product, x, v())


def test_writes_in_place() -> None:
    x = z()
    y = x * 1
    y.mul_(2j)
    y.add_(1)
    same(grad(y, x, v())[0], np.asarray(V) * -2j)
    y = x * 1
    y.real.mul_(3)
    same(grad(y, x, v())[0], [3, 1j])
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Double"):
        (r() * 1).mul_(2j)


class RealTangent(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return rgrad.complex(x.real, rgrad.zeros_like(x.real))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        return t.real


def test_a_real_tangent_of_a_complex_output() -> None:
    found = rgrad.func.jvp(RealTangent.apply, (z().detach(),), (v(),))[1]
    assert found.dtype == rgrad.complex128
    same(found, [1, 0])
