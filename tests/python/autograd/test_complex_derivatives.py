"""Derivatives in complex numbers: every pointwise row that takes them, beside differences, by PyTorch's convention."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import rgrad
from rgrad import Tensor
from rgrad.autograd import gradcheck, gradgradcheck

# Away from every branch cut, zero and pole of the rows.
POINTS = (
    (0.7 + 0.4j, -0.6 + 0.5j, 0.3 - 0.8j, -0.4 - 0.35j),
    (1.3 - 0.2j, 0.5 + 0.9j, -0.7 + 0.6j, 0.8 - 0.3j),
    (-0.9 + 0.1j, 0.6 - 0.6j, 0.2 + 0.7j, 1.1 + 0.5j),
)
# Rows with their numbers, and names that have arguments of their own.
WITH_NUMBERS: dict[str, Callable[..., Tensor]] = {
    "add alpha": lambda x, y: rgrad.add(x, y, alpha=0.7 - 0.3j),
    "sub alpha": lambda x, y: rgrad.sub(x, y, alpha=0.7 - 0.3j),
    "addcmul value": lambda x, y, z: rgrad.addcmul(x, y, z, value=0.5 + 2j),
    "lerp": lambda x, y, z: rgrad.lerp(x, y, z),
    "lerp real number": lambda x, y: rgrad.lerp(x, y, 0.3),
    "lerp number": lambda x, y: rgrad.lerp(x, y, 0.3 + 1j),
    "addcdiv value": lambda x, y, z: rgrad.addcdiv(x, y, z, value=0.5 + 2j),
    "pow number": lambda x: x ** (2.5 - 0.5j),
    "pow real number": lambda x: x**2.5,
    "pow 0": lambda x: x**0,
    "pow 1": lambda x: x**1,
    "pow 3": lambda x: x**3,
    "number pow": lambda x: (0.5 + 2j) ** x,
    "real number pow": lambda x: 2.0**x,
    "mul number": lambda x: x * (0.5 + 2j),
    "number div": lambda x: (0.5 + 2j) / x,
    "rsub number": lambda x: rgrad.rsub(x, 0.5 + 2j),
    "real": lambda x: x.real * 3,
    "imag": lambda x: x.imag * 3,
    "view_as_real": lambda x: rgrad.view_as_real(x) * 3,
    "conj": lambda x: x.conj() * x,
    "as complex": lambda x: rgrad.view_as_complex(rgrad.view_as_real(x) * 2),
    "complex": lambda x: rgrad.complex(x.real, x.abs()),
    "polar": lambda x: rgrad.polar(x.abs(), x.angle()),
    "where": lambda x, y: rgrad.where(rgrad.tensor([True, False, True, False]), x, y),
}
# Rows that must take complex numbers; a row that ceases to is a failure, not one test less.
ANALYTIC = [
    "abs",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "conj_physical",
    "cos",
    "cosh",
    "div",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "mul",
    "neg",
    "pow",
    "reciprocal",
    "rsqrt",
    "rsub",
    "sgn",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
]


def leaf(values: Any, dtype: Any = rgrad.complex128) -> Tensor:
    return rgrad.tensor(values, dtype=dtype, requires_grad=True)


def points(n: int) -> tuple[Tensor, ...]:
    return tuple(leaf(list(values)) for values in POINTS[:n])


def _called(name: str) -> Callable[..., Tensor]:
    return getattr(rgrad, name, None) or getattr(rgrad.nn.functional, name)


@cache
def rows() -> dict[str, tuple[Callable[..., Tensor], int]]:
    """The pointwise functions of complex tensors that give something to differentiate, with how many they take."""
    found: dict[str, tuple[Callable[..., Tensor], int]] = {}
    for name in sorted({*rgrad._core.pointwise_names, *ANALYTIC}):
        function = getattr(rgrad, name, None) or getattr(rgrad.nn.functional, name, None)
        for n in (1, 2, 3) if function is not None else ():
            try:
                made = function(*points(n))
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            if isinstance(made, Tensor) and made.requires_grad:
                found[name] = (function, n)
            break
    return found


CASES = sorted({*rows(), *WITH_NUMBERS})


def _case(name: str) -> tuple[Callable[..., Tensor], int]:
    if name in WITH_NUMBERS:
        function = WITH_NUMBERS[name]
        return function, function.__code__.co_argcount
    return rows()[name]


def test_rows_take_complex_numbers() -> None:
    assert set(ANALYTIC) <= set(rows()), set(ANALYTIC) - set(rows())


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name: str) -> None:
    function, n = _case(name)
    checks = dict.fromkeys(
        ("check_forward_ad", "check_grad_dtypes", "check_batched_grad", "check_batched_forward_grad"), True
    )
    assert gradcheck(function, points(n), **checks, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    function, n = _case(name)
    assert gradgradcheck(function, points(n), check_fwd_over_rev=True, rtol=1e-5)
