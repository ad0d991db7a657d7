"""Derivatives of Fourier transforms: numeric ones of both orders, tangents, batches, names of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad.autograd import forward_ad, gradcheck, gradgradcheck

fft = rgrad.fft
Function = Callable[..., Any]

# Functions of real numbers, complex ones, and half of a spectrum.
REAL: dict[str, Function] = {
    "fft": fft.fft,
    "ifft": lambda x: fft.ifft(x, norm="ortho"),
    "fft of fewer": lambda x: fft.fft(x, 3, 0),
    "fft of more": lambda x: fft.fft(x, 7),
    "rfft": fft.rfft,
    "rfft of an odd length": lambda x: fft.rfft(x, dim=0),
    "rfft of more": lambda x: fft.rfft(x, 7),
    "ihfft": fft.ihfft,
    "fft2": fft.fft2,
    "rfft2": lambda x: fft.rfft2(x, (4, 5)),
    "rfftn": lambda x: fft.rfftn(x, dim=(1, 0), norm="forward"),
    "ihfftn": fft.ihfftn,
}
COMPLEX: dict[str, Function] = {
    "fft": fft.fft,
    "ifft": lambda x: fft.ifft(x, dim=0),
    "fft of fewer": lambda x: fft.fft(x, 2),
    "fftn": lambda x: fft.fftn(x, norm="ortho"),
    "irfft": fft.irfft,
    "irfft of an odd length": lambda x: fft.irfft(x, 5, norm="forward"),
    "irfft of two": lambda x: fft.irfft(x, 2, 0),
    "hfft": lambda x: fft.hfft(x, 6),
    "irfftn": fft.irfftn,
    "irfft2": lambda x: fft.irfft2(x, (4, 5)),
    "hfft2": fft.hfft2,
}


def real(*shape: int, seed: int = 0) -> Any:
    return rgrad.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def complex_(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rgrad.tensor(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), requires_grad=True)


CASES = [pytest.param(f, real, id=f"{name} of real numbers") for name, f in REAL.items()] + [
    pytest.param(f, complex_, id=f"{name} of complex numbers") for name, f in COMPLEX.items()
]


def on_parts(f: Function, draw: Function) -> Function:
    """The function of the real and imaginary parts, in a last dimension of 2, with results of the same kind."""

    def of_parts(x: Any) -> Any:
        made = f(rgrad.view_as_complex(x) if draw is complex_ else x)
        return rgrad.view_as_real(made) if made.dtype.is_complex else made

    return of_parts


def parts_of(draw: Function, *shape: int, seed: int = 0) -> Any:
    """What `on_parts` takes."""
    x = draw(*shape, seed=seed).detach()
    return (rgrad.view_as_real(x) if x.dtype.is_complex else x).clone().requires_grad_()


@pytest.mark.parametrize(("f", "draw"), CASES)
def test_numeric_derivatives(f: Function, draw: Function) -> None:
    of_parts = on_parts(f, draw)
    assert gradcheck(of_parts, (parts_of(draw, 3, 4),), check_forward_ad=True)

    def square(x: Any) -> Any:
        """A transform is linear: its own second derivative is 0."""
        made = of_parts(x)
        return made * made

    assert gradgradcheck(square, (parts_of(draw, 3, 4),))


@pytest.mark.parametrize(("f", "draw"), CASES)
def test_the_gradient_is_the_adjoint(f: Function, draw: Function) -> None:
    """The real inner products <f(x), g> and <x, f*(g)> are equal, for long lines too."""
    x = draw(3, 4, seed=1)
    y = f(x)
    rng = np.random.default_rng(2)
    g = rng.standard_normal(y.shape)
    g = rgrad.tensor(g + 1j * rng.standard_normal(y.shape) if y.dtype.is_complex else g)
    (back,) = rgrad.autograd.grad(y, x, g)
    assert back.dtype == x.dtype

    def inner(a: Any, b: Any) -> float:
        return float(np.vdot(a.detach().numpy(), b.detach().numpy()).real)

    assert abs(inner(y, g) - inner(x, back)) < 1e-12 * (1 + abs(inner(y, g)))


@pytest.mark.parametrize(("f", "draw"), CASES)
def test_tangents(f: Function, draw: Function) -> None:
    of_parts = on_parts(f, draw)
    x, t = parts_of(draw, 3, 4).detach(), parts_of(draw, 3, 4, seed=3).detach()
    with forward_ad.dual_level():
        made = forward_ad.unpack_dual(of_parts(forward_ad.make_dual(x, t))).tangent
    assert rgrad.allclose(made, of_parts(t))


@pytest.mark.parametrize(("f", "draw"), CASES)
def test_batches(f: Function, draw: Function) -> None:
    x = draw(5, 3, 4).detach()
    for dim in (0, 2):
        made = rgrad.vmap(f, in_dims=dim)(x.movedim(0, dim))
        assert rgrad.allclose(made, rgrad.stack([f(one) for one in x]))


def test_nodes_have_pytorchs_names() -> None:
    x, z = real(4), complex_(4)
    for made, name in (
        (fft.fft(z), "FftC2CBackward0"),
        (fft.rfft(x), "FftR2CBackward0"),
        (fft.irfft(z), "FftC2RBackward0"),
    ):
        assert made.grad_fn.name() == name
        assert made.grad_fn._saved_dim == (0,)
        assert made.grad_fn._saved_normalization == (2 if name == "FftC2RBackward0" else 0)
    assert fft.fft(z).grad_fn._saved_forward
    assert fft.rfft(x).grad_fn._saved_onesided
    assert not fft.fft(x).grad_fn._saved_onesided


def test_gradients_of_several_orders() -> None:
    """The filter y = irfft(h * rfft(x)) is linear: the gradient of sum(y ** 3) three times over."""
    x, h = real(8), complex_(5, seed=4)

    def total(x: Any) -> Any:
        return (fft.irfft(fft.rfft(x) * h.detach(), 8) ** 3).sum()

    assert gradgradcheck(total, (x,))
    (first,) = rgrad.autograd.grad(total(x), x, create_graph=True)
    (second,) = rgrad.autograd.grad(first.sum(), x, create_graph=True)
    assert gradcheck(lambda x: rgrad.autograd.grad(total(x), x, create_graph=True)[0], (x,))
    (third,) = rgrad.autograd.grad(second.sum(), x)
    # The matrix of the filter gives them all.
    eye = rgrad.eye(8, dtype=rgrad.float64)
    matrix = fft.irfft(fft.rfft(eye) * h.detach(), 8)
    rows = matrix.sum(0)
    assert rgrad.allclose(third, 6 * (rows * rows) @ matrix.T)
