"""Gradients that equal elements share: their number may be larger than any number of the elements' type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rgrad
from rgrad import Tensor

N = 70_000
TIES: dict[str, Callable[[Tensor], Tensor]] = {
    "amax": lambda x: x.amax(),
    "amax of a dim": lambda x: x.amax(0),
    "amin": lambda x: x.amin(),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "aminmax": lambda x: x.aminmax()[0] + x.aminmax()[1],
    "median": lambda x: x.median(),
    "norm of infinity": lambda x: x.norm(float("inf")),
    "norm of minus infinity": lambda x: x.norm(-float("inf")),
    "mean": lambda x: x.mean(),
    "nanmean": lambda x: x.nanmean(),
    "mse_loss": lambda x: rgrad.nn.functional.l1_loss(x, x.detach() - 1),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(0)[:100].sum() * 1000,
}


@pytest.mark.parametrize("dtype", [rgrad.float16, rgrad.bfloat16])
@pytest.mark.parametrize("name", TIES)
def test_each_gets_its_share(name: str, dtype: rgrad.dtype, device: str) -> None:
    x = rgrad.full((N,), 2.0).to(dtype).to(device).requires_grad_()
    exact = x.detach().float().requires_grad_()
    TIES[name](x).backward()
    TIES[name](exact).backward()
    assert x.grad is not None
    assert exact.grad is not None
    rgrad.testing.assert_close(x.grad.float().cpu(), exact.grad.cpu(), rtol=0.05, atol=2**-24)
    assert (x.grad[:100] != 0).all()


@pytest.mark.parametrize("name", ["amax", "amin", "max", "norm of infinity"])
def test_tangents(name: str, device: str) -> None:
    x = rgrad.full((N,), 2.0).half().to(device)
    _, t = rgrad.func.jvp(TIES[name], (x,), (rgrad.full_like(x, 3.0),))
    assert float(t) == pytest.approx(3.0, rel=0.01)
