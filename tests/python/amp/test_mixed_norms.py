"""Norms of 16-bit elements with float32 parameters: computed in float32, with a result in the elements' dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rgrad
from rgrad import Tensor, nn

F = nn.functional
HALVES = [rgrad.bfloat16, rgrad.float16]


def batch(x: Tensor, p: list[Tensor], training: bool) -> Tensor:
    return F.batch_norm(x, p[2], p[3], p[0], p[1], training)


# Of an input of shape (4, 6, 5, 3), and vectors of 6 elements.
NORMS: dict[str, Callable[[Tensor, list[Tensor]], Tensor]] = {
    "batch": lambda x, p: batch(x, p, True),
    "batch by given statistics": lambda x, p: batch(x, p, False),
    "batch of channels behind": lambda x, p: batch(x.contiguous(memory_format=rgrad.channels_last), p, True),
    "batch without weight": lambda x, p: F.batch_norm(x, p[2], p[3], training=True),
    "group": lambda x, p: F.group_norm(x, 3, p[0], p[1]),
    "instance": lambda x, p: F.instance_norm(x, p[2], p[3], p[0], p[1]),
    "layer": lambda x, p: F.layer_norm(x.transpose(1, 3), (6,), p[0], p[1]),
    "layer without bias": lambda x, p: F.layer_norm(x.transpose(1, 3), (6,), p[0]),
}


def drawn(device: str, dtype: rgrad.dtype) -> tuple[Tensor, list[Tensor], Tensor]:
    """An input that `dtype` has exactly, parameters and statistics of float32, and a gradient of the result."""
    rgrad.manual_seed(5)
    x, g = ((rgrad.randn(4, 6, 5, 3) * 3 + 1).to(dtype).to(device) for _ in range(2))
    p = [(rgrad.rand(6) + 0.5).to(device) for _ in range(4)]
    return x, p, g


def run(name: str, x: Tensor, p: list[Tensor], g: Tensor) -> tuple[Tensor, list[Tensor | None], list[Tensor]]:
    x, p = x.detach().clone().requires_grad_(), [t.clone() for t in p]
    for t in p[:2]:
        t.requires_grad_()
    y = NORMS[name](x, p)
    y.backward((g.transpose(1, 3) if y.shape != g.shape else g).to(y.dtype))
    return y.detach(), [x.grad, p[0].grad, p[1].grad], p[2:]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", NORMS)
def test_they_are_rounded_once(name: str, dtype: rgrad.dtype, device: str) -> None:
    x, p, g = drawn(device, dtype)
    y, grads, statistics = run(name, x, p, g)
    wanted, exact, running = run(name, x.float(), p, g.float())
    assert y.dtype == dtype
    assert rgrad.equal(y.cpu(), wanted.to(dtype).cpu())
    for got, right in zip(grads, exact, strict=True):
        assert (got is None) == (right is None)
        if got is not None and right is not None:
            assert got.dtype == (dtype if got.shape == x.shape else rgrad.float32)
            rgrad.testing.assert_close(got.cpu(), right.to(got.dtype).cpu(), rtol=1e-5, atol=1e-5)
    for got, right in zip(statistics, running, strict=True):
        assert got.dtype == rgrad.float32
        rgrad.testing.assert_close(got.cpu(), right.cpu())


@pytest.mark.parametrize("name", NORMS)
def test_second_derivatives_and_tangents(name: str, device: str) -> None:
    x, p, g = drawn(device, rgrad.bfloat16)

    def penalty(x: Tensor) -> Tensor:
        x, weights = x.detach().requires_grad_(), [t.clone() for t in p]
        weights[0].requires_grad_()
        y = NORMS[name](x, weights)
        (gx,) = rgrad.autograd.grad(
            y, x, (g.transpose(1, 3) if y.shape != g.shape else g).to(y.dtype), create_graph=True
        )
        return rgrad.autograd.grad(gx.float().square().sum(), x)[0]

    # By given statistics the gradient does not depend on the input.
    if name != "batch by given statistics":
        got, wanted = penalty(x), penalty(x.float())
        assert got.dtype == rgrad.bfloat16
        near = float(wanted.abs().max()) * 2**-6
        rgrad.testing.assert_close(got.float().cpu(), wanted.cpu(), rtol=0.02, atol=near)

    def tangent(x: Tensor) -> Tensor:
        return rgrad.func.jvp(lambda x: NORMS[name](x, [t.clone() for t in p]), (x,), (g.to(x.dtype),))[1]

    got, wanted = tangent(x), tangent(x.float())
    assert got.dtype == rgrad.bfloat16
    rgrad.testing.assert_close(got.float().cpu(), wanted.cpu(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", ["batch without weight", "batch by given statistics", "group", "layer"])
def test_vmap(name: str, batched: bool, device: str) -> None:
    x, p, _ = drawn(device, rgrad.bfloat16)
    xs = rgrad.stack([x, x * 2])
    weights = rgrad.stack([p[0], p[0] * 3]) if batched else p[0]

    def call(x: Tensor, w: Tensor) -> Tensor:
        return NORMS[name](x, [w, p[1], p[2].clone(), p[3].clone()])

    if name == "batch without weight":
        # Running statistics would be written for each slice.
        def call(x: Tensor, w: Tensor) -> Tensor:
            return F.batch_norm(x, None, None, w, p[1], training=True)

    got = rgrad.vmap(call, in_dims=(0, 0 if batched else None))(xs, weights)
    wanted = rgrad.stack([call(x, weights[i] if batched else weights) for i, x in enumerate(xs)])
    assert got.dtype == rgrad.bfloat16
    assert rgrad.equal(got.cpu(), wanted.cpu())


@pytest.mark.parametrize("dtype", HALVES)
def test_a_network_under_autocast(dtype: rgrad.dtype, device: str) -> None:
    rgrad.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.Flatten(),
        nn.Linear(8 * 4 * 4, 16), nn.LayerNorm(16), nn.Linear(16, 4),
    ).to(device)  # fmt: skip
    x = rgrad.randn(5, 3, 8, 8).to(device)
    with rgrad.autocast(rgrad.device(device).type, dtype):
        y = net(x)
    assert y.dtype == dtype
    y.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == rgrad.float32 for p in net.parameters())
    rgrad.testing.assert_close(y.float().cpu(), net(x).detach().cpu(), rtol=0.1, atol=0.1)


BAD: dict[str, tuple[Any, Any, str]] = {
    "float64 beside bfloat16": (rgrad.bfloat16, (rgrad.float64, rgrad.float64), "BFloat16, got Double"),
    "float32 and bfloat16": (rgrad.bfloat16, (rgrad.float32, rgrad.bfloat16), "Float, got BFloat16"),
    "float64 beside float32": (rgrad.float32, (rgrad.float64, rgrad.float64), "Float, got Double"),
    "float32 beside float64": (rgrad.float64, (rgrad.float32, rgrad.float32), "Double, got Float"),
}


@pytest.mark.parametrize("case", BAD)
def test_other_mixtures_are_refused(case: str) -> None:
    dtype, params, said = BAD[case]
    x, (w, b) = rgrad.ones(2, 4, dtype=dtype), (rgrad.ones(4, dtype=d) for d in params)
    for call in (
        lambda: F.layer_norm(x, (4,), w, b),
        lambda: F.group_norm(x, 2, w, b),
        lambda: F.batch_norm(x, None, None, w, b, training=True),
    ):
        with pytest.raises(RuntimeError, match=f"mixed dtype .*{said}"):
            call()
