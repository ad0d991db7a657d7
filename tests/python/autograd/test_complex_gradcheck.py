"""What gradient checks say of functions of complex numbers."""

from typing import Any

import pytest

import rgrad
from rgrad import Tensor
from rgrad.autograd import Function, GradcheckError, gradcheck, gradgradcheck

FORWARD = {"check_forward_ad": True, "check_batched_forward_grad": True}


def z() -> Tensor:
    return rgrad.tensor([1 + 2j, 3 - 1j, -0.4 + 0.2j], dtype=rgrad.complex128, requires_grad=True)


def r() -> Tensor:
    return rgrad.tensor([0.3, 0.7, 2.0], dtype=rgrad.float64, requires_grad=True)


class Product(Function):
    """x² with a gradient that is scaled, and conjugated as it should be unless ``plain``."""

    scale: Any = 2
    plain = False

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * cls.scale * (x if cls.plain else x.conj())


class NotConjugated(Product):
    plain = True


class Scaled(Product):
    scale = 3


class TurnedOnly(Product):
    """Right for real parts of outputs only."""

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return rgrad.complex(g.real, g.imag * 1.5) * 2 * x.conj()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: x.abs(),
        lambda x: (x.real, x * 1j),
        lambda x: x.conj() * x,
        lambda x: rgrad.view_as_real(x) * 2,
    ],
    ids=["complex", "real", "both", "conjugate", "parts"],
)
def test_right_derivatives_pass(function: Any, fast_mode: bool) -> None:
    assert gradcheck(function, z(), fast_mode=fast_mode, check_batched_grad=True, **FORWARD)
    assert gradgradcheck(function, z(), fast_mode=fast_mode, check_fwd_over_rev=True)


def test_real_and_complex_inputs_together() -> None:
    def function(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return rgrad.complex(a, a * a) * x, a * x.abs()

    for fast_mode in (False, True):
        assert gradcheck(function, (r(), z()), fast_mode=fast_mode, check_batched_grad=True, **FORWARD)
    assert gradgradcheck(function, (r(), z()), check_fwd_over_rev=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_gradient_that_is_not_conjugated_fails(fast_mode: bool) -> None:
    with pytest.raises(
        GradcheckError, match="While considering the imaginary part of complex outputs only, Jacobian"
    ) as caught:
        gradcheck(NotConjugated.apply, z(), fast_mode=fast_mode)
    assert "the analytical gradient has a conjugate too many or too few" in str(caught.value)
    error = caught.value
    assert isinstance(error.analytical, complex)
    assert isinstance(error.numerical, complex)
    assert error.analytical == pytest.approx(-error.numerical.conjugate(), rel=1e-6)
    assert error.input_index == error.output_index


def test_messages_name_the_part() -> None:
    with pytest.raises(GradcheckError, match="the imaginary part of complex outputs only"):
        gradcheck(TurnedOnly.apply, z())
    with pytest.raises(GradcheckError, match=r"1\.5 times the numerical one"):
        gradcheck(Scaled.apply, z())
    # A real output of a complex input has no parts to name.
    with pytest.raises(GradcheckError, match="^Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(lambda x: NotConjugated.apply(x).abs(), z())
    assert gradcheck(lambda x: TurnedOnly.apply(x).real, z())
    assert gradcheck(NotConjugated.apply, z(), raise_exception=False) is False


class WrongTangent(Function):
    """A right gradient, and a tangent that is right for real directions only."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 1j

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * -1j

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        return rgrad.complex(t.real, t.imag * 2) * 1j


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode_names_the_part_of_inputs(fast_mode: bool) -> None:
    assert gradcheck(WrongTangent.apply, z(), fast_mode=fast_mode)
    with pytest.raises(
        GradcheckError,
        match="While considering the imaginary part of complex inputs only, Jacobian computed with forward mode",
    ):
        gradcheck(WrongTangent.apply, z(), check_forward_ad=True, fast_mode=fast_mode)


def test_single_precision_is_compared_with_differences_in_double_precision() -> None:
    x = z().detach().to(rgrad.complex64).requires_grad_()
    assert gradcheck(lambda x: x * x.abs(), x)
    with pytest.raises(GradcheckError, match="a conjugate too many or too few"):
        gradcheck(NotConjugated.apply, x)


def test_a_constant_complex_output_is_checked() -> None:
    assert gradcheck(lambda x: (x * 0).detach(), z())
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: (x * 1j).detach(), z())


def test_nondeterministic_gradients_of_either_part_are_found() -> None:
    state = [0.0]

    class Drifts(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            state[0] += 1e-7
            return g + 1j * state[0]

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifts.apply, z())
    assert gradcheck(Drifts.apply, z(), nondet_tol=1e-3, check_undefined_grad=False, raise_exception=False) is False


def test_inputs_keep_their_values() -> None:
    x = z()
    before = x.tolist()
    with pytest.raises(GradcheckError):
        gradcheck(NotConjugated.apply, x)
    assert gradcheck(lambda x: x * x, x)
    assert x.tolist() == before


def test_strided_and_scalar_inputs() -> None:
    base = rgrad.tensor([[1 + 2j, 0.5], [3 - 1j, 1j]], dtype=rgrad.complex128)
    for x in (base[:, 0], base.t(), base[1, 1], base[:0]):
        assert gradcheck(lambda x: x * x * x.abs(), x.detach().requires_grad_(), check_forward_ad=True)
