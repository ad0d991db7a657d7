"""What PyTorch has for complex numbers, of real ones."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rgrad

DTYPES = [rgrad.bool, rgrad.uint8, rgrad.int8, rgrad.int16, rgrad.int32, rgrad.int64, rgrad.float32, rgrad.float64]
SPECIAL = [-2.0, 0.0, 3.0, -0.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", ["real", "conj", "conj_physical", "resolve_conj", "resolve_neg"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_real_tensor_is_its_own(name: str, dtype: Any, device: Any) -> None:
    x = rgrad.ones(2, device=device).to(dtype)
    assert getattr(rgrad, name)(x) is x
    if name == "real":
        assert x.real is x
    else:
        assert getattr(x, name)() is x
    with pytest.raises(TypeError):
        getattr(rgrad, name)(3.0)


def test_conj_physical_writes() -> None:
    x = rgrad.tensor([1.0, 2.0])
    out = rgrad.zeros(2)
    assert rgrad.conj_physical(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert x.conj_physical_() is x
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        rgrad.conj_physical(x, out=rgrad.zeros(2, dtype=rgrad.float64))


def test_the_real_part_can_be_written_and_there_is_no_imaginary_one() -> None:
    x: Any = rgrad.zeros(2)
    x.real = rgrad.tensor([1.0, 2.0])
    assert x.tolist() == [1.0, 2.0]
    for call in (lambda: x.imag, lambda: rgrad.imag(x), lambda: setattr(x, "imag", x)):
        with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
            call()
    assert [x.is_conj(), x.is_neg(), rgrad.is_conj(x), rgrad.is_neg(x), x.is_complex()] == [False] * 5


def test_gradients_pass_through_the_real_part() -> None:
    x = rgrad.ones(2, requires_grad=True)
    (rgrad.real(x) * x.conj() * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("dtype", [rgrad.float32, rgrad.float64], ids=str)
def test_angle_and_sign_of_special_numbers(dtype: Any, device: Any) -> None:
    x = rgrad.tensor(SPECIAL, dtype=dtype, device=device)
    pi = rgrad.tensor(math.pi, dtype=dtype).item()
    found = rgrad.angle(x).tolist()
    assert found[:6] == [pi, 0.0, 0.0, 0.0, 0.0, pi]
    assert math.isnan(found[6])
    assert rgrad.sgn(x).tolist() == [-1.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0]
    for name in ("angle", "sgn"):
        leaf = x.detach().clone().requires_grad_()
        y = getattr(leaf, name)()
        assert y.grad_fn is not None
        assert y.grad_fn.name() == {"angle": "AngleBackward0", "sgn": "SgnBackward0"}[name]
        for value in (1.0, 1e30):
            for record in (False, True):
                (g,) = rgrad.autograd.grad(y, leaf, rgrad.full_like(y, value), retain_graph=True, create_graph=record)
                assert g.tolist() == [0.0] * 7


@pytest.mark.parametrize("dtype", DTYPES[:6], ids=str)
def test_angle_of_integers_is_a_float_and_sgn_keeps_the_type(dtype: Any) -> None:
    x = rgrad.tensor([0, 1]).to(dtype)
    assert rgrad.angle(x).dtype == rgrad.float32
    assert rgrad.sgn(x).dtype == dtype
    assert rgrad.sgn(x).to(rgrad.int64).tolist() == [0, 1]
    if dtype.is_signed:
        assert rgrad.angle(-x).tolist() == [0.0, pytest.approx(math.pi)]
        assert rgrad.sgn(-3 * x).tolist() == [0, -1]
