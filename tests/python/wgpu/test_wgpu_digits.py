"""The digits example on wgpu: from one seed the same gradients, the same accuracy, and few command buffers."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rgrad
from loading import load
from op_kit import to_numpy
from rgrad import nn

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")
pytest.importorskip("tqdm")


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    return load("examples/digits.py")


def first_step(digits: ModuleType, device: str) -> tuple[float, list[Any]]:
    """Loss and gradients of the first batch, dropout included."""
    rgrad.manual_seed(0)
    train, _ = digits.load_data(0, device)
    model = digits.make_model().to(device)
    x, y = train[:32]
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    assert {p.grad.device.type for p in model.parameters()} == {device}
    return loss.item(), [to_numpy(p.grad) for p in model.parameters()]


def test_the_first_gradients_agree(digits: ModuleType) -> None:
    loss, grads = first_step(digits, "cpu")
    there, there_grads = first_step(digits, "wgpu")
    assert there == pytest.approx(loss, rel=1e-5)
    for a, b in zip(grads, there_grads, strict=True):
        assert np.abs(a).max() > 0
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-4 * np.abs(a).max())


def test_the_accuracies_agree_to_one_percent(digits: ModuleType) -> None:
    accuracies = []
    for device in ("cpu", "wgpu"):
        rgrad.manual_seed(0)
        train, test = digits.load_data(0, device)
        model = digits.make_model().to(device)
        args = argparse.Namespace(seed=0, batch_size=32, lr=2e-3, epochs=6, device=device)
        accuracies.append(digits.train(model, train, test, args)["test"][-1])
    assert accuracies[0] > 0.9
    assert accuracies[1] == pytest.approx(accuracies[0], abs=0.01)


def test_a_training_step_submits_at_most_three_command_buffers(digits: ModuleType) -> None:
    train, _ = digits.load_data(0, "wgpu")
    model = digits.make_model().to("wgpu")
    optimizer = rgrad.optim.Adam(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()

    def step(k: int) -> float:
        x, y = train[32 * k : 32 * k + 32]
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())  # waits: a step alone, with everything that it costs

    step(0)
    rgrad.wgpu.synchronize()
    before = rgrad._core._wgpu_counts()[0]
    losses = [step(k) for k in range(1, 11)]
    rgrad.wgpu.synchronize()
    assert rgrad._core._wgpu_counts()[0] - before <= 10 * 3
    assert np.isfinite(losses).all()


def test_the_example_runs_on_wgpu(digits: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reached = digits.main(["--device", "wgpu", "--epochs", "3", "--out", str(tmp_path)])
    assert reached > 0.8
    assert "loads back, same predictions" in capsys.readouterr().out
    assert rgrad.load(tmp_path / "digits.pt", map_location="cpu")["3.bias"].device.type == "cpu"
    assert rgrad.load(tmp_path / "digits.pt")["3.bias"].is_wgpu
