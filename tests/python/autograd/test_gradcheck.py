"""The checker is checked: wrong gradients of every kind fail, right ones pass, and the verdict says why."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import rgrad
from devices import real, tol
from rgrad.autograd import Function, GradcheckError, gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("device")


def point(*shape: int, seed: int = 0, dtype: rgrad.dtype | None = None) -> rgrad.Tensor:
    values = np.random.default_rng(seed).uniform(0.3, 1.5, shape)
    return rgrad.tensor(values, dtype=dtype or real(), requires_grad=True)


def scaled_sine(first: float, second: float = 1.0) -> type[Function]:
    """sin, with its first derivative off by one factor, and the derivative of that by another."""

    class Cosine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx, g):
            return -g * ctx.saved_tensors[0].sin() * second

    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * Cosine.apply(ctx.saved_tensors[0]) * first

    return Sine


# ------------------------------------------------------------------------------------------------ right and wrong

RIGHT = {
    "exp": lambda x: x.exp(),
    "several outputs": lambda x: (x.sin(), x.sum(), x * 2),
    "not used": lambda x: x.detach().sum() + (x * 3).sum(),
    "matmul": lambda x: x @ x.t(),
    "view": lambda x: x.t().reshape(-1)[1:],
    "itself": lambda x: x,
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("fast", [False, True])
def test_right_gradients_pass(name: str, fast: bool) -> None:
    if name == "not used":
        # One output, part of whose dependence is cut: the numbers must say so.
        with pytest.raises(GradcheckError, match="Jacobian mismatch"):
            gradcheck(RIGHT[name], (point(2, 3),), fast_mode=fast)
        return
    assert gradcheck(RIGHT[name], (point(2, 3),), fast_mode=fast) is True
    assert gradgradcheck(RIGHT[name], (point(2, 3),), fast_mode=fast) is True


@pytest.mark.parametrize("fast", [False, True])
def test_an_error_of_a_thousandth_fails_at_first_order(fast: bool) -> None:
    x = point(2, 3)
    assert gradcheck(scaled_sine(1.0).apply, (x,), rtol=1e-5, atol=1e-8, fast_mode=fast) is True
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(scaled_sine(1.001).apply, (x,), rtol=1e-5, atol=1e-8, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_an_error_of_a_thousandth_fails_at_second_order(fast: bool) -> None:
    x = point(2, 3)
    wrong = scaled_sine(1.0, 1.001).apply
    assert gradcheck(wrong, (x,), rtol=1e-5, atol=1e-8, fast_mode=fast) is True
    assert gradgradcheck(scaled_sine(1.0).apply, (x,), rtol=1e-5, atol=1e-8, fast_mode=fast) is True
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(wrong, (x,), rtol=1e-5, atol=1e-8, fast_mode=fast)


def test_default_tolerances_are_pytorchs() -> None:
    x = point(4)
    assert gradcheck(scaled_sine(1.0009).apply, (x,)) is True
    assert gradcheck(scaled_sine(1.002).apply, (x,), raise_exception=False) is False


def test_the_error_names_the_worst_entry() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            bad = x.clone()
            bad[1, 2] += 0.5
            return g * y, g * bad

    x, y = point(2, 3, seed=1), point(2, 3, seed=2)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(Wrong.apply, (x, y))
    error, text = caught.value, str(caught.value)
    assert (error.output_idx, error.input_idx) == (0, 1)
    assert (error.output_index, error.input_index) == ((1, 2), (1, 2))
    assert error.analytical == pytest.approx(x[1, 2].item() + 0.5)
    assert error.numerical == pytest.approx(x[1, 2].item(), abs=1e-8)
    assert error.verdict == "wrong formula"
    assert "Jacobian mismatch for output 0 with respect to input 1" in text
    assert "numerical:" in text
    assert "analytical:" in text
    assert "output[1, 2] with respect to input[1, 2]" in text


# ------------------------------------------------------------------------------------------------------- verdicts


def verdict(func, *inputs: rgrad.Tensor, **options) -> tuple[str | None, str]:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(func, inputs, **options)
    return caught.value.verdict, str(caught.value)


def test_verdict_wrong_formula_says_by_which_factor() -> None:
    kind, text = verdict(scaled_sine(2.0).apply, point(3))
    assert kind == "wrong formula"
    assert "2 times the numerical one in all 3 entries" in text
    kind, text = verdict(scaled_sine(-1.0).apply, point(3))
    assert kind == "wrong formula"
    assert "-1 times" in text
    kind, text = verdict(scaled_sine(0.0).apply, point(3))
    assert "zero everywhere" in text


@pytest.mark.parametrize(
    "func",
    [lambda x: x.relu(), lambda x: x.clamp(min=0), lambda x: x.abs().sqrt(), lambda x: x.sign() + x, lambda x: 1 / x],
    ids=["relu", "clamp", "root", "jump", "pole"],
)
def test_verdict_kink(func) -> None:
    x = rgrad.tensor([0.7, 0.0, -0.4], dtype=real(), requires_grad=True)
    kind, text = verdict(func, x)
    assert kind == "kink or not differentiable there"
    assert "with respect to input[1]" in text


def test_verdict_not_deterministic() -> None:
    kind, _ = verdict(lambda x: x * rgrad.rand_like(x), point(3))
    assert kind == "not deterministic"


def test_verdict_too_coarse_a_precision() -> None:
    weight = rgrad.ones(3)  # float32: the function cannot be run in float64
    x = point(3, dtype=rgrad.float32)
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        kind, text = verdict(lambda x: (x @ weight).exp(), x)
    assert kind == "too coarse a precision"
    assert "float64" in text
    kind, _ = verdict(lambda x: (x * 50).sin(), point(3), eps=0.01)
    assert kind == "too coarse a precision"


# -------------------------------------------------------------------------------------------------------- float32


@pytest.mark.parametrize("eps", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("name", ["sigmoid", "exp", "tanh", "log"])
def test_float32_functions_are_checked_in_float64(name: str, eps: float) -> None:
    x = point(4, 3, dtype=rgrad.float32)
    func = getattr(rgrad, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(func, (x,), eps=eps) is True
        assert gradgradcheck(func, (x,), eps=eps) is True
    assert x.dtype == rgrad.float32


def test_float32_custom_functions() -> None:
    x = point(5, dtype=rgrad.float32)
    assert gradcheck(scaled_sine(1.0).apply, (x,)) is True
    assert gradgradcheck(scaled_sine(1.0).apply, (x,)) is True
    with pytest.raises(GradcheckError, match="wrong formula"):
        gradcheck(scaled_sine(1.001).apply, (x,), rtol=1e-4, atol=1e-6)
    with pytest.raises(GradcheckError, match="wrong formula"):
        gradcheck(scaled_sine(1.01).apply, (x,))


def test_float32_rounding_of_large_gradients_is_allowed_for() -> None:
    # The gradient of each entry is a difference of numbers some 1e4 times larger.
    x = point(6, dtype=rgrad.float32)
    assert gradcheck(lambda x: ((x * 1e4).sum() - 1e4 * x) * 1.0, (x,), rtol=1e-6) is True


def test_float32_fallback_where_the_function_insists_on_it() -> None:
    x = point(3, dtype=rgrad.float32)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda x: x.float() * 2, (x,), eps=1e-2) is True


@pytest.mark.needs("float64")
def test_mixed_precision_inputs() -> None:
    assert gradcheck(lambda a, b: a * b.double(), (point(3), point(3, dtype=rgrad.float32))) is True


# ----------------------------------------------------------------------------------------------- the other checks


def test_backward_that_is_not_reentrant() -> None:
    class Jitter(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * (1 + 1e-7 * rgrad.rand(g.shape, dtype=real()))

    x = point(3)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Jitter.apply, (x,))
    assert gradcheck(Jitter.apply, (x,), nondet_tol=1e-5) is True


def test_backward_not_multiplied_by_grad_output() -> None:
    class Constant(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return rgrad.ones(3, dtype=real())

    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(Constant.apply, (point(3),))


def test_undefined_gradients() -> None:
    class Strict(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            if a is None and b is None:
                raise RuntimeError("no gradient here")
            return sum(k * g for k, g in ((2, a), (3, b)) if g is not None)

    class Careful(Strict):
        @staticmethod
        def backward(ctx, a, b):
            parts = [k * g for k, g in ((2, a), (3, b)) if g is not None]
            return sum(parts) if parts else None

    x = point(3)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature is enabled by default"),
        pytest.raises(GradcheckError, match="undefined output grads"),
    ):
        gradcheck(Strict.apply, (x,))
    assert gradcheck(Strict.apply, (x,), check_undefined_grad=False) is True
    assert gradcheck(Careful.apply, (x,)) is True


def test_gradient_dtypes() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    assert gradcheck(Half.apply, (point(3),), check_grad_dtypes=True) is True


def test_constant_functions() -> None:
    x = point(3)
    assert gradcheck(lambda x: x.detach() * 0 + 1, (x,)) is True
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (x,))


def test_inputs_come_back_as_they_were() -> None:
    x = point(3)
    before, version = x.detach().clone(), x._version

    def breaks(x):
        if x[1].item() != before[1].item():
            raise ArithmeticError("moved")
        return x * 2

    with pytest.raises(ArithmeticError, match="moved"):
        gradcheck(breaks, (x,))
    assert rgrad.equal(x.detach(), before)
    assert gradcheck(lambda x: x * 2, (x,)) is True
    assert rgrad.equal(x.detach(), before)
    assert x._version == version
    assert x.grad is None


@pytest.mark.cpu_only  # of functions that hold device tensors there is a test of its own
def test_parameters_that_are_reached_by_a_closure() -> None:
    layer = rgrad.nn.Linear(3, 2).double()
    data = point(4, 3).detach()
    assert gradcheck(lambda *_: layer(data).tanh(), tuple(layer.parameters())) is True


def test_shapes_without_elements_or_dimensions() -> None:
    assert gradcheck(lambda x: x * 2, (rgrad.tensor(0.5, dtype=real(), requires_grad=True),)) is True
    assert gradcheck(lambda x: x * 2, (rgrad.zeros(0, 3, dtype=real(), requires_grad=True),)) is True
    assert gradcheck(lambda x: x.sum(0), (rgrad.zeros(2, 0, dtype=real(), requires_grad=True),), fast_mode=True) is True


def test_inputs_that_are_not_contiguous() -> None:
    x = point(3, 4).detach().t().requires_grad_()
    assert gradcheck(lambda x: x.exp().reshape(-1), (x,)) is True
    assert gradgradcheck(lambda x: x.exp(), (x,), gen_non_contig_grad_outputs=True) is True


def test_other_arguments() -> None:
    flag = rgrad.tensor([True, False, True])
    assert gradcheck(lambda x, m, k: rgrad.where(m, x * k, x), (point(3), flag, 3)) is True


# ---------------------------------------------------------------------------------------------------- bad input


def test_bad_input() -> None:
    x = point(3)
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x * 2, (x.detach(),))
    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        gradcheck(lambda x: x * 2, (rgrad.ones(1, dtype=real()).expand(3).requires_grad_(),))
    with pytest.raises(ValueError, match="output 0 of the function is int, expected a Tensor"):
        gradcheck(lambda x: 3, (x,))
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(lambda x: x, (x,), check_backward_ad=False)


def test_errors_of_the_function_come_out_unchanged() -> None:
    def broken(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        gradcheck(broken, (point(2),))


# ----------------------------------------------------------------------------------------- autograd.functional


def test_jacobian_and_hessian() -> None:
    functional = rgrad.autograd.functional
    x = point(3)
    a = point(2, 3, seed=4).detach()
    j = functional.jacobian(lambda x: a @ x.sin(), x)
    np.testing.assert_allclose(j.cpu().numpy(), a.cpu().numpy() * np.cos(x.detach().cpu().numpy()), rtol=1e-12)
    h = functional.hessian(lambda x: (x**3).sum(), x)
    np.testing.assert_allclose(h.cpu().numpy(), np.diag(6 * x.detach().cpu().numpy()), rtol=1e-12)
    assert not h.requires_grad
    pair = functional.jacobian(lambda x, y: (x * y, x.sum()), (x, x.detach()), create_graph=True)
    assert len(pair) == 2
    assert tuple(pair[0][1].shape) == (3, 3)
    assert tuple(pair[1][0].shape) == (3,)
    assert pair[0][1].requires_grad
    assert not pair[1][1].any()
    assert tuple(functional.jacobian(lambda x: x[:0], x).shape) == (0, 3)


def test_products_with_vectors() -> None:
    functional = rgrad.autograd.functional
    x = point(3).detach()
    close = partial(np.testing.assert_allclose, rtol=tol(1e-9))
    v3, v2 = point(3, seed=1).detach(), point(2, seed=2).detach()
    a = point(2, 3, seed=4).detach()

    def func(x):
        return a @ x.sin()

    j = a.cpu().numpy() * np.cos(x.cpu().numpy())
    out, product = functional.vjp(func, x, v2)
    close(out.cpu().numpy(), func(x).cpu().numpy())
    close(product.cpu().numpy(), v2.cpu().numpy() @ j)
    _, product = functional.jvp(func, x, v3)
    close(product.cpu().numpy(), j @ v3.cpu().numpy())

    def scalar(x):
        return (x.prod() + (x**2).sum()).exp() * 0.1

    h = functional.hessian(scalar, x).cpu().numpy()
    close(functional.hvp(scalar, x, v3)[1].cpu().numpy(), h @ v3.cpu().numpy())
    close(functional.vhp(scalar, x, v3)[1].cpu().numpy(), v3.cpu().numpy() @ h)


def test_functional_refuses() -> None:
    functional = rgrad.autograd.functional
    x = point(3)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda x: 3, x)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.vjp(lambda x: x, x, rgrad.ones(2, dtype=real()))
    with pytest.raises(RuntimeError, match="The vector v can only be None"):
        functional.vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(lambda x: x, x)
    with pytest.raises(RuntimeError, match="is independent of input 1"):
        functional.jacobian(lambda x, y: x, (x, x), strict=True)
