"""Rows of the operation table: activations, losses of one element, and what else computes element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from op_kit import Op, normal, pointwise_samples, uniform

OPS: list[Op] = []


def _add(
    name: str,
    call: Callable[..., Any],
    ref: Callable[..., Any],
    *draws: Callable[..., np.ndarray],
    grad: str = "smooth",
    smooth: Callable[..., bool] | None = None,
    tol: float = 1.0,
) -> None:
    samples = pointwise_samples(*(draws or (normal,)), smooth=smooth)
    OPS.append(Op(name, call, samples, ref, grad=grad, family="activation", tol=tol))


def _functional(name: str, ref: Callable[..., Any], draw: Callable[..., np.ndarray], *args: Any, **kw: Any) -> None:
    """A function of `nn.functional` with its numbers."""
    tol = kw.pop("tol", 1.0)
    label = kw.pop("label", name)
    _add(label, lambda T, x: getattr(T.nn.functional, name)(x, *args, **kw), ref, draw, tol=tol)


def _off(*kinks: float) -> Callable[..., np.ndarray]:
    return uniform(-4.0, 4.0, avoid=kinks)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, x)


def _far(edge: float) -> Callable[..., bool]:
    """Whether the difference of two arrays is far from zero and from where a loss changes its formula."""
    return lambda x, y: bool((np.abs(x - y) > 0.02).all() and (np.abs(np.abs(x - y) - edge) > 0.02).all())


_functional("celu", lambda x: np.where(x > 0, x, 0.8 * np.expm1(x / 0.8)), _off(0.0), 0.8)
_functional("elu", lambda x: np.where(x > 0, x, 0.8 * np.expm1(x)), _off(0.0), 0.8)
_functional("gelu", lambda x: x * special.ndtr(x), normal, tol=2)
_functional(
    "gelu",
    lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    normal,
    approximate="tanh",
    label="gelu_tanh",
    tol=2,
)
_functional("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0), _off(-0.5, 0.5), 0.5)
_functional("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), _off(-3.0, 3.0))
_functional("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), _off(-3.0, 3.0))
_functional("hardtanh", lambda x: np.clip(x, -1, 1), _off(-1.0, 1.0))
_functional("leaky_relu", lambda x: np.where(x > 0, x, 0.1 * x), _off(0.0), 0.1)
_functional("logsigmoid", lambda x: -_softplus(-x), normal)
_functional("mish", lambda x: x * np.tanh(_softplus(x)), normal, tol=2)
_functional("silu", lambda x: x * special.expit(x), normal, tol=2)
_functional("softplus", lambda x: _softplus(1.3 * x) / 1.3, normal, 1.3, 10.0, tol=2)
_functional("softsign", lambda x: x / (1 + np.abs(x)), _off(0.0))
_functional("softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), _off(-0.5, 0.5), 0.5)
_functional("threshold", lambda x: np.where(x > 0.4, x, 0.1), _off(0.4), 0.4, 0.1)

_add("logit", lambda T, x: T.logit(x), special.logit, uniform(0.1, 0.9), tol=4)
_add("nan_to_num", lambda T, x: T.nan_to_num(x), np.nan_to_num)
_add("sgn", lambda T, x: T.sgn(x), np.sign, uniform(-2, 2, avoid=(0.0,)), grad="zero")
_add("angle", lambda T, x: T.angle(x), lambda x: np.angle(x).astype(x.dtype), uniform(-2, 2, avoid=(0.0,)), grad="zero")
_add("isposinf", lambda T, x: T.isposinf(x), np.isposinf, grad="none")
_add("isneginf", lambda T, x: T.isneginf(x), np.isneginf, grad="none")

off_zero = uniform(-2.0, 2.0, avoid=(0.0,))
_add("copysign", lambda T, x, y: T.copysign(x, y), np.copysign, off_zero, off_zero)
_add("fmax", lambda T, x, y: T.fmax(x, y), np.fmax, normal, normal, smooth=_far(9))
_add("fmin", lambda T, x, y: T.fmin(x, y), np.fmin, normal, normal, smooth=_far(9))
_add("xlogy", lambda T, x, y: T.xlogy(x, y), special.xlogy, off_zero, uniform(0.2, 3.0))
_add("rsub", lambda T, x, y: T.rsub(x, y), lambda x, y: y - x, normal, normal)


def _loss(name: str, ref: Callable[..., Any], *draws: Callable[..., np.ndarray], edge: float = 9.0, **kw: Any) -> None:
    """The loss of each element. Inputs of one shape: another one is warned of."""
    samples = pointwise_samples(*draws, smooth=_far(edge))
    OPS.append(
        Op(
            f"{name}_each",
            lambda T, x, y: getattr(T.nn.functional, name)(x, y, reduction="none", **kw),
            lambda rng: (s for s in samples(rng) if s.args[0].array().shape == s.args[1].array().shape),
            ref,
            family="loss",
        )
    )


def _smooth_l1(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    d = np.abs(x - y)
    return np.where(d < 1.7, d * d / 3.4, d - 0.85)


_loss("mse_loss", lambda x, y: (x - y) ** 2, normal, normal)
_loss("smooth_l1_loss", _smooth_l1, normal, normal, edge=1.7, beta=1.7)
_loss("huber_loss", lambda x, y: 1.7 * _smooth_l1(x, y), normal, normal, edge=1.7, delta=1.7)
_loss(
    "binary_cross_entropy_with_logits",
    lambda x, y: (1 - y) * x + _softplus(-x),
    normal,
    uniform(0.1, 0.9),
)
