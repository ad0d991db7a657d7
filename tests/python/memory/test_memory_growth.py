"""Memory while a model is tested: what tutorials say of graphs that are kept, `no_grad`, `detach` and `item` holds."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import rgrad as torch
from rgrad import _core, nn

BATCH, WIDTH, STEPS = 512, 256, 6
ACTIVATION = 4 * BATCH * WIDTH


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, WIDTH)
    )


def growth(step: Callable[[Any], Any]) -> list[float]:
    """Bytes held after each step, in activations above those before the first; what a step gives is kept."""
    data = [torch.randn(BATCH, WIDTH) for _ in range(STEPS)]
    kept: list[Any] = []
    gc.collect()
    before = _core.memory_allocated()
    held = []
    for x in data:
        kept.append(step(x))
        held.append((_core.memory_allocated() - before) / ACTIVATION)
    return held


@pytest.mark.parametrize("fused", [True, False])
def test_losses_that_are_kept_keep_their_graphs(fused: bool) -> None:
    net, loss = model(), nn.MSELoss()
    with torch.fusion(fused):
        held = growth(lambda x: loss(net(x), x))
    assert held[-1] - held[0] > 2 * (STEPS - 1)


ENDS: dict[str, Callable[[Any], Any]] = {
    "item": lambda loss: loss.item(),
    "detach": lambda loss: loss.detach(),
    "float": float,
    "backward": lambda loss: loss.backward() or loss,
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_graph_frees_it(end: str, fused: bool) -> None:
    net, loss = model(), nn.MSELoss()
    with torch.fusion(fused):
        loss(net(torch.ones(BATCH, WIDTH)), torch.zeros(BATCH, WIDTH)).backward()  # gradients are there from now on
        held = growth(lambda x: ENDS[end](loss(net(x), x)))
    if end == "detach" and fused:
        # A detached loss is a pending value like any other; what it alone keeps is computed when memory is asked for.
        assert held[-1] < 2.5
    else:
        assert held[-1] - held[0] < 0.1


STEP: dict[str, Callable[[Any, Any], Any]] = {
    "out of place": lambda x, w: ((x @ w) + 1).square().mean(),
    "in place": lambda x, w: (x @ w).add_(1).square().mean(),
    "held for a while": lambda x, w: [y := (x @ w) + 1, y.square().mean()][1],
}


@pytest.mark.parametrize("device", ["cpu", pytest.param("wgpu", marks=pytest.mark.wgpu)])
@pytest.mark.parametrize("name", STEP)
def test_pending_results_keep_no_inputs_that_nobody_else_wants(name: str, device: str) -> None:
    w = torch.eye(WIDTH, device=device)
    data = [torch.ones(BATCH, WIDTH, device=device) for _ in range(STEPS)]
    memory = _core.memory_allocated if device == "cpu" else torch.wgpu.memory_allocated
    kept = [STEP[name](data[0], w)]
    first = memory()
    kept.extend(STEP[name](x, w) for x in data[1:])
    assert memory() - first <= 2 * ACTIVATION
    assert [k.item() for k in kept] == [4.0] * STEPS


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("mode", ["no_grad", "set_grad_enabled", "inference_mode", "function"])
def test_modes_without_gradients_keep_no_graph(mode: str, fused: bool) -> None:
    net, loss = model().eval(), nn.MSELoss()

    def test_step(x: Any) -> Any:
        if mode == "no_grad":
            with torch.no_grad():
                return loss(net(x), x)
        if mode == "set_grad_enabled":
            with torch.set_grad_enabled(False):
                return loss(net(x), x)
        if mode == "inference_mode":
            with torch.inference_mode():
                return loss(net(x), x)
        return torch.no_grad()(lambda: loss(net(x), x))()

    with torch.fusion(fused):
        held = growth(test_step)
    assert held[-1] < 2.5
    x = torch.ones(BATCH, WIDTH)
    assert not test_step(x).requires_grad
    with torch.fusion(fused):
        _core.reset_peak_memory_stats()
        before = _core.memory_allocated()
        test_step(x).item()
        quiet = _core.max_memory_allocated() - before
        _core.reset_peak_memory_stats()
        before = _core.memory_allocated()
        loss(net(x), x).item()
        assert quiet < 0.8 * (_core.max_memory_allocated() - before)


def test_features_that_a_hook_collects_cost_their_own_memory() -> None:
    net = model()
    features: list[Any] = []
    net[1].register_forward_hook(lambda module, args, output: features.append(output.data.numpy()))
    with torch.no_grad():
        held = growth(lambda x: net(x).sum().item())
    assert abs((held[-1] - held[0]) / (STEPS - 1) - 1) < 0.1
    assert len(features) == STEPS


def test_set_grad_enabled_as_the_tutorial_has_it() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.set_grad_enabled(False):
        y = x * 2
    assert not y.requires_grad
    try:
        torch.set_grad_enabled(True)
        assert (x * 2).requires_grad
        torch.set_grad_enabled(False)
        assert not (x * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)
    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    c = (a**2).data.requires_grad_()
    sum(c + b).backward()
    assert c.grad.tolist() == [1.0, 1.0, 1.0]
    assert a.grad is None


@pytest.mark.parametrize(("where", "steps"), [("cpu", 5_000), pytest.param("wgpu", 600, marks=pytest.mark.wgpu)])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_training_holds_no_more_memory_step_by_step(where: str, steps: int, kind: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1)).to(where)
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.99)
    x = torch.randn(16, 4, device=where)
    module: Any = torch if where == "cpu" else torch.wgpu
    held: set[int] = set()
    peaks: set[int] = set()
    # Nothing of earlier tests is freed meanwhile.
    gc.collect()
    gc.disable()
    module.reset_peak_memory_stats()
    try:
        for step in range(steps):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % (steps // 20) == steps // 20 - 1:
                assert loss.item() >= 0
                held.add(module.memory_allocated())
                peaks.add(module.max_memory_allocated())
                module.reset_peak_memory_stats()
    finally:
        gc.enable()
    # The first stretch begins before the optimizer has a state.
    assert len(held) == 1
    assert max(peaks) - min(peaks) <= 4096
