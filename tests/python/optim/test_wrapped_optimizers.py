"""Optimizers around another optimizer, as users write them: some never call ``Optimizer.__init__``."""

from __future__ import annotations

import copy
from collections import defaultdict

import numpy as np
import pytest

import rgrad
from devices import real
from rgrad import nn, optim
from rgrad.optim import lr_scheduler
from rgrad.optim.optimizer import Optimizer, register_optimizer_step_post_hook

pytestmark = pytest.mark.usefixtures("device")


class Lookahead(Optimizer):
    """Slow weights that follow the fast ones. It makes everything that it has itself."""

    def __init__(self, optimizer, k=2, alpha=0.5):
        self.optimizer = optimizer
        self.k = k
        self.alpha = alpha
        self.param_groups = self.optimizer.param_groups
        self.state = defaultdict(dict)
        for group in self.param_groups:
            group["counter"] = 0

    def update(self, group):
        for fast in group["params"]:
            state = self.state[fast]
            if "slow_param" not in state:
                state["slow_param"] = fast.data.clone()
            slow = state["slow_param"]
            slow += (fast.data - slow) * self.alpha
            fast.data.copy_(slow)

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        for group in self.param_groups:
            if group["counter"] == 0:
                self.update(group)
            group["counter"] = (group["counter"] + 1) % self.k
        return loss


