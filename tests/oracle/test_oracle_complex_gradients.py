"""Gradients and tangents of complex numbers, and steps of optimizers with complex parameters, beside PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Zeros, points on branch cuts, and others.
POINTS = np.array(
    [0, 1, -1, 1j, -1j, 2, -2, 2j, -2j, 0.5, -0.5, 1 + 2j, -1 - 0.5j, 0.3 - 0.2j, 1e-5 + 1e-5j, 30 + 2j, -30 + 1j],
    dtype=np.complex128,
)
OTHERS = np.roll(POINTS, 3)
DRAWN = np.random.default_rng(0).normal(size=(2, POINTS.size))
COTANGENT = DRAWN[0] + 1j * DRAWN[1]
UNARY = (
    *("abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "conj_physical", "cos", "cosh", "exp", "exp2"),
    *("expm1", "log", "log10", "log1p", "log2", "neg", "positive", "reciprocal", "rsqrt", "sgn", "sigmoid", "sin"),
    *("sinc", "sinh", "sqrt", "square", "tan", "tanh"),
)
# PyTorch's derivatives of these cancel near 0.
ROUGH = ("sinc",)
Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    **{name: lambda T, x, name=name: getattr(T, name)(x) for name in UNARY},
    **{f"x**{e}": lambda T, x, e=e: x**e for e in (0, 1, 2, 3, 0.5, -1, 2.5, 1j, 2 - 1j)},
    **{f"{b}**x": lambda T, x, b=b: b**x for b in (1, 2, 0.5, 1j, 2 - 1j)},
    "real": lambda T, x: x.real * 1,
    "imag": lambda T, x: x.imag * 1,
    "view_as_real": lambda T, x: T.view_as_real(x) * 2,
    "tanhshrink": lambda T, x: T.nn.functional.tanhshrink(x),
    **{name: lambda T, x, y, name=name: getattr(T, name)(x, y) for name in ("add", "sub", "mul", "div")},
    "addcmul": lambda T, x, y: T.addcmul(x, y, x, value=0.5 + 2j),
    "addcdiv": lambda T, x, y: T.addcdiv(x, y, x, value=0.5 + 2j),
    "lerp": lambda T, x, y: T.lerp(x, y, y),
    "lerp number": lambda T, x, y: T.lerp(x, y, 0.3 + 1j),
    "lerp real number": lambda T, x, y: T.lerp(x, y, 0.7),
    "where": lambda T, x, y: T.where(x.real > 0, x, y),
    "rsub": lambda T, x, y: T.rsub(x, y, alpha=2j),
    "complex": lambda T, x, y: T.complex(x.real, y.imag),
    "real times complex": lambda T, x, y: x.real * y,
    "masked_fill": lambda T, x, y: x.masked_fill(y.real > 0, 2j),
}


def _operands(call: Call) -> tuple[np.ndarray, ...]:
    return (POINTS, OTHERS) if "y" in call.__code__.co_varnames[: call.__code__.co_argcount] else (POINTS,)


def _numpy(t: Any) -> np.ndarray:
    return t.detach().resolve_conj().numpy()


def _cotangent(T: Any, made: Any) -> Any:
    values = np.resize(COTANGENT, tuple(made.shape))
    return T.from_numpy(values if made.dtype.is_complex else values.real.copy())


def _gradients(T: Any, call: Call) -> list[np.ndarray]:
    xs = [T.from_numpy(x.copy()).requires_grad_() for x in _operands(call)]
    made = call(T, *xs)
    found = T.autograd.grad(made, xs, _cotangent(T, made), allow_unused=True)
    return [np.zeros(x.shape) if g is None else _numpy(g) for g, x in zip(found, xs, strict=True)]


def _tangent(T: Any, call: Call) -> list[np.ndarray]:
    with T.autograd.forward_ad.dual_level():
        duals = [
            T.autograd.forward_ad.make_dual(T.from_numpy(x.copy()), T.from_numpy(np.roll(COTANGENT, k)))
            for k, x in enumerate(_operands(call))
        ]
        found = T.autograd.forward_ad.unpack_dual(call(T, *duals)).tangent
        return [np.zeros(()) if found is None else _numpy(found)]


def _second(T: Any, call: Call) -> list[np.ndarray]:
    xs = [T.from_numpy(x.copy()).requires_grad_() for x in _operands(call)]
    made = call(T, *xs)
    first = T.autograd.grad(made, xs, _cotangent(T, made).requires_grad_(), create_graph=True, allow_unused=True)
    first = [g for g in first if g is not None and g.requires_grad]
    found = T.autograd.grad(first, xs, [_cotangent(T, g) for g in first], allow_unused=True)
    return [np.zeros(x.shape) if g is None else _numpy(g) for g, x in zip(found, xs, strict=True)]


def _compare(found: list[np.ndarray], want: list[np.ndarray], name: str) -> None:
    for a, b in zip(found, want, strict=True):
        # What is infinite or nan there may be either here.
        finite = np.isfinite(b)
        np.testing.assert_allclose(a[finite], b[finite], rtol=1e-9, atol=1e-5 if name in ROUGH else 1e-11)


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name: str) -> None:
    _compare(_gradients(rgrad, CALLS[name]), _gradients(torch, CALLS[name]), name)


@pytest.mark.parametrize("name", CALLS)
def test_tangents(name: str) -> None:
    _compare(_tangent(rgrad, CALLS[name]), _tangent(torch, CALLS[name]), name)


@pytest.mark.parametrize("name", CALLS)
def test_second_gradients(name: str) -> None:
    _compare(_second(rgrad, CALLS[name]), _second(torch, CALLS[name]), name)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("RAdam", {}),
    ("NAdam", {}),
    ("Adagrad", {"initial_accumulator_value": 0.3}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9}),
    ("Rprop", {}),
    ("ASGD", {}),
    ("Adamax", {}),
]


def _stepped(T: Any, name: str, options: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    p = T.nn.Parameter(T.from_numpy(np.array([1 + 2j, -0.5 + 0.1j, 0])))
    steps = getattr(T.optim, name)([p], **options)
    for i in range(7):
        p.grad = p.detach() * (1.5 - 0.3j) + i
        steps.step()
    return _numpy(p), {key: _numpy(value) for key, value in steps.state[p].items() if isinstance(value, T.Tensor)}


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[name for name, _ in OPTIMIZERS])
def test_steps(name: str, options: dict[str, Any]) -> None:
    (found, states), (want, their_states) = _stepped(rgrad, name, options), _stepped(torch, name, options)
    np.testing.assert_allclose(found, want, rtol=1e-9)
    assert set(states) == set(their_states)
    for key, value in states.items():
        assert value.dtype == their_states[key].dtype, key
        np.testing.assert_allclose(value, their_states[key], rtol=1e-7, err_msg=key)


def _not_conjugated(T: Any) -> Any:
    class NotConjugated(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    return NotConjugated.apply


CHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "right": lambda T, x: x.exp(),
    "not conjugated": lambda T, x: _not_conjugated(T)(x),
    "not conjugated, real": lambda T, x: _not_conjugated(T)(x).abs(),
    "not conjugated, imaginary": lambda T, x: _not_conjugated(T)(x).imag,
    "real and complex": lambda T, x: (x.abs(), _not_conjugated(T)(x)),
    "cut": lambda T, x: x * x.detach(),
    "constant": lambda T, x: (x * 1j).detach(),
}


def _verdict(T: Any, name: str, fast_mode: bool) -> str:
    x = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            T.autograd.gradcheck(lambda x: CHECKED[name](T, x), x, fast_mode=fast_mode)
    except RuntimeError as error:
        return str(error).split("\n")[0].split(":")[0]
    return "passed"


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", CHECKED)
def test_gradcheck_says_the_same(name: str, fast_mode: bool) -> None:
    assert _verdict(rgrad, name, fast_mode) == _verdict(torch, name, fast_mode)
