"""Optimizers, schedules and loaders beside PyTorch's: same parameters, same gradients, same steps and state."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

OPTIMIZERS = {
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "SGD all": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.2, "maximize": True}),
    "SGD decay uphill": ("SGD", {"lr": 0.1, "weight_decay": 0.2, "maximize": True}),
    "SGD nesterov": ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    "Adam": ("Adam", {}),
    "Adam all": ("Adam", {"lr": 0.05, "betas": (0.6, 0.8), "eps": 1e-4, "weight_decay": 0.1, "amsgrad": True}),
    "Adam uphill": ("Adam", {"lr": 0.05, "maximize": True}),
    "Adam decoupled": ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "AdamW": ("AdamW", {"lr": 0.05}),
    "AdamW all": ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
}


def model(T: Any, kind: str) -> Any:
    net = T.nn.Sequential(T.nn.Linear(3, 5), T.nn.Tanh(), T.nn.Linear(5, 2)).to(getattr(T, kind))
    rng = np.random.default_rng(0)
    with T.no_grad():
        for p in net.parameters():
            p.copy_(T.tensor(rng.standard_normal(tuple(p.shape))))
    return net


def train(T: Any, kind: str, name: str, options: dict[str, Any], steps: int) -> tuple[Any, Any, list[float]]:
    net = model(T, kind)
    optimizer = getattr(T.optim, name)(net.parameters(), **options)
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(steps):
        x = T.tensor(rng.standard_normal((8, 3)), dtype=getattr(T, kind))
        y = T.tensor(rng.standard_normal((8, 2)), dtype=getattr(T, kind))
        loss = T.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net, optimizer, losses


def arrays(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v.detach().numpy() if hasattr(v, "detach") else v for k, v in state.items()}


@pytest.mark.parametrize("case", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_training_runs_alike(case: str, kind: str) -> None:
    name, options = OPTIMIZERS[case]
    tolerance = {"float64": 1e-9, "float32": 2e-3}[kind]
    ours, theirs = (train(T, kind, name, options, 12) for T in (rgrad, torch))
    np.testing.assert_allclose(ours[2], theirs[2], rtol=tolerance)
    for p, q in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
    a, b = ours[1].state_dict(), theirs[1].state_dict()
    assert sorted(a["state"]) == sorted(b["state"])
    for key, entry in b["state"].items():
        mine, others = arrays(a["state"][key]), arrays(entry)
        others = {k: v for k, v in others.items() if v is not None}
        assert sorted(mine) == sorted(others)
        for part, values in others.items():
            np.testing.assert_allclose(mine[part], values, rtol=tolerance, atol=tolerance)
            assert mine[part].dtype == values.dtype
    assert a["param_groups"] == b["param_groups"]
    assert repr(ours[1]) == repr(theirs[1])


@pytest.mark.parametrize("case", ["SGD momentum", "Adam all"])
def test_states_load_from_pytorch(case: str) -> None:
    name, options = OPTIMIZERS[case]
    net, optimizer, _ = train(torch, "float64", name, options, 3)
    state = copy.deepcopy(optimizer.state_dict())
    for entry in state["state"].values():
        entry.update({k: rgrad.tensor(v.numpy()) for k, v in entry.items() if v is not None})
    ours = model(rgrad, "float64")
    ours.load_state_dict({k: rgrad.tensor(v.numpy()) for k, v in net.state_dict().items()})
    other = getattr(rgrad.optim, name)(ours.parameters())
    other.load_state_dict(state)
    for T, n, o in ((torch, net, optimizer), (rgrad, ours, other)):
        o.zero_grad()
        n(T.ones(1, 3, dtype=T.float64)).sum().backward()
        o.step()
    for p, q in zip(ours.parameters(), net.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-10, atol=1e-12)


SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 2, 7], 0.3),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_run_alike(name: str) -> None:
    def rates(T: Any) -> list[list[float]]:
        params = [T.nn.Parameter(T.ones(1)), T.nn.Parameter(T.ones(1))]
        optimizer = T.optim.SGD([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.5}], lr=1.0)
        scheduler = SCHEDULES[name](T.optim.lr_scheduler, optimizer)
        found = [scheduler.get_last_lr()]
        for _ in range(25):
            optimizer.step()
            scheduler.step()
            found.append([group["lr"] for group in optimizer.param_groups])
        assert scheduler.get_last_lr() == found[-1]
        return found

    # Bit by bit: both multiply what was there before.
    assert rates(rgrad) == rates(torch)


@pytest.mark.parametrize("options", [{}, {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "cooldown": 2}])
def test_reduce_on_plateau_runs_alike(options: dict[str, Any]) -> None:
    def rates(T: Any) -> list[float]:
        optimizer = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=1.0)
        scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, min_lr=1e-3, **options)
        found = []
        for value in np.random.default_rng(3).uniform(0, 1, 60):
            scheduler.step(value)
            found.append(optimizer.param_groups[0]["lr"])
        return found

    assert rates(rgrad) == rates(torch)


MISTAKES = {
    "tensor": lambda T: T.optim.SGD(T.ones(1), lr=0.1),
    "empty": lambda T: T.optim.SGD([], lr=0.1),
    "number": lambda T: T.optim.Adam([3]),
    "not leaf": lambda T: T.optim.Adam([T.ones(1, requires_grad=True) * 2]),
    "twice": lambda T: T.optim.Adam([{"params": (p := [T.ones(1)])}, {"params": p}]),
    "duplicate": lambda T: T.optim.Adam([T.ones(1)] * 2),
    "duplicate of one": lambda T: T.optim.Adam([p := T.ones(1), p]),
    "set": lambda T: T.optim.Adam([{"params": {T.ones(1)}}]),
    "group": lambda T: T.optim.Adam([T.ones(1)]).add_param_group(3),
    "no params": lambda T: T.optim.Adam([{"lr": 1.0}]),
    "lr": lambda T: T.optim.SGD([T.ones(1)], lr=-1),
    "betas": lambda T: T.optim.Adam([T.ones(1)], betas=(0.9, 1.0)),
    "nesterov": lambda T: T.optim.SGD([T.ones(1)], nesterov=True),
    "state": lambda T: T.optim.Adam([T.ones(1)]).load_state_dict(T.optim.Adam([T.ones(1), T.ones(1)]).state_dict()),
    "scheduler": lambda T: T.optim.lr_scheduler.StepLR(3, 1),
    "resume": lambda T: T.optim.lr_scheduler.StepLR(T.optim.SGD([T.ones(1)]), 1, last_epoch=4),
    "order": lambda T: T.optim.lr_scheduler.StepLR(T.optim.SGD([T.ones(1)]), 1).step(),
    "sampler": lambda T: T.utils.data.DataLoader([1], sampler=[0], shuffle=True),
    "batch": lambda T: T.utils.data.DataLoader([1], batch_size=0),
    "sizes": lambda T: T.utils.data.TensorDataset(T.ones(2), T.ones(3)),
    "split": lambda T: T.utils.data.random_split(range(3), [1, 1]),
    "collate": lambda T: T.utils.data.default_collate([object()]),
    "collate sizes": lambda T: T.utils.data.default_collate([[1], [1, 2]]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.warned == theirs.warned


def test_batches_are_alike() -> None:
    def batches(T: Any, **options: Any) -> list[Any]:
        data = T.utils.data.TensorDataset(T.arange(20).reshape(10, 2), T.arange(10).double())
        return [[part.tolist() for part in batch] for batch in T.utils.data.DataLoader(data, **options)]

    for options in (
        {},
        {"batch_size": 4},
        {"batch_size": 4, "drop_last": True},
        {"batch_size": 3, "sampler": [5, 1, 2]},
    ):
        assert batches(rgrad, **options) == batches(torch, **options)


SAMPLES = {
    "numbers": lambda T: [1, 2],
    "floats": lambda T: [1.5, 2.0],
    "bools": lambda T: [True, False],
    "tensors": lambda T: [T.ones(2), T.zeros(2)],
    "arrays": lambda T: [np.ones((2, 2)), np.zeros((2, 2))],
    "scalars": lambda T: [np.float32(1), np.float32(2)],
    "mixed": lambda T: [({"a": 1, "b": "x"}, [1.0, T.ones(1)]), ({"a": 2, "b": "y"}, [2.0, T.ones(1)])],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_collation_is_alike(name: str) -> None:
    def shown(T: Any, value: Any) -> Any:
        if isinstance(value, T.Tensor):
            return (str(value.dtype).rpartition(".")[2], value.tolist())
        if isinstance(value, dict):
            return {k: shown(T, v) for k, v in value.items()}
        return (type(value), [shown(T, v) for v in value]) if isinstance(value, (list, tuple)) else value

    ours, theirs = (shown(T, T.utils.data.default_collate(SAMPLES[name](T))) for T in (rgrad, torch))
    assert ours == theirs
