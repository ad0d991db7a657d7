"""Losses on the device: values and gradients beside the CPU's; targets that are no class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import wgpu
from rgrad.nn import functional as F

SHAPES = [(3,), (64, 10), (5000, 7), (9000, 3), (3, 4, 7), (100, 3, 30, 4)]


def sides(shape: tuple[int, ...], ignored: float = 0.1, real: Any = np.float32) -> Any:
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape).astype(real)
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = np.array(rng.integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ()))
    target = np.where(rng.random(target.shape) < ignored, -100, target)
    weight = (rng.random(classes) + 0.1).astype(real)
    for device in ("cpu", "wgpu"):
        yield tuple(rgrad.tensor(a, device=device) for a in (x, target, weight))


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), rtol=3e-5, atol=1e-6)


@pytest.mark.rotate(take=12)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nll_and_cross_entropy(shape: tuple[int, ...], reduction: str, weighted: bool) -> None:
    for loss, more in ((F.nll_loss, {}), (F.cross_entropy, {}), (F.cross_entropy, {"label_smoothing": 0.1})):
        outs = []
        for x, target, weight in sides(shape):
            x.requires_grad_()
            y = loss(x, target, weight if weighted else None, reduction=reduction, **more)
            (g,) = rgrad.autograd.grad(y.sum() * 1.5, x)
            outs += [(y, g)]
        for a, b in zip(*outs, strict=True):
            assert a.shape == b.shape
            close(b, a)


@pytest.mark.needs("float64")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_nll_of_double_precision(shape: tuple[int, ...], reduction: str) -> None:
    outs = []
    for x, target, weight in sides(shape, real=np.float64):
        x.requires_grad_()
        y = F.cross_entropy(x, target, weight, reduction=reduction)
        outs += [(y, rgrad.autograd.grad(y.sum() * 1.5, x)[0])]
    for want, got in zip(*outs, strict=True):
        assert got.dtype == rgrad.float64
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), rtol=1e-13, atol=1e-15)


def test_layouts_and_targets_of_bytes() -> None:
    for x, target, _ in sides((12, 5), 0.0):
        want = F.nll_loss(x, target)
        close(F.nll_loss(x.t().contiguous().t(), target.to(rgrad.uint8)), want)
        close(F.nll_loss(x.repeat(1, 2)[:, :5], target.repeat(2)[:12]), want)


def test_nothing_but_ignored_targets() -> None:
    for x, target, _ in sides((4, 5)):
        mean = F.nll_loss(x, target * 0 - 100)
        assert mean.isnan().item()
        assert F.nll_loss(x, target * 0 - 100, reduction="sum").item() == 0
        assert F.nll_loss(x, target * 0 + 2, ignore_index=2, reduction="none").abs().sum().item() == 0


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_targets_that_are_no_class(reduction: str) -> None:
    x = rgrad.randn(4, 3, device="wgpu", requires_grad=True)
    for bad in (3, -1, 2**40):
        F.nll_loss(x, rgrad.tensor([0, bad, 1, 2], device="wgpu"), reduction=reduction)
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension 1 with size 3"):
            wgpu.synchronize()
    target = rgrad.tensor([0, 1, 1, 2])
    close(F.nll_loss(x, target.to("wgpu")), F.nll_loss(x.detach().cpu(), target))


@pytest.mark.parametrize(
    "name",
    [
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
    ],
)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_distances(name: str, reduction: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((30, 17)).astype(np.float32), rng.random((30, 17)).astype(np.float32)
    outs = []
    for device in ("cpu", "wgpu"):
        x = rgrad.tensor(a, device=device, requires_grad=True)
        y = getattr(F, name)(x, rgrad.tensor(b, device=device), reduction=reduction)
        outs += [(y, rgrad.autograd.grad(y.sum(), x)[0])]
    for w, g in zip(*outs, strict=True):
        close(g, w)


def test_binary_cross_entropy_refuses_what_is_no_probability() -> None:
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(rgrad.tensor([0.5, 1.5], device="wgpu"), rgrad.tensor([0.0, 1.0], device="wgpu"))
