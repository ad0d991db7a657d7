"""Rows of the operation table: pointwise operations, comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from op_kit import Op, Sample, normal, pointwise_samples, uniform

OPS: list[Op] = []


def _unary(
    name: str,
    draw: Callable[..., np.ndarray],
    ref: Callable[..., Any],
    grad: str = "smooth",
    inplace: bool = True,
    tol: float = 1.0,
) -> None:
    OPS.append(
        Op(
            name,
            lambda T, x: getattr(T, name)(x),
            pointwise_samples(draw),
            ref,
            grad=grad,
            family="unary",
            inplace=f"{name}_" if inplace else None,
            tol=tol,
        )
    )


wide = uniform(-3.0, 3.0)
off_zero = uniform(-3.0, 3.0, avoid=(0.0,))
positive = uniform(0.2, 3.0)
grid = uniform(-3.0, 3.0, step=0.5)

_unary("exp", wide, np.exp)
_unary("exp2", wide, np.exp2)
_unary("expm1", wide, np.expm1)
_unary("log", positive, np.log)
_unary("log2", positive, np.log2)
_unary("log10", positive, np.log10)
_unary("log1p", uniform(-0.8, 3.0), np.log1p)
_unary("sqrt", positive, np.sqrt)
_unary("rsqrt", positive, lambda x: 1 / np.sqrt(x))
_unary("sin", wide, np.sin)
_unary("cos", wide, np.cos)
_unary("tan", uniform(-1.3, 1.3), np.tan)
_unary("asin", uniform(-0.9, 0.9), np.arcsin)
_unary("acos", uniform(-0.9, 0.9), np.arccos)
_unary("atan", wide, np.arctan)
_unary("sinh", wide, np.sinh)
_unary("cosh", wide, np.cosh)
_unary("tanh", wide, np.tanh)
_unary("asinh", wide, np.arcsinh)
_unary("acosh", uniform(1.2, 4.0), np.arccosh)
_unary("atanh", uniform(-0.9, 0.9), np.arctanh)
_unary("sigmoid", wide, special.expit)
_unary("relu", off_zero, lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)))
_unary("abs", off_zero, np.abs)
_unary("neg", wide, np.negative)
_unary("sign", off_zero, lambda x: np.where(np.isnan(x), 0, np.sign(x)).astype(x.dtype), grad="zero")
_unary("floor", grid, np.floor, grad="zero")
_unary("ceil", grid, np.ceil, grad="zero")
_unary("round", grid, np.round, grad="zero")
_unary("trunc", grid, np.trunc, grad="zero")
_unary("frac", grid, lambda x: x - np.trunc(x))
_unary("reciprocal", off_zero, lambda x: 1 / x)
_unary("square", wide, np.square)
_unary("erf", wide, special.erf)
_unary("erfc", wide, special.erfc)
for _name, _ref in (
    ("isnan", np.isnan),
    ("isinf", np.isinf),
    ("isfinite", np.isfinite),
    ("logical_not", np.logical_not),
):
    _unary(_name, wide, _ref, grad="none", inplace=_name == "logical_not")


def _row(
    name: str,
    call: Callable[..., Any],
    samples: Callable[..., Any],
    ref: Callable[..., Any],
    grad: str = "smooth",
    inplace: str | None = None,
    family: str = "pointwise",
) -> None:
    OPS.append(Op(name, call, samples, ref, grad=grad, family=family, inplace=inplace))


def _binary(
    name: str,
    ref: Callable[..., Any],
    *draws: Callable[..., np.ndarray],
    grad: str = "smooth",
    smooth: Callable[..., bool] | None = None,
    inplace: bool = True,
) -> None:
    _row(
        name,
        lambda T, x, y: getattr(T, name)(x, y),
        pointwise_samples(*(draws or (normal, normal)), smooth=smooth),
        ref,
        grad=grad,
        inplace=f"{name}_" if inplace else None,
        family="binary",
    )


def _apart(x: np.ndarray, y: np.ndarray) -> bool:
    return bool((np.abs(x - y) > 0.02).all())


def _quotient_off_integers(x: np.ndarray, y: np.ndarray) -> bool:
    q = x / y
    return bool((np.abs(q - np.round(q)) > 0.02).all())


_binary("add", np.add)
_binary("sub", np.subtract)
_binary("mul", np.multiply)
_binary("div", np.true_divide, normal, off_zero)
_binary("true_divide", np.true_divide, normal, off_zero)
_binary("floor_divide", np.floor_divide, wide, off_zero, grad="none", smooth=_quotient_off_integers)
_binary("pow", np.power, positive, normal)
_binary("atan2", np.arctan2, off_zero, off_zero)
_binary("maximum", np.maximum, smooth=_apart, inplace=False)
_binary("minimum", np.minimum, smooth=_apart, inplace=False)
_binary("fmod", np.fmod, wide, off_zero, smooth=_quotient_off_integers)
_binary("remainder", np.mod, wide, off_zero, smooth=_quotient_off_integers)
_binary("hypot", np.hypot, off_zero, off_zero)
_binary("logaddexp", np.logaddexp, inplace=False)
for _name, _ref in (
    ("eq", np.equal),
    ("ne", np.not_equal),
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
    ("logical_and", np.logical_and),
    ("logical_or", np.logical_or),
    ("logical_xor", np.logical_xor),
):
    _binary(_name, _ref, uniform(-2.5, 2.5), uniform(-2.5, 2.5), grad="none")

_row(
    "isclose",
    lambda T, x, y: T.isclose(x, y, rtol=0.1, atol=0.1),
    pointwise_samples(normal, normal),
    lambda x, y: np.isclose(x, y, rtol=0.1, atol=0.1),
    grad="none",
)
_row(
    "div_trunc",
    lambda T, x, y: T.div(x, y, rounding_mode="trunc"),
    pointwise_samples(wide, off_zero, smooth=_quotient_off_integers),
    lambda x, y: np.trunc(x / y),
    grad="zero",
)
_row(
    "div_floor",
    lambda T, x, y: T.div(x, y, rounding_mode="floor"),
    pointwise_samples(wide, off_zero, smooth=_quotient_off_integers),
    lambda x, y: np.floor(x / y),
    grad="zero",
)
_row(
    "add_alpha",
    lambda T, x, y, alpha: T.add(x, y, alpha=alpha),
    pointwise_samples(normal, normal, params=({"alpha": 0.5}, {"alpha": -2})),
    lambda x, y, alpha: x + alpha * y,
)
_row(
    "sub_alpha",
    lambda T, x, y, alpha: T.sub(x, y, alpha=alpha),
    pointwise_samples(normal, normal, params=({"alpha": 0.5},)),
    lambda x, y, alpha: x - alpha * y,
)
_row(
    "pow_scalar",
    lambda T, x, exponent: T.pow(x, exponent),
    pointwise_samples(off_zero, params=[{"exponent": e} for e in (0, 1, 2, 3, -1, -2)]),
    lambda x, exponent: x ** float(exponent),
    inplace="pow_",
)
_row(
    "pow_scalar_real",
    lambda T, x, exponent: T.pow(x, exponent),
    pointwise_samples(positive, params=[{"exponent": e} for e in (0.5, -0.5, 2.5)]),
    lambda x, exponent: x**exponent,
)
_row(
    "rpow_scalar",
    lambda T, x, base: T.pow(base, x),
    pointwise_samples(normal, params=[{"base": b} for b in (2, 0.5, 1)]),
    lambda x, base: np.power(float(base), x),
)


def _scalar(
    name: str, f: Callable[..., Any], draw: Callable[..., np.ndarray], values: tuple[Any, ...], **kw: Any
) -> None:
    """An operator expression with a Python number; the same expression is the reference."""
    _row(
        name,
        lambda T, x, c: f(x, c),
        pointwise_samples(draw, params=[{"c": v} for v in values]),
        lambda x, c: f(x, c),
        **kw,
    )


_scalar("x+c", lambda x, c: x + c, normal, (2, 0.5))
_scalar("c+x", lambda x, c: c + x, normal, (2, 0.5))
_scalar("x-c", lambda x, c: x - c, normal, (2, 0.5))
_scalar("c-x", lambda x, c: c - x, normal, (2, 0.5))
_scalar("x*c", lambda x, c: x * c, normal, (2, -0.5))
_scalar("c*x", lambda x, c: c * x, normal, (2, -0.5))
_scalar("x/c", lambda x, c: x / c, normal, (2, -0.5))
_scalar("c/x", lambda x, c: c / x, off_zero, (2, -0.5))
_scalar("x//c", lambda x, c: x // c, uniform(-3, 3, step=0.7), (0.7,), grad="none")
_scalar("x%c", lambda x, c: x % c, uniform(-3, 3, step=0.7), (0.7, -0.7))
_scalar("c%x", lambda x, c: c % x, uniform(1.1, 1.9), (5.9,), family="scalar")
_scalar("x**c", lambda x, c: x**c, positive, (2, 3.5))
_scalar("c**x", lambda x, c: c**x, normal, (2, 3.5))
_scalar("-x", lambda x, c: -x, normal, (0,))
_scalar("abs(x)", lambda x, c: abs(x), off_zero, (0,))
_scalar("x<c", lambda x, c: x < c, normal, (0.5,), grad="none")
_scalar("x==c", lambda x, c: x == c, normal, (1,), grad="none")
_scalar("c>=x", lambda x, c: c >= x, normal, (0,), grad="none")


def _clamp_ref(x: np.ndarray, lo: Any = None, hi: Any = None) -> np.ndarray:
    if lo is not None:
        x = np.maximum(x, lo)
    return x if hi is None else np.minimum(x, hi)


_row(
    "clamp",
    lambda T, x, min=None, max=None: T.clamp(x, min, max),
    pointwise_samples(
        uniform(-2, 2, avoid=(-0.5, 0.7)),
        params=({"min": -0.5}, {"max": 0.7}, {"min": -0.5, "max": 0.7}),
    ),
    lambda x, min=None, max=None: _clamp_ref(x, min, max),
    inplace="clamp_",
)
_row(
    "clamp_tensors",
    lambda T, x, lo, hi: T.clamp(x, lo, hi),
    pointwise_samples(
        uniform(-2, 2),
        uniform(-1.5, -0.2),
        uniform(0.2, 1.5),
        smooth=lambda x, lo, hi: _apart(x, lo) and _apart(x, hi),
    ),
    _clamp_ref,
    inplace="clamp_",
)
_row(
    "clamp_min",
    lambda T, x, y: T.clamp(x, min=y),
    pointwise_samples(normal, normal, smooth=_apart),
    np.maximum,
)
_row(
    "where",
    lambda T, c, x, y: T.where(c > 0, x, y),
    pointwise_samples(off_zero, normal, normal),
    lambda c, x, y: np.where(c > 0, x, y),
)
_row(
    "where_scalar",
    lambda T, x: T.where(x > 0, x, 0.25),
    pointwise_samples(off_zero),
    lambda x: np.where(x > 0, x, x.dtype.type(0.25)),
)
_row(
    "lerp",
    lambda T, x, y, weight: T.lerp(x, y, weight),
    pointwise_samples(normal, normal, params=({"weight": 0.3}, {"weight": 0.8})),
    lambda x, y, weight: x + weight * (y - x),
    inplace="lerp_",
)
_row(
    "lerp_tensor",
    lambda T, x, y, w: T.lerp(x, y, w),
    pointwise_samples(normal, normal, uniform(0, 1)),
    lambda x, y, w: x + w * (y - x),
    inplace="lerp_",
)
for _value in (1, 0.5):
    _row(
        f"addcmul_{_value}",
        lambda T, x, y, z, value=_value: T.addcmul(x, y, z, value=value),
        pointwise_samples(normal, normal, normal),
        lambda x, y, z, value=_value: x + value * y * z,
        inplace="addcmul_" if _value == 1 else None,
    )
    _row(
        f"addcdiv_{_value}",
        lambda T, x, y, z, value=_value: T.addcdiv(x, y, z, value=value),
        pointwise_samples(normal, normal, off_zero),
        lambda x, y, z, value=_value: x + value * y / z,
        inplace="addcdiv_" if _value == 1 else None,
    )
_row(
    "round_decimals",
    lambda T, x: T.round(x, decimals=1),
    pointwise_samples(uniform(-3, 3, step=0.05)),
    lambda x: np.round(x, 1),
    grad="zero",
)


def _masked_fill_samples(rng: np.random.Generator) -> Any:
    for s in pointwise_samples(normal, off_zero)(rng):
        # only cases in which the mask does not enlarge the result
        x, m = (a.array().shape for a in s.args)
        if np.broadcast_shapes(x, m) == x:
            yield Sample(s.args, {"value": 1.5})


_row(
    "masked_fill",
    lambda T, x, m, value: T.masked_fill(x, m > 0, value),
    _masked_fill_samples,
    lambda x, m, value: np.where(m > 0, x.dtype.type(value), x),
)
