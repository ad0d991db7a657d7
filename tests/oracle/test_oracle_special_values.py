"""Special and huge values in gradients, tangents and second derivatives of reductions and losses beside torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402 - torch must be there first

# torch compiles rules of forward mode when it first needs them, and warns of how it does.
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")]

inf, nan = math.inf, math.nan
ROWS: dict[str, list[float]] = {
    "plain": [1.0, -2.0, 3.0, 0.5],
    "zero": [0.0, 0.0, 0.0, 0.0],
    "one zero": [0.0, 2.0, 3.0, -1.0],
    "-0": [-0.0, 0.0, -0.0, 1.0],
    "equal": [2.0, 2.0, 2.0, 2.0],
    "ties": [3.0, 1.0, 3.0, 2.0],
    "inf": [inf, 1.0, 2.0, 3.0],
    "-inf": [-inf, 1.0, 2.0, 3.0],
    "all -inf": [-inf] * 4,
    "all inf": [inf] * 4,
    "inf -inf": [inf, -inf, 1.0, 2.0],
    "nan": [nan, 1.0, 2.0, 3.0],
    "nan late": [1.0, 2.0, nan, 0.0],
    "all nan": [nan] * 4,
    "1e8": [1e8] * 4,
    "1e38": [1e38] * 4,
}
F: Callable[[Any], Any] = lambda T: T.nn.functional  # noqa: E731
Y: Callable[[Any, Any], Any] = lambda T, x: T.tensor([1.0, 0.0, 0.5, -1.0], dtype=x.dtype)  # noqa: E731
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda T, x: x.sum(),
    "mean": lambda T, x: x.reshape(2, 2).mean(1),
    "nansum": lambda T, x: x.nansum(),
    "amax": lambda T, x: x.amax(),
    "amax of dims": lambda T, x: x.reshape(2, 1, 2).amax((0, 2)),
    "amin": lambda T, x: x.reshape(2, 2).amin(1),
    "aminmax": lambda T, x: sum(T.aminmax(x)),
    "max": lambda T, x: x.max(),
    "min": lambda T, x: x.min(),
    "max of dim": lambda T, x: x.reshape(2, 2).max(1)[0],
    "median": lambda T, x: x.median(),
    "logsumexp": lambda T, x: x.logsumexp(0),
    "logsumexp of dims": lambda T, x: x.reshape(2, 2).logsumexp((0, 1)),
    "logsumexp of rows": lambda T, x: x.reshape(2, 2).logsumexp(1, keepdim=True),
    "norm of order inf": lambda T, x: T.norm(x, inf),
    "cumsum": lambda T, x: x.cumsum(0),
    "cummax": lambda T, x: x.cummax(0)[0],
    "cummin": lambda T, x: x.cummin(0)[0],
    "log_softmax": lambda T, x: x.log_softmax(0),
    "softmin": lambda T, x: F(T).softmin(x, 0),
    "relu6": lambda T, x: F(T).relu6(x),
    "hardtanh": lambda T, x: F(T).hardtanh(x),
    "renorm": lambda T, x: T.renorm(x.reshape(2, 2), 1, 0, 1e300 if x.dtype == T.float64 else 1e38),
    "scatter_reduce": lambda T, x: x.new_zeros(2).scatter_reduce(0, T.tensor([0, 0, 1, 1]), x, "amax"),
    "l1_loss": lambda T, x: F(T).l1_loss(x, Y(T, x)),
    "huber_loss": lambda T, x: F(T).huber_loss(x, Y(T, x), reduction="none"),
    "kl_div": lambda T, x: F(T).kl_div(x, Y(T, x).abs(), reduction="sum"),
    "cross_entropy": lambda T, x: F(T).cross_entropy(x.reshape(2, 2), T.tensor([1, 0])),
    "nll_loss": lambda T, x: F(T).nll_loss(x.reshape(2, 2), T.tensor([1, 0]), reduction="none"),
}
# Second derivatives that are tensors without memory in torch, not recorded here, or (renorm) nan there though nothing
# is scaled.
NOT_IN_TORCH = {"l1_loss", "norm of order inf", "huber_loss", "renorm"}


def weights(T: Any, r: Any) -> Any:
    return T.linspace(0.7, 1.9, max(r.numel(), 1), dtype=r.dtype)[: r.numel()].reshape(r.shape)


def direction(T: Any, x: Any) -> Any:
    return T.tensor([1.0, -0.5, 2.0, 0.25], dtype=x.dtype)


def gradient(T: Any, f: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    r = f(T, x)
    (g,) = T.autograd.grad(r, x, weights(T, r))
    return g.tolist()


def tangent(T: Any, f: Any, x: Any) -> Any:
    return T.func.jvp(lambda v: f(T, v), (x,), (direction(T, x),))[1].reshape(-1).tolist()


def second(T: Any, f: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    r = f(T, x)
    (g,) = T.autograd.grad(r, x, weights(T, r), create_graph=True)
    if not g.requires_grad:
        return None
    (h,) = T.autograd.grad(g, x, direction(T, x), allow_unused=True)
    return None if h is None else h.tolist()


KINDS: dict[str, Any] = {"gradient": gradient, "tangent": tangent, "second": second}


def same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(p, q, tolerance) for p, q in zip(a, b, strict=True))
    if a is None or b is None:
        # No derivative, or one of zeros.
        return a is b or not any(a or b)
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return (math.isnan(a) and math.isnan(b)) or a == b
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-30)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_special_values(name: str, dtype: str) -> None:
    for kind, derivative in KINDS.items():
        if kind == "second" and name in NOT_IN_TORCH:
            continue
        for row, values in ROWS.items():
            made = [derivative(T, CALLS[name], T.tensor(values, dtype=getattr(T, dtype))) for T in (rgrad, torch)]
            if name.startswith("logsumexp") and row == "all -inf":
                # Zeros, where torch has nan (docs/differences.md).
                assert not any(made[0] or []), (kind, row, made)
                continue
            assert same(*made, 2e-5 if dtype == "float32" else 1e-10), (kind, row, made)


@pytest.mark.parametrize("name", sorted(NOT_IN_TORCH))
def test_what_is_not_compared_differs(name: str) -> None:
    def told(T: Any, values: list[float]) -> Any:
        try:
            return second(T, CALLS[name], T.tensor(values, dtype=T.float64))
        except RuntimeError:
            return [math.inf]  # torch's own error

    assert any(not same(told(rgrad, row), told(torch, row), 1e-10) for row in ROWS.values())


def test_tangents_of_large_equal_numbers_are_means() -> None:
    for dtype in (rgrad.float32, rgrad.float64):
        for size in (1.0, 1e8, 1e38):
            x = rgrad.full((2,), size, dtype=dtype)
            made = rgrad.func.jvp(lambda v: v.logsumexp(0), (x,), (rgrad.ones(2, dtype=dtype),))[1]
            assert made.item() == 1.0


def test_norms_of_tiny_and_huge_numbers_have_gradients() -> None:
    for size in (1e-20, 1e-12, 1.0, 1e19, 1e38):
        x = rgrad.full((4,), size, requires_grad=True)
        rgrad.norm(x, 3).backward()
        assert x.grad is not None
        assert x.grad.tolist() == pytest.approx([4 ** (-2 / 3)] * 4, rel=1e-5)


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("size", [1e18, 1e19, 1e25, 1e38])
def test_deviations_whose_squares_are_beyond_float32(size: float, correction: int) -> None:
    rows = [[size, -size, size / 2], [1.0, 2.0, 4.0], [size, size, size], [float("nan"), size, size]]

    def made(T: Any) -> list[Any]:
        x = T.tensor(rows)
        grad = T.func.grad(lambda x: x.std(1, correction=correction)[:2].sum())(x)[:2]
        std, mean = T.std_mean(x, 1, correction=correction)
        return [x.std(1, correction=correction), std, mean, grad]

    for mine, theirs in zip(made(rgrad), made(torch), strict=True):
        assert np.allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, equal_nan=True)