class Around(Optimizer):
    """The attributes are those of the optimizer inside, as properties."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.steps = 0

    @property
    def state(self):
        return self.optimizer.state

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self.optimizer.load_state_dict(state_dict)

    def step(self, closure=None):
        self.steps += 1
        return self.optimizer.step(closure)


class Passing(Optimizer):
    """What it does not have comes from the optimizer inside."""

    def __init__(self, optimizer):
        self.inner = optimizer

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def step(self, closure=None):
        return self.inner.step(closure)


class SAM(Optimizer):
    """Sharpness-aware minimisation: a step against the gradient at the worst point nearby."""

    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, {"rho": rho, **kwargs})
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)

    @rgrad.no_grad()
    def first_step(self, zero_grad=False):
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        norm = rgrad.stack([g.norm(2) for g in grads]).norm(2)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["e_w"] = p.grad * (group["rho"] / (norm + 1e-12))
                p.add_(self.state[p]["e_w"])
        if zero_grad:
            self.zero_grad()

    @rgrad.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()

    @rgrad.no_grad()
    def step(self, closure=None):
        closure = rgrad.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()


WRAPPERS = [Lookahead, Around, Passing]


def parameter(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(rgrad.tensor(np.random.default_rng(seed).standard_normal(4), dtype=real()))


def backward(p: nn.Parameter) -> rgrad.Tensor:
    loss = (p * p).sum()
    loss.backward()
    return loss


def values(p: nn.Parameter) -> np.ndarray:
    return p.detach().cpu().numpy().copy()


def test_lookahead_computes_what_its_formula_says() -> None:
    p = parameter()
    optimizer = Lookahead(optim.SGD([p], lr=0.1), k=2, alpha=0.5)
    fast = values(p)
    slow = None
    for step in range(5):
        optimizer.zero_grad()
        loss = backward(p)
        assert optimizer.step() is None
        assert loss.item() > 0
        fast = fast - 0.1 * 2 * fast
        if step % 2 == 0:
            slow = fast if slow is None else slow + 0.5 * (fast - slow)
            fast = slow
        np.testing.assert_allclose(values(p), fast, rtol=1e-5)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_steps_and_gradients(wrap) -> None:
    p = parameter()
    optimizer = wrap(optim.SGD([p], lr=0.1))
    before = values(p)

    def closure():
        optimizer.zero_grad()
        return backward(p)

    assert optimizer.step(closure).item() == pytest.approx((before**2).sum(), rel=1e-5)
    np.testing.assert_allclose(values(p), before - 0.1 * 2 * before, rtol=1e-5)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0] * 4
    optimizer.zero_grad()
    assert p.grad is None
    assert "Parameter Group 0" in repr(optimizer)
    assert "lr: 0.1" in repr(optimizer)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_hooks_of_wrappers(wrap) -> None:
    p = parameter()
    optimizer = wrap(optim.SGD([p], lr=0.1))
    seen = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", o))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", o))),
    ]
    everywhere = register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append(("any", o)))
    backward(p)
    optimizer.step()
    everywhere.remove()
    mine = [what for what, of in seen if of is optimizer]
    assert mine == ["before", "after", "any"]
    for handle in handles:
        handle.remove()
    seen.clear()
    optimizer.step()
    assert seen == []


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_saved_state_of_wrappers_continues(wrap) -> None:
    p = parameter()
    optimizer = wrap(optim.SGD([p], lr=0.1, momentum=0.9))
    backward(p)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    assert set(saved) == {"state", "param_groups"}
    assert saved["param_groups"][0]["params"] == [0]
    other = nn.Parameter(p.detach().clone())
    again = wrap(optim.SGD([other], lr=0.5, momentum=0.1))
    again.load_state_dict(saved)
    assert again.param_groups[0]["lr"] == 0.1
    (state,) = again.state.values()
    (wanted,) = optimizer.state.values()
    assert set(state) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(state[name].cpu().numpy(), value.cpu().numpy())


def test_hooks_of_saved_state() -> None:
    p = parameter()
    optimizer = Lookahead(optim.SGD([p], lr=0.1))
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving"))
    optimizer.register_state_dict_post_hook(lambda o, made: {**made, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, given: seen.append("loading"))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    saved = optimizer.state_dict()
    assert saved["more"] == 1
    optimizer.load_state_dict(saved)
    assert seen == ["saving", "loading", "loaded"]


def test_groups_can_be_added() -> None:
    optimizer = Lookahead(optim.SGD([parameter()], lr=0.1))
    optimizer.add_param_group({"params": [parameter(1)], "lr": 0.2, "counter": 0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]
    assert len(optimizer.optimizer.param_groups) == 2


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_schedules_of_wrappers(wrap) -> None:
    p = parameter()
    inner = optim.SGD([p], lr=0.1)
    optimizer = wrap(inner)
    schedule = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    for rate in (0.1, 0.05, 0.025):
        assert inner.param_groups[0]["lr"] == pytest.approx(rate)
        optimizer.zero_grad()
        backward(p)
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_schedules_of_momentum(wrap) -> None:
    inner = optim.Adam([parameter()], lr=0.1)
    optimizer = wrap(inner)
    schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=4, base_momentum=0.8, max_momentum=0.9)
    rates, betas = [], []
    for _ in range(3):
        rates.append(inner.param_groups[0]["lr"])
        betas.append(inner.param_groups[0]["betas"][0])
        backward(inner.param_groups[0]["params"][0])
        optimizer.step()
        schedule.step()
    assert rates[0] < rates[1]
    assert betas[0] == pytest.approx(0.9)
    assert 0.8 <= min(betas) < 0.85
    plain = wrap(optim.SGD([parameter()], lr=0.1))
    del plain.param_groups[0]["momentum"]
    if wrap is not Passing:  # it has the defaults of the optimizer inside
        with pytest.raises(ValueError, match="must support momentum or beta1"):
            lr_scheduler.CyclicLR(plain, 0.1, 0.2)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_the_profiler_names_wrappers(wrap) -> None:
    p = parameter()
    optimizer = wrap(optim.SGD([p], lr=0.1))
    backward(p)
    with rgrad.profiler.profile() as found:
        optimizer.step()
        optimizer.zero_grad()
    names = {event.name for event in found.events()}
    assert f"Optimizer.step#{wrap.__name__}.step" in names
    assert f"Optimizer.zero_grad#{wrap.__name__}.zero_grad" in names
    assert "Optimizer.step#SGD.step" in names


def test_sharpness_aware_steps() -> None:
    p = parameter()
    optimizer = SAM([p], optim.SGD, rho=0.05, lr=0.1, momentum=0.0)
    schedule = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    x = values(p)
    rate = 0.1
    for _ in range(3):
        optimizer.zero_grad()
        backward(p)
        optimizer.step(lambda: backward(p))
        schedule.step()
        worst = x + 0.05 * 2 * x / np.linalg.norm(2 * x)
        x = x - rate * 2 * worst
        rate /= 2
        np.testing.assert_allclose(values(p), x, rtol=1e-4, atol=1e-6)
        # The base was given the same groups, so the schedule's rate is its rate.
        assert optimizer.base_optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_a_group_that_is_refused_stays_as_it_was() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    given = {"params": [(parameter(1) * 2)]}
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        optimizer.add_param_group(given)
    assert set(given) == {"params"}
    mine = {"params": parameter(1)}
    optimizer.add_param_group(mine)
    assert optimizer.param_groups[1] is mine
    assert mine["lr"] == 0.1
    assert isinstance(mine["params"], list)
