"""Every learning rate schedule beside PyTorch's, bit by bit: rates, momenta, closed forms, states, weight averages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rgrad  # noqa: E402
from compare import attempt  # noqa: E402

SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 0.8),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 2, 7], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 1.7),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "CosineAnnealingWarmRestarts 1": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3),
}
WITHOUT_EPOCHS = {
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 3, 4),
    "CyclicLR 2": lambda s, o: s.CyclicLR(o, [0.1, 0.2], [1.0, 2.0], 3, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 3, mode="exp_range", gamma=0.9),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 3, scale_fn=lambda x: 1 / x),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 1.0, 30),
    "OneCycleLR 3": lambda s, o: s.OneCycleLR(
        o, [1.0, 2.0], epochs=5, steps_per_epoch=6, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 5)], [4, 9]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 4, 0.5)], optimizer=o
    ),
    "SWALR": lambda s, o: s.SWALR(o, 0.05, 4),
    "SWALR linear": lambda s, o: s.SWALR(o, [0.05, 0.1], 4, "linear"),
    "SWALR 0": lambda s, o: s.SWALR(o, 0.05, 0),
}
ALL = {**SCHEDULES, **WITHOUT_EPOCHS}


def plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def optimizer_of(T: Any, kind: str, tensors: bool) -> Any:
    def rate(value: float) -> Any:
        return T.tensor(value, dtype=T.float64) if tensors else value

    params = [T.nn.Parameter(T.ones(1)) for _ in range(2)]
    return getattr(T.optim, kind)([{"params": [params[0]]}, {"params": [params[1]], "lr": rate(0.5)}], lr=rate(1.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_rates_and_states_are_alike(name: str, kind: str, tensors: bool) -> None:
    def run(T: Any) -> Any:
        module = T.optim.swa_utils if "SWALR" in name else T.optim.lr_scheduler
        optimizer = optimizer_of(T, kind, tensors)
        schedule = ALL[name](module, optimizer)
        found = [plain(schedule.get_last_lr())]
        for _ in range(25):
            optimizer.step()
            schedule.step()
            groups = [(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups]
            found.append(plain([groups, schedule.get_last_lr()]))
        state = plain(schedule.state_dict())
        other = optimizer_of(T, kind, tensors)
        resumed = ALL[name](module, other)
        resumed.load_state_dict(schedule.state_dict())
        other.load_state_dict(optimizer.state_dict())
        for _ in range(3):
            other.step()
            resumed.step()
            found.append(plain(resumed.get_last_lr()))
        if name in SCHEDULES:
            for epoch in (0, 3, 11, 20):
                schedule.step(epoch)
                found.append(plain(schedule.get_last_lr()))
        return found, state

    assert run(rgrad) == run(torch)


OPTIONS = [
    {},
    {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "cooldown": 2},
    {"mode": "max"},
    {"threshold_mode": "abs", "min_lr": [0.01, 0.1]},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_plateaus_are_alike(options: dict[str, Any]) -> None:
    def run(T: Any) -> Any:
        optimizer = optimizer_of(T, "SGD", False)
        schedule = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, **options)
        found = []
        for value in np.random.default_rng(3).uniform(0, 1, 60):
            schedule.step(value)
            found.append(schedule.get_last_lr())
        return found, plain(schedule.state_dict())

    assert run(rgrad) == run(torch)


def averaged(T: Any, **options: Any) -> list[Any]:
    swa = T.optim.swa_utils
    make = {"ema": swa.get_ema_multi_avg_fn, "swa": swa.get_swa_multi_avg_fn}
    single = {"ema": swa.get_ema_avg_fn, "swa": swa.get_swa_avg_fn}
    for key, table in (("multi_avg_fn", make), ("avg_fn", single)):
        if key in options:
            options[key] = table[options[key]]()
    rng = np.random.default_rng(0)
    net = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 2))
    with T.no_grad():
        for p in net.parameters():
            p.copy_(T.tensor(rng.standard_normal(tuple(p.shape))))
    model = swa.AveragedModel(net, **options)
    batches = [T.tensor(rng.standard_normal((6, 3)), dtype=T.float32) for _ in range(4)]
    for batch in batches:
        net(batch)
        with T.no_grad():
            for p in net.parameters():
                p.add_(T.tensor(rng.standard_normal(tuple(p.shape))), alpha=0.1)
        model.update_parameters(net)
    swa.update_bn([(b, 0) for b in batches], model)
    return [(name, value.numpy()) for name, value in model.state_dict().items()]


@pytest.mark.parametrize(
    "options",
    [{}, {"multi_avg_fn": "ema"}, {"avg_fn": "ema"}, {"avg_fn": "swa"}, {"multi_avg_fn": "ema", "use_buffers": True}],
)
def test_weight_averages_are_alike(options: dict[str, Any]) -> None:
    for (name, ours), (wanted, theirs) in zip(averaged(rgrad, **options), averaged(torch, **options), strict=True):
        assert name == wanted
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def sgd(T: Any, **options: Any) -> Any:
    return T.optim.SGD([T.ones(1)], **options)


MISTAKES = {
    "lambdas": lambda T: T.optim.lr_scheduler.MultiplicativeLR(sgd(T), [1, 2]),
    "no function": lambda T: T.optim.lr_scheduler.MultiplicativeLR(sgd(T), 3),
    "constant": lambda T: T.optim.lr_scheduler.ConstantLR(sgd(T), 2),
    "linear": lambda T: T.optim.lr_scheduler.LinearLR(sgd(T), 0),
    "linear end": lambda T: T.optim.lr_scheduler.LinearLR(sgd(T), 1, 2),
    "warm": lambda T: T.optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd(T), 0),
    "warm mult": lambda T: T.optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd(T), 1, 1.5),
    "warm epoch": lambda T: T.optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd(T), 1).step(-1),
    "cyclic": lambda T: T.optim.lr_scheduler.CyclicLR(sgd(T), [0.1, 0.2], 1),
    "cyclic mode": lambda T: T.optim.lr_scheduler.CyclicLR(sgd(T), 0.1, 1, mode="x"),
    "cyclic momentum": lambda T: T.optim.lr_scheduler.CyclicLR(T.optim.Adagrad([T.ones(1)]), 0.1, 1),
    "cycle": lambda T: T.optim.lr_scheduler.OneCycleLR(sgd(T), 1),
    "cycle steps": lambda T: T.optim.lr_scheduler.OneCycleLR(sgd(T), 1, 0),
    "cycle start": lambda T: T.optim.lr_scheduler.OneCycleLR(sgd(T), 1, 5, pct_start=2),
    "cycle strategy": lambda T: T.optim.lr_scheduler.OneCycleLR(sgd(T), 1, 5, anneal_strategy="x"),
    "cycle over": lambda T: over(T),
    "sequence": lambda T: T.optim.lr_scheduler.SequentialLR(sgd(T), [], []),
    "sequence others": lambda T: T.optim.lr_scheduler.SequentialLR(sgd(T), [3], []),
    "chain": lambda T: T.optim.lr_scheduler.ChainedScheduler([]),
    "plateau factor": lambda T: T.optim.lr_scheduler.ReduceLROnPlateau(sgd(T), factor=1.0),
    "plateau lows": lambda T: T.optim.lr_scheduler.ReduceLROnPlateau(sgd(T), min_lr=[1, 2]),
    "swa strategy": lambda T: T.optim.swa_utils.SWALR(sgd(T), 0.1, anneal_strategy="x"),
    "swa epochs": lambda T: T.optim.swa_utils.SWALR(sgd(T), 0.1, -1),
    "ema": lambda T: T.optim.swa_utils.get_ema_avg_fn(2.0),
    "get_lr": lambda T: T.optim.lr_scheduler.StepLR(sgd(T), 2).get_lr(),
    "base": lambda T: T.optim.lr_scheduler.LRScheduler(sgd(T)),
}


def over(T: Any) -> None:
    optimizer = sgd(T)
    schedule = T.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, 2)
    for _ in range(4):
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_the_same_way(name: str) -> None:
    ours, theirs = attempt(lambda: MISTAKES[name](rgrad)), attempt(lambda: MISTAKES[name](torch))
    assert ours.error == theirs.error, (ours.message, theirs.message)
    assert ours.message == theirs.message
    assert ours.warned == theirs.warned


def test_a_step_that_was_replaced_is_told() -> None:
    for T in (rgrad, torch):
        optimizer = sgd(T)
        schedule = T.optim.lr_scheduler.StepLR(optimizer, 2)
        optimizer.step = lambda: None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            schedule.step()
        assert "has been overridden" in str(seen[0].message)
