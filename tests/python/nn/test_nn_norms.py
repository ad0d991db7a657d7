"""Layers that normalise: running statistics, evaluation, states, other devices, batches, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgrad
from rgrad import nn

F = nn.functional


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def standardized(x: np.ndarray, axes: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_batch_norm_keeps_statistics_and_uses_them_in_evaluation(device: str) -> None:
    layer = nn.BatchNorm2d(3, momentum=0.25, device=device)
    mean, var = np.zeros(3), np.ones(3)
    for step in range(3):
        x = numbers(4, 3, 5, 2, seed=step) * 3 + 1
        y = layer(rgrad.tensor(x, dtype=rgrad.float32, device=device))
        np.testing.assert_allclose(y.detach().cpu().numpy(), standardized(x, (0, 2, 3)), rtol=1e-4, atol=1e-5)
        mean = 0.75 * mean + 0.25 * x.mean((0, 2, 3))
        var = 0.75 * var + 0.25 * x.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.running_mean.cpu().numpy(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.cpu().numpy(), var, rtol=1e-5)
    assert int(layer.num_batches_tracked) == 3
    layer.eval()
    see = (3, 1, 1)
    got = layer(rgrad.tensor(x, dtype=rgrad.float32, device=device)).detach().cpu().numpy()
    np.testing.assert_allclose(got, (x - mean.reshape(see)) / np.sqrt(var.reshape(see) + 1e-5), rtol=1e-4, atol=1e-5)
    assert int(layer.num_batches_tracked) == 3


def test_without_momentum_all_batches_count_alike() -> None:
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [numbers(6, 2, seed=k) for k in range(4)]
    for x in batches:
        layer(rgrad.tensor(x, dtype=rgrad.float32))
    np.testing.assert_allclose(
        layer.running_mean.numpy(), np.mean([x.mean(0) for x in batches], 0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(layer.running_var.numpy(), np.mean([x.var(0, ddof=1) for x in batches], 0), rtol=1e-4)


def test_instance_norm_keeps_the_mean_of_the_statistics_of_a_batch() -> None:
    layer = nn.InstanceNorm1d(3, track_running_stats=True)
    x = numbers(4, 3, 7)
    y = layer(rgrad.tensor(x, dtype=rgrad.float32))
    np.testing.assert_allclose(y.numpy(), standardized(x, (2,)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * x.mean((0, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.9 + 0.1 * x.var(2, ddof=1).mean(0), rtol=1e-4)


def test_states() -> None:
    layer = nn.BatchNorm1d(2)
    layer(rgrad.randn(4, 2))
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(layer.state_dict()) == names
    assert [n for n, _ in layer.named_parameters()] == names[:2]
    other = nn.BatchNorm1d(2)
    other.load_state_dict(layer.state_dict())
    assert all(rgrad.equal(a, b) for a, b in zip(layer.state_dict().values(), other.state_dict().values(), strict=True))
    other.reset_running_stats()
    assert other.running_mean.tolist() == [0.0, 0.0]
    assert not list(nn.BatchNorm1d(2, affine=False, track_running_stats=False).state_dict())
    assert list(nn.LayerNorm((2, 3), bias=False).state_dict()) == ["weight"]
    double = nn.GroupNorm(2, 4).double()
    assert double.weight.dtype == rgrad.float64
    assert nn.BatchNorm2d(3).double().num_batches_tracked.dtype == rgrad.int64


def test_the_mean_of_large_numbers_does_not_cancel(device: str) -> None:
    x = (numbers(8, 40, 33) + 1e4).astype(np.float32)
    t = rgrad.tensor(x, device=device)
    wide = x.astype(np.float64)
    for got, want in [
        (F.layer_norm(t, (33,)), standardized(wide, (2,))),
        (F.layer_norm(t, (40, 33)), standardized(wide, (1, 2))),
        (F.group_norm(t, 4), standardized(wide.reshape(8, 4, 10, 33), (2, 3)).reshape(x.shape)),
        (F.batch_norm(t, None, None, training=True), standardized(wide, (0, 2))),
        (F.batch_norm(t[:, :, 0], None, None, training=True), standardized(wide[:, :, 0], (0,))),
        (F.instance_norm(t), standardized(wide, (2,))),
    ]:
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-4, atol=2e-5)


def test_first_elements_far_from_the_mean() -> None:
    # The sums are taken of distances from the first elements: they must not spoil the variance.
    x = numbers(4, 3, 70_000).astype(np.float32)
    x[:, :, :64] = 1e4
    wide = x.astype(np.float64)
    for shape, axes in [((4, 3, 70_000), (2,)), ((4, 3, 70_000), (0, 2)), ((12, 70_000), (1,)), ((12, 70_000), (0,))]:
        t, w = rgrad.tensor(x.reshape(shape)), wide.reshape(shape)
        if axes == (0, 2) or axes == (0,):
            got = F.batch_norm(t, None, None, training=True)
        else:
            got = F.layer_norm(t, shape[-1:])
        np.testing.assert_allclose(got.numpy(), standardized(w, axes), rtol=1e-4, atol=1e-5)


def test_nan_and_infinity_stay_in_what_they_are_normalised_with() -> None:
    for bad in (np.nan, np.inf):
        x = numbers(3, 20)
        x[1, 4] = bad
        y = F.layer_norm(rgrad.tensor(x), (20,)).numpy()
        assert np.isnan(y[1]).all()
        assert np.isfinite(y[[0, 2]]).all()
        y = F.batch_norm(rgrad.tensor(x), None, None, training=True).numpy()
        assert np.isnan(y[:, 4]).all()
        assert np.isfinite(np.delete(y, 4, 1)).all()


def each(f: Any, *args: Any) -> Any:
    return rgrad.stack([f(*of) for of in zip(*args, strict=True)])


@pytest.mark.parametrize("shared", [True, False])
def test_batches(shared: bool) -> None:
    x = rgrad.tensor(numbers(3, 4, 6, 5))
    w, b = (rgrad.tensor(numbers(3, 6, seed=k)) for k in (1, 2))
    last = rgrad.tensor(numbers(3, 5, seed=3))
    functions = [
        (lambda x, w, b, v: F.group_norm(x, 2, w, b)),
        (lambda x, w, b, v: F.batch_norm(x, None, None, w, b, training=True)),
        (lambda x, w, b, v: F.batch_norm(x, w, w * w, w, b)),
        (lambda x, w, b, v: F.instance_norm(x, None, None, w, b)),
        (lambda x, w, b, v: F.layer_norm(x, (5,), v, v)),
        (lambda x, w, b, v: F.rms_norm(x, (5,), v)),
    ]
    for f in functions:
        if shared:
            got = rgrad.func.vmap(lambda x, f=f: f(x, w[0], b[0], last[0]))(x)
            want = each(lambda x, f=f: f(x, w[0], b[0], last[0]), x)
        else:
            got, want = rgrad.func.vmap(f)(x, w, b, last), each(f, x, w, b, last)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-12)


def test_running_statistics_are_not_written_for_a_batch() -> None:
    mean, var = rgrad.zeros(2), rgrad.ones(2)
    with pytest.raises((RuntimeError, ValueError)):
        rgrad.func.vmap(lambda x: F.batch_norm(x, mean, var, training=True))(rgrad.ones(3, 4, 2))
    assert mean.tolist() == [0.0, 0.0]


def test_errors(device: str) -> None:
    x = rgrad.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match=r"normalized_shape=\[4\], expected input with shape \[\*, 4\]"):
        F.layer_norm(x, (4,))
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F.group_norm(x, 2)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(x, rgrad.ones(2, device=device), rgrad.ones(3, device=device))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(3, device=device)(x[:1])
    with pytest.raises(ValueError, match="expected 4D input"):
        nn.BatchNorm2d(3)(x)
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.layer_norm(x.int(), (3,))


def test_layers_train(device: str) -> None:
    rgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 1)).to(device)
    x = rgrad.tensor(numbers(16, 4), dtype=rgrad.float32, device=device)
    target = (x[:, :1] * x[:, 1:2]).detach()
    optimizer = rgrad.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
