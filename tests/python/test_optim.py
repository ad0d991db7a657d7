"""Optimizers against their formulas in NumPy; groups, state, hooks, schedules, and what is refused."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import rgrad
from devices import real, tol
from rgrad import nn, optim
from rgrad.optim import lr_scheduler

pytestmark = pytest.mark.usefixtures("device")


def param(*shape: int, seed: int = 0) -> nn.Parameter:
    return nn.Parameter(rgrad.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=real()))


def run(make, steps: int = 6, maximize: bool = False) -> tuple[np.ndarray, list[np.ndarray]]:
    """The starting point, and the points after each of some steps with gradients from a fixed sequence."""
    p = param(3, 2)
    start = p.detach().cpu().numpy().copy()
    optimizer = make([p])
    points = []
    for g in gradients(steps):
        p.grad = rgrad.tensor(g, dtype=real())
        optimizer.step()
        points.append(p.detach().cpu().numpy().copy())
    return start, points


def gradients(steps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal((3, 2)) for _ in range(steps)]


def sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    buffer, points = None, []
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
        points.append(p)
    return points


SGD = [
    {"lr": 0.1},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "weight_decay": 0.3, "maximize": True},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.2, "maximize": True},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True},
]


@pytest.mark.parametrize("options", SGD)
def test_sgd(options) -> None:
    start, points = run(lambda ps: optim.SGD(ps, **options))
    for got, want in zip(points, sgd(start, gradients(6), **options), strict=True):
        np.testing.assert_allclose(got, want, rtol=tol(1e-12))


def adam(p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, w=False):
    m = v = top = np.zeros_like(p)
    points = []
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if w:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        top = np.maximum(top, v)
        denominator = np.sqrt((top if amsgrad else v) / (1 - betas[1] ** t)) + eps
        p = p - lr * (m / (1 - betas[0] ** t)) / denominator
        points.append(p)
    return points


ADAM = [
    {},
    {"lr": 0.05, "betas": (0.5, 0.7), "eps": 1e-3},
    {"weight_decay": 0.3},
    {"amsgrad": True, "lr": 0.1},
    {"maximize": True, "weight_decay": 0.1},
]


@pytest.mark.parametrize("options", ADAM)
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(options, decoupled: bool) -> None:
    if decoupled:
        start, points = run(lambda ps: optim.AdamW(ps, **options))
        wanted = adam(start, gradients(6), w=True, **{"weight_decay": 0.01, **options})
    else:
        start, points = run(lambda ps: optim.Adam(ps, **options))
        wanted = adam(start, gradients(6), **options)
    for got, want in zip(points, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=tol(1e-11))


def test_hyperparameters_may_be_tensors() -> None:
    _, points = run(lambda ps: optim.SGD(ps, lr=rgrad.tensor(0.1, dtype=real())))
    _, wanted = run(lambda ps: optim.SGD(ps, lr=0.1))
    np.testing.assert_allclose(points[-1], wanted[-1], rtol=tol(1e-12))


@pytest.mark.parametrize("make", [lambda ps: optim.SGD(ps, 0.1, momentum=0.9), optim.Adam, optim.AdamW])
def test_parameters_without_gradient_are_left_alone(make) -> None:
    a, b = param(2), param(2, seed=1)
    before = b.detach().clone()
    optimizer = make([a, b])
    a.grad = rgrad.ones(2, dtype=real())
    optimizer.step()
    assert rgrad.equal(b, before)
    assert b not in optimizer.state
    assert a.grad_fn is None
    assert a.requires_grad


def test_groups_have_options_of_their_own() -> None:
    a, b = param(2), param(2, seed=1)
    start_a, start_b = a.detach().clone(), b.detach().clone()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    a.grad = b.grad = rgrad.ones(2, dtype=real())
    optimizer.step()
    assert rgrad.allclose(start_a - a, rgrad.full((2,), 0.1, dtype=real()))
    assert rgrad.allclose(start_b - b, rgrad.ones(2, dtype=real()))
    optimizer.add_param_group({"params": [param(3)]})
    assert optimizer.param_groups[2]["lr"] == 0.1
    assert "momentum: 0" in repr(optimizer)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n")


def test_named_parameters() -> None:
    net = nn.Linear(2, 2)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is net.weight
    with pytest.raises(ValueError, match="all optimizer param groups should be with/without names"):
        optimizer.add_param_group({"params": [param(1)]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", param(1)), param(1)], lr=0.1)


def test_closures_run_with_grad_enabled() -> None:
    p = param(2)
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with rgrad.no_grad():
        first = optimizer.step(closure)
        assert not rgrad.is_grad_enabled()
    assert closure().item() < first.item()
    assert rgrad.is_grad_enabled()


def test_mode_comes_back_when_a_step_fails() -> None:
    p = param(2)
    optimizer = optim.Adam([p])
    p.grad = rgrad.ones(2, dtype=real())
    optimizer.step()
    optimizer.state[p]["exp_avg"] = None
    with pytest.raises(TypeError):
        optimizer.step()
    assert rgrad.is_grad_enabled()


def test_zero_grad() -> None:
    p = param(2)
    optimizer = optim.SGD([p], lr=0.1)
    (p * p).sum().backward()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [0, 0]
    p.grad = None
    (g,) = rgrad.autograd.grad((p * p * p).sum(), p, create_graph=True)
    p.grad = g
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.grad_fn is None
    optimizer.zero_grad()
    assert p.grad is None


# --------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("make", [lambda ps: optim.SGD(ps, 0.1, momentum=0.9), optim.Adam])
@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy"])
def test_state_continues_where_it_was(make, how: str) -> None:
    def step(p, optimizer, g) -> None:
        p.grad = rgrad.tensor(g, dtype=real())
        optimizer.step()

    p = param(3, 2)
    optimizer = make([p])
    for g in gradients(3):
        step(p, optimizer, g)
    if how == "state_dict":
        q = nn.Parameter(p.detach().clone())
        other = make([q])
        other.param_groups[0]["lr"] = 77
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    else:
        other = pickle.loads(pickle.dumps(optimizer)) if how == "pickle" else copy.deepcopy(optimizer)
        q = other.param_groups[0]["params"][0]
        assert q is not p
    for g in gradients(5)[3:]:
        step(p, optimizer, g)
        step(q, other, g)
    assert rgrad.equal(p, q)


def test_state_dict_layout() -> None:
    a, b = param(2), param(3)
    optimizer = optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}])
    b.grad = rgrad.ones(3, dtype=real())
    optimizer.step()
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert list(state["state"]) == [1]
    assert sorted(state["state"][1]) == ["exp_avg", "exp_avg_sq", "step"]
    assert state["state"][1]["step"].item() == 1
    assert state["param_groups"][1]["lr"] == 0.5


def test_loaded_state_takes_the_dtype_of_its_parameter() -> None:
    p, q = param(2), nn.Parameter(rgrad.ones(2))
    optimizer, other = optim.Adam([p]), optim.Adam([q])
    p.grad = rgrad.ones(2, dtype=real())
    optimizer.step()
    other.load_state_dict(optimizer.state_dict())
    assert other.state[q]["exp_avg"].dtype == rgrad.float32
    other.state[q]["exp_avg_sq"].zero_()
    assert optimizer.state[p]["exp_avg_sq"].sum().item() > 0


def test_state_that_does_not_fit() -> None:
    optimizer = optim.SGD([param(2)], lr=0.1)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([{"params": [param(2)]}, {"params": [param(2)]}], lr=0.1).load_state_dict(state)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.SGD([param(2), param(2)], lr=0.1).load_state_dict(state)


def test_hooks_of_steps() -> None:
    p = param(2)
    optimizer = optim.SGD([p], lr=0.1)
    log = []
    before = optimizer.register_step_pre_hook(lambda opt, args, kwargs: log.append("before"))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: log.append(opt is optimizer))
    optimizer.step()
    before.remove()
    optimizer.step()
    assert log == ["before", True, True]
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_optimizers_are_freed_at_once() -> None:
    p = param(2)
    optimizer = optim.Adam([p])
    optimizer.register_step_post_hook(lambda *_: None)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    ref = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert ref() is None
    finally:
        gc.enable()


# ----------------------------------------------------------------------------------------------------- bad input


def test_wrong_parameters() -> None:
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an iterable of Tensors"):
        optim.SGD(param(2), lr=0.1)
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        optim.SGD([], lr=0.1)
    with pytest.raises(TypeError, match="optimizer can only optimize Tensors, but one of the params is int"):
        optim.SGD([3], lr=0.1)
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        optim.SGD([param(2) * 2], lr=0.1)
    p = param(2)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p], lr=0.1)
    with pytest.raises(TypeError, match="ordered collections"):
        optim.SGD([{"params": {p}}], lr=0.1)
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optim.SGD([p], lr=0.1).add_param_group([p])
    with pytest.raises(NotImplementedError):
        optim.Optimizer([p], {}).step()
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        optim.Optimizer([p], {"lr": optim.optimizer.required})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: optim.SGD(p, lr=-1), "Invalid learning rate: -1"),
        (lambda p: optim.SGD(p, momentum=-1), "Invalid momentum value: -1"),
        (lambda p: optim.SGD(p, weight_decay=-1), "Invalid weight_decay value: -1"),
        (lambda p: optim.SGD(p, nesterov=True), "Nesterov momentum requires a momentum and zero dampening"),
        (lambda p: optim.SGD(p, lr=rgrad.ones(2)), "Tensor lr must be 1-element"),
        (lambda p: optim.Adam(p, lr=math.nan), "Invalid learning rate: nan"),
        (lambda p: optim.Adam(p, eps=-1), "Invalid epsilon value: -1"),
        (lambda p: optim.Adam(p, betas=(1.0, 0.9)), "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.AdamW(p, betas=(0.5, -0.1)), "Invalid beta parameter at index 1: -0.1"),
        (lambda p: optim.AdamW(p, weight_decay=-1), "Invalid weight_decay value: -1"),
    ],
)
def test_wrong_hyperparameters(make, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make([param(2)])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (optim.SGD, {"momentum": 0.9}),
        (optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
        (optim.NAdam, {}),
        (optim.RAdam, {"betas": (0.5, 0.6)}),
        (optim.Adamax, {}),
        (optim.Adagrad, {}),
        (optim.Adadelta, {}),
        (optim.RMSprop, {"momentum": 0.9, "centered": True}),
        (optim.ASGD, {}),
    ],
)
def test_gradients_go_through_differentiable_steps(kind, options) -> None:
    def after(start):
        p = start.clone()
        optimizer = kind([p], lr=0.1, differentiable=True, **options)
        for _ in range(3):
            q = p.clone()
            p.grad = 3 * q * q
            optimizer.step()
        return p

    start = rgrad.tensor([0.5, -1.25, 2.0], dtype=real(), requires_grad=True)
    assert rgrad.autograd.gradcheck(after, (start,))


# ----------------------------------------------------------------------------------------------------- schedules


def rates(make, steps: int = 12, lr: float = 0.5) -> list[float]:
    optimizer = optim.SGD([param(2)], lr=lr)
    scheduler = make(optimizer)
    found = [optimizer.param_groups[0]["lr"]]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == [found[-1]]
    return found


@pytest.mark.parametrize(
    ("make", "factor"),
    [
        (lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5), lambda e: 0.5 ** (e // 3)),
        (lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5]), lambda e: 0.1 ** ((e >= 2) + 2 * (e >= 5))),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
        (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 1 / (1 + e)),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 4), lambda e: (1 + math.cos(math.pi * e / 4)) / 2),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 4), lambda e: 0.5 + 0.5 * min(e, 4) / 4),
    ],
)
def test_schedules(make, factor) -> None:
    np.testing.assert_allclose(rates(make), [0.5 * factor(e) for e in range(13)], rtol=1e-9, atol=1e-15)


def test_schedules_can_be_chained_and_resumed() -> None:
    optimizer = optim.SGD([param(2)], lr=1.0)
    first, second = lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 2, 0.1)
    for _ in range(2):
        optimizer.step()
        first.step()
        second.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    state = first.state_dict()
    assert "optimizer" not in state
    other = lr_scheduler.ExponentialLR(optim.SGD([param(2)], lr=1.0), 0.9)
    other.load_state_dict(state)
    assert other.last_epoch == 2
    assert other.gamma == 0.5
    resumed = lr_scheduler.StepLR(optimizer, 2, last_epoch=1)
    assert resumed.last_epoch == 2
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optim.SGD([param(2)], lr=1.0), 2, last_epoch=3)


def test_schedule_before_the_first_step_warns() -> None:
    optimizer = optim.SGD([param(2)], lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    with pytest.raises(TypeError, match="is not an Optimizer"):
        lr_scheduler.StepLR(3, 2)
    with pytest.raises(ValueError, match="Expected 1 lr_lambdas, but got 2"):
        lr_scheduler.LambdaLR(optimizer, [lambda e: 1.0] * 2)


def test_reduce_on_plateau() -> None:
    optimizer = optim.SGD([param(2)], lr=1.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    found = []
    for metric in [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, rgrad.tensor(0.1)]:
        scheduler.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    assert found == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]
    with pytest.raises(ValueError, match="Factor should be"):
        lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0)
    with pytest.raises(ValueError, match="mode up is unknown"):
        lr_scheduler.ReduceLROnPlateau(optimizer, mode="up")
